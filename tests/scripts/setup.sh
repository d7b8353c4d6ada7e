#!/bin/sh
# test-labels: nosan
# scripts/setup: silent when nothing is missing; without apt it names what is missing and stops; with apt it tells what it
# will install, and asks on a terminal.
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

# With apt: what will be installed is told before, a terminal is asked, and CI is not. Nothing is installed here: these tools
# only write down that they were called.
unset WEIR_SETUP
for tool in chmod script; do
    if command -v "$tool" >/dev/null; then ln -sf "$(command -v "$tool")" "$dir/bin/$tool"; fi
done
cat >"$dir/bin/dpkg-query" <<'TOOL'
#!/bin/sh
echo "installed=shell "
TOOL
cat >"$dir/bin/sudo" <<TOOL
#!/bin/sh
case \$* in env*install*) echo "\$*" >>"$dir/installed" ;; esac
TOOL
printf '#!/bin/sh\n' >"$dir/bin/apt-get"
rm "$dir/bin/id"
printf '#!/bin/sh\necho 1000\n' >"$dir/bin/id"
chmod +x "$dir/bin/dpkg-query" "$dir/bin/sudo" "$dir/bin/apt-get" "$dir/bin/id"

# expect RC NAME: what setup said is in $said
expect() {
    [ "$rc" = "$1" ] || { echo "$2: exit $rc instead of $1: $said" >&2; exit 1; }
    case $said in
    *"for gone: no-such-a no-such-b"*"sudo apt-get install"*) ;;
    *) echo "$2: does not tell before what is installed: $said" >&2; exit 1 ;;
    esac
    if [ "$1" = 0 ]; then
        grep -q 'no-such-a no-such-b' "$dir/installed" || { echo "$2: not installed" >&2; exit 1; }
        rm "$dir/installed"
    elif [ -e "$dir/installed" ]; then
        echo "$2: installed" >&2
        exit 1
    fi
}
rc=0; said=$(bare gone </dev/null) || rc=$?
expect 0 "without a terminal"
rc=0; said=$(env -i WEIR_SETUP=no PATH="$dir/bin" WEIR_PACKAGES="$dir/packages.txt" "$setup" gone 2>&1 </dev/null) || rc=$?
expect 1 "WEIR_SETUP=no"
rc=0; said=$(env -i WEIR_SETUP=maybe PATH="$dir/bin" WEIR_PACKAGES="$dir/packages.txt" "$setup" gone 2>&1 </dev/null) || rc=$?
{ [ "$rc" = 2 ] && [ ! -e "$dir/installed" ]; } || { echo "WEIR_SETUP=maybe: exit $rc: $said" >&2; exit 1; }
if [ -e "$dir/bin/script" ] && script -qec true /dev/null >/dev/null 2>&1 </dev/null; then # where there are terminals
    # asked NAME RC ANSWER VARIABLE...: on a terminal on which the answer is typed
    asked() {
        name=$1
        expected=$2
        answer=$3
        shift 3
        rc=0
        said=$(printf '%s\n' "$answer" | env -i SHELL=/bin/sh "$@" PATH="$dir/bin" WEIR_PACKAGES="$dir/packages.txt" \
            script -qec "$setup gone" /dev/null 2>&1) || rc=$?
        expect "$expected" "$name"
    }
    asked "Enter" 0 ""
    case $said in *"install them? [Y/n]"*) ;; *) echo "a terminal is not asked: $said" >&2; exit 1 ;; esac
    asked "y" 0 y
    asked "n" 1 n
    asked "another word" 1 maybe
    asked "yes in advance" 0 n WEIR_SETUP=yes
    case $said in *"[Y/n]"*) echo "asked in spite of WEIR_SETUP: $said" >&2; exit 1 ;; esac
    asked "no in advance" 1 y WEIR_SETUP=no
fi
