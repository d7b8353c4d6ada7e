#!/bin/sh
# One rate more than the overrides of a limit may have.
i=1
while [ $i -le 1025 ]; do echo "u$i,$i/min"; i=$((i + 1)); done >too_many_rates.csv
echo 'limits: [{name: a, key: [user], rate: 5/min, overrides: {by: user, file: too_many_rates.csv}}]' >"$1"
