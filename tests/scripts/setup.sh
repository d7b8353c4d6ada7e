#!/bin/sh
# test-labels: nosan
# scripts/setup: silent when nothing is missing; without apt it names what is missing and stops.
set -eu
setup=$WEIR_SOURCE_DIR/scripts/setup
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A world without dpkg and apt: only these commands, found through PATH.
mkdir "$dir/bin"
for tool in sh awk cut sed cc dirname mktemp rm cat env id; do
    ln -s "$(command -v "$tool")" "$dir/bin/$tool"
done
cat >"$dir/packages.txt" <<'LIST'
# purpose package probe
here    shell       sh
here    libc        <stddef.h><stdlib.h>
gone    no-such-a   no-such-command-a
gone    no-such-b   <stdlib.h><no-such-header-b.h>
gone    shell       sh
LIST
bare() { env -i PATH="$dir/bin" WEIR_PACKAGES="$dir/packages.txt" "$setup" "$@" 2>&1; }

said=$(bare here)
[ -z "$said" ] || { echo "nothing missing, yet it said: $said" >&2; exit 1; }
if said=$(bare here gone); then
    echo "missing packages, yet it succeeded" >&2
    exit 1
fi
case $said in
*": no-such-a no-such-b
"*) ;;
*) echo "does not name exactly what is missing: $said" >&2; exit 1 ;;
esac
if bare nonsense >/dev/null; then
    echo "accepted an unknown purpose" >&2
    exit 1
fi
