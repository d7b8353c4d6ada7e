#!/bin/sh
# More different attributes than have numbers.
echo limits: >"$1"
i=0
while [ $i -lt 10 ]; do
    echo "  - {name: l$i, key: [a$i, b$i, c$i, d$i, e$i, f$i], rate: 5/min}"
    i=$((i + 1))
done >>"$1"
