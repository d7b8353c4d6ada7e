#!/bin/sh
# A value, a path and a file of the greatest size and one more.
{
    echo 'limits: []'
    echo 'allow:'
    printf '  - user: %04096d\n' 1
    printf '  - user: %04097d\n' 1
    printf '  - path: /%04095d\n' 1
    printf '  - path: /%04096d\n' 1
    printf '  - ip: file:large.txt\n'
} >"$1"
dd if=/dev/zero of=large.txt bs=1 count=1 seek=67108864 2>/dev/null
