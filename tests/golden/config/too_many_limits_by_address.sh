#!/bin/sh
# One limit more than one request may have, if it has an address and a path.
echo limits: >"$1"
i=0
while [ $i -le 32 ]; do echo "  - {name: l$i, key: [ip, user|path], rate: 5/min}"; i=$((i + 1)); done >>"$1"
