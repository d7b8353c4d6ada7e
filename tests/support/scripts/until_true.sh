#!/bin/sh
# until_true COMMAND...: waits until it succeeds. The caller has die().
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || die "still not true: $*"
        sleep 0.05
    done
}
