#!/bin/sh
# One limit more than a rule set may have.
echo limits: >"$1"
i=0
while [ $i -le 4096 ]; do echo "  - {name: l$i, when: {path: /$i}, key: [], rate: 5/min}"; i=$((i + 1)); done >>"$1"
