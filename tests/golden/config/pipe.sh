#!/bin/sh
# A pipe that nobody writes to, in place of each file.
mkfifo fifo.txt
echo 'allow: [{ip: "file:fifo.txt"}]
attributes: {tier: "file:fifo.txt by user", user: request}
limits: [{name: a, key: [user], rate: 5/min, overrides: {by: user, file: /dev/zero}}]' >"$1"
