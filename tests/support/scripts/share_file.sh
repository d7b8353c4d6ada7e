# shellcheck shell=sh
# Sourced by tests: two builds of libweir share a file.
# shares here other limit...: the first two are commands that run tests/machines/take.c, a limit is its arguments after the
# file. Whichever of the two makes the file, the units that both are granted together are the quota.
shares() {
    here=$1
    other=$2
    shift 2
    folder=$(mktemp -d)
    for how in "$@"; do
        for maker in "$here" "$other"; do
            rm -f "$folder/limit"
            # shellcheck disable=SC2086  # commands and arguments, one word each
            timeout 120 $maker "$folder/limit" $how make
            # shellcheck disable=SC2086
            timeout 120 $here "$folder/limit" $how >"$folder/here" &
            # shellcheck disable=SC2086
            timeout 120 $other "$folder/limit" $how >"$folder/other"
            wait $!
            total=$(($(cat "$folder/here") + $(cat "$folder/other")))
            echo "$how: $(cat "$folder/here") and $(cat "$folder/other") units"
            [ "$total" -eq 200000 ] || { echo "granted $total units together, expected 200000" >&2; exit 1; }
        done
    done
    rm -rf "$folder"
}
