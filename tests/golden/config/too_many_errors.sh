#!/bin/sh
# A hundred are told.
echo limits: >"$1"
i=0
while [ $i -lt 60 ]; do echo "  - {name: l$i, key: [], rate: x, burst: y}"; i=$((i + 1)); done >>"$1"
