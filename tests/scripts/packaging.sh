#!/bin/sh
# test-labels: nosan
# What is shipped around the program: units that leave little to attack and start what is installed, example rules
# that are good, and a container file whose words are true.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
source=$WEIR_SOURCE_DIR
die() { echo "$*" >&2; exit 1; }

# Installed below a prefix, with and without DESTDIR, the unit names the program that is there.
cmake --install "$WEIR_BUILD_DIR" --prefix "$dir/p" >"$dir/log" || die "$(cat "$dir/log")"
unit=$dir/p/lib/systemd/system/weir.service
for file in "$unit" "$dir/p/lib/systemd/system/weir.socket"; do
    [ -f "$file" ] || die "$file is not installed"
done
program=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
[ "$program" = "$dir/p/bin/weir" ] || die "the unit starts $program"
[ -x "$program" ] || die "$program is not there"
DESTDIR=$dir/d cmake --install "$WEIR_BUILD_DIR" --prefix /usr >"$dir/log" || die "$(cat "$dir/log")"
grep -q '^ExecStart=/usr/bin/weir serve' "$dir/d/usr/lib/systemd/system/weir.service" || die "DESTDIR is in the unit"
if grep -r '@[a-z]*@' "$dir/p/lib/systemd"; then die "a place was not filled in"; fi

# What the unit says to the program, the program knows.
arguments=$(sed -n 's/^ExecStart=[^ ]* //p' "$unit" | tr ' ' '\n' | grep '^--')
for option in $arguments; do
    "$WEIR_BUILD_DIR/weir" serve --help | grep -q "^  $option " || die "the unit passes $option, which there is not"
done

# What bounds the damage if all else fails.
for line in LimitCORE=0 MemoryMax=3G NoNewPrivileges=yes; do
    grep -qx "$line" "$unit" || die "the unit does not say $line"
done

# systemd's own opinion.
if command -v systemd-analyze >/dev/null; then
    systemd-analyze security --offline=true "$unit" >"$dir/security" 2>&1 || [ -s "$dir/security" ] ||
        die "systemd-analyze security"
    exposure=$(sed -n 's/.*Overall exposure level for weir.service: \([0-9.]*\) .*/\1/p' "$dir/security")
    [ -n "$exposure" ] || die "$(tail -3 "$dir/security")"
    awk -v e="$exposure" 'BEGIN { exit !(e <= 1.5) }' || die "the unit's exposure is $exposure, expected at most 1.5"
    systemd-analyze verify --man=no "$unit" "$dir/p/lib/systemd/system/weir.socket" >"$dir/verify" 2>&1 || true
    if grep -E 'weir\.(service|socket)' "$dir/verify"; then die "systemd-analyze verify"; fi
    echo "exposure $exposure"
else
    echo "systemd-analyze is missing: left out"
fi

# The example rules are good.
"$WEIR_BUILD_DIR/weir" config check "$source/packaging/weir.yaml" >"$dir/log" 2>&1 || die "$(cat "$dir/log")"
[ -f "$dir/p/share/doc/weir/examples/weir.yaml" ] || die "the example rules are not installed"

# The container file: its packages are those of the list, and those that the program is linked with; what it copies
# exists; it names images and no registry.
file=$source/packaging/Dockerfile
listed=$(awk '$1 == "runtime" { print $2 }' "$source/packaging/packages.txt" | sort)
there=$(sed -n 's/.*apt-get install -y --no-install-recommends \(.*\) && \\/\1/p' "$file" | tr ' ' '\n' | sort)
[ "$listed" = "$there" ] || die "packages of the container: $there; packages.txt: $listed"
if command -v dpkg-query >/dev/null && [ -z "${LD_PRELOAD:-}" ]; then
    ldd "$WEIR_BUILD_DIR/weir" | awk '/=> \// { print $1 }' | grep -v '^lib[cm]\.so' | sort >"$dir/needed"
    while read -r library; do
        owner=$(dpkg-query -S "*/$library" | cut -d: -f1 | sort -u | tr '\n' ' ')
        for package in $owner; do
            case " $(echo "$listed" | tr '\n' ' ')" in
            *" $package "*) continue 2 ;;
            esac
        done
        die "the program needs $library of $owner, which the container does not install"
    done <"$dir/needed"
fi
sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$file" | tr ' ' '\n' | while read -r path; do
    [ -e "$source/$path" ] || die "the container file copies $path, which there is not"
done
sed -n 's/^FROM \([^ ]*\).*/\1/p' "$file" | while read -r image; do
    case $image in
    */*) die "the container file names a registry: $image" ;;
    esac
done
grep -q '^USER weir$' "$file" || die "the container runs as root"
grep -q '^HEALTHCHECK .*CMD \["weir", "ctl", "ready"\]' "$file" || die "no health check"
"$WEIR_BUILD_DIR/weir" ctl --help | grep -q '^  status ' || die "the health check is no command"
grep '^CMD' "$file" | grep -o -- '--[a-z-]*' | while read -r option; do
    "$WEIR_BUILD_DIR/weir" serve --help | grep -q "^  $option " || die "the container passes $option"
done
