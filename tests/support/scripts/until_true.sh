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

# await_start PID COMMAND...: waits until a program that the test has started is ready, as COMMAND says. The test fails if
# the program has ended. If it is only late, the test exits with 75, which scripts/repeat-tests takes to mean that the
# machine was too busy: so this function is for nothing that happens later, and no other exits with that status.
await_start() {
    starting=$1
    shift
    tries=0
    until "$@"; do
        [ -e "/proc/$starting/exe" ] || die "ended before it was ready: $*"
        tries=$((tries + 1))
        if [ "$tries" -ge 1200 ]; then
            (die "not ready in time: $*") || exit 75
        fi
        sleep 0.05
    done
}
