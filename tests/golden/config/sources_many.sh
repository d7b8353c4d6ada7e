#!/bin/sh
# More paths with one name than are compared one by one.
{
    echo 'attributes: {user: "path:{user}"}'
    echo 'limits:'
    for i in 1 2; do
        echo "  - name: l$i"
        echo '    key: [user]'
        echo '    rate: 1/s'
        echo '    when:'
        echo '      path:'
        seq 501 | sed "s,.*,        - /p$i/&/{user},"
    done
} >"$1"
