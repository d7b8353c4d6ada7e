#!/bin/sh
# Each anchor is compared with all before it.
echo 'allow:' >"$1"
i=0
while [ $i -le 1000 ]; do echo "  - &a$i {path: /}"; i=$((i + 1)); done >>"$1"
echo 'limits: []' >>"$1"
