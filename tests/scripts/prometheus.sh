#!/bin/sh
# packaging/prometheus: the configuration and the alerts are good, and each alert fires when it should and only then. The
# dashboard and the alerts name only metrics and labels that the server has. An alert that is also a notice says what the
# notice says.
# test-timeout: 120
set -eu
export LC_ALL=C
command -v promtool >/dev/null || { echo "promtool is missing" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$*" >&2; cat "$dir/log" >&2; exit 1; }

cd "$WEIR_SOURCE_DIR/packaging/prometheus"
promtool check config prometheus.yml >"$dir/log" 2>&1 || die "prometheus.yml"
promtool check rules weir.rules.yml >"$dir/log" 2>&1 || die "weir.rules.yml"
promtool test rules weir.rules.test.yml >"$dir/log" 2>&1 || die "weir.rules.test.yml"
# A rule that no test mentions is not tested.
sed -n 's/^ *- alert: //p' weir.rules.yml >"$dir/alerts"
[ -s "$dir/alerts" ] || die "no alerts"
while read -r alert; do
    grep -q "alertname: $alert\$" weir.rules.test.yml || die "no test in which $alert fires"
    grep -q "\`$alert\`" "$WEIR_SOURCE_DIR/docs/guide/operate.md" || die "docs/guide/operate.md does not explain $alert"
done <"$dir/alerts"
# Each line: the alert of a notice, its severity, what clients get now and what to do.
"$WEIR_BUILD_DIR/make_manual" --notices |
    awk -F ' [|] ' '/^[|] `/ { gsub(/[`| ]/, "", $6); print $6 "\t" $2 "\t" $4 " " $5 }' >"$dir/notices"
[ -s "$dir/notices" ] || die "no notices"
tr -s ' \n' '  ' <weir.rules.yml | sed 's/ - alert: /\n/g' >"$dir/folded"
while IFS='	' read -r alert severity words; do
    grep "^$alert " "$dir/folded" >"$dir/alert" || die "there is no alert $alert, which a notice names"
    grep -qF "severity: $severity}" "$dir/alert" || die "$alert is not $severity, as its notice is"
    grep -qF "$words" "$dir/alert" || die "the description of $alert is not that of its notice: $words"
done <"$dir/notices"
grep -oE '\b(weir|process)_[a-z_]+' weir.rules.yml weir-dashboard.json | sed 's/.*://; s/_bucket$//' | sort -u >"$dir/named"
while read -r name; do
    grep -qE "(ONE|SERIES)\(\"$name\"|^ *\"$name\"" "$WEIR_SOURCE_DIR/src/server/admin/metrics.c" ||
        die "$name is no metric of the server"
done <"$dir/named"
