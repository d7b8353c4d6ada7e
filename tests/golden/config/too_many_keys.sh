#!/bin/sh
# One key more than a map may have.
i=0
while [ $i -le 4096 ]; do echo "k$i: 1"; i=$((i + 1)); done >"$1"
