#!/bin/sh
# One byte more than a rule file may have.
dd if=/dev/zero of="$1" bs=1 count=1 seek=16777216 2>/dev/null
