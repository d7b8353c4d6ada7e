#!/bin/sh
# One limit more than one request may have.
echo limits: >"$1"
i=0
while [ $i -le 32 ]; do echo "  - {name: l$i, key: [], rate: 5/min}"; i=$((i + 1)); done >>"$1"
