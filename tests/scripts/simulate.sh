#!/bin/sh
# `weir simulate` as it is typed: without options it shows the fixed window's edge beside the others; the same arguments
# give the same bytes; what it cannot do it says, and does nothing; its pictures are well-formed and need no other file.
set -eu
export LC_ALL=C.UTF-8
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; exit 1; }

# Without options: the lesson.
"$weir" simulate >"$dir/bare"
grep -Eq '^  fixed_window .* 200 = 2[.]00x ' "$dir/bare" || die "the edge of the fixed window is not shown"
grep -Eq '^  sliding_window .* 109 = 1[.]09x ' "$dir/bare" || die "no sliding window beside it"
grep -Eq '^  sliding_log .* 100 = 1[.]00x ' "$dir/bare" || die "no log beside it"
grep -Eq '^  token_bucket .* 119 = 1[.]19x ' "$dir/bare" || die "no token bucket beside it"
[ "$(grep -c 'worst [0-9]' "$dir/bare")" = 5 ] || die "not a chart for each"
grep -q '█' "$dir/bare" || die "no blocks in a UTF-8 locale"
LC_ALL=C "$weir" simulate | LC_ALL=C grep -q '[^ -~]' && die "more than ASCII in the C locale"
"$weir" simulate --ascii | LC_ALL=C grep -q '[^ -~]' && die "more than ASCII with --ascii"

# The same bytes, or others where chance has a part.
for shape in steady burst onoff poisson edge herd all steady,herd; do
    for out in svg html; do
        for n in 1 2; do
            "$weir" simulate --shape $shape --clients 2 --seed 7 --out "$dir/$n.$out" >"$dir/$n.txt"
        done
        cmp "$dir/1.txt" "$dir/2.txt" || die "$shape: another text"
        cmp "$dir/1.$out" "$dir/2.$out" || die "$shape: another $out"
        mv "$dir/1.$out" "$dir/$shape.$out"
    done
    "$weir" simulate --shape $shape --clients 2 --seed 8 >"$dir/3.txt"
    case $shape in
    poisson | all) cmp -s "$dir/1.txt" "$dir/3.txt" && die "$shape: the seed does nothing" ;;
    *) cmp "$dir/1.txt" "$dir/3.txt" || die "$shape: the seed does something" ;;
    esac
done

# A trace, also through a pipe; a rule file, alone and beside an algorithm.
printf 'request a 0\nrequest a 1\nrequest b 1\nrequest a 2 2\n' >"$dir/t.trace"
"$weir" simulate --trace "$dir/t.trace" --rate 3/10s --algorithm sliding_log --out "$dir/trace.svg" >"$dir/1.txt"
"$weir" simulate --trace - --rate 3/10s --algorithm sliding_log <"$dir/t.trace" >"$dir/2.txt"
for n in 1 2; do
    grep -Eq '^  sliding_log +5 +3 +2 +2 = 0[.]67x +8 s$' "$dir/$n.txt" || die "not the numbers of the trace"
done
cat >"$dir/<r&d>.yaml" <<'END'
limits:
  - {name: login, when: {path: /login}, key: [ip], rate: 5/min, algorithm: fixed_window}
  - {name: pro, when: {path: /x}, key: [user], rate: 7/min, tiers: {by: tier, default: free, free: {}, pro: {rate: 9/min}}}
  - {name: everyone, key: [], rate: 20/min}
END
"$weir" simulate --rules "$dir/<r&d>.yaml" --path /login --out "$dir/rules.svg" >"$dir/1.txt"
grep -q '^quota 5/min ' "$dir/1.txt" || die "the limit that binds does not give the rate"
grep -Eq 'bound by login: admitted 20, denied 12$' "$dir/1.txt" || die "login is not named"
grep -Eq ' 10 = 2[.]00x ' "$dir/1.txt" || die "the rule file's edge is not shown"
"$weir" simulate --rules "$dir/<r&d>.yaml" --path /login --clients 3 --out "$dir/rules.html" >"$dir/1.txt"
grep -q 'bound by everyone: ' "$dir/1.txt" || die "everyone does not bind"
"$weir" simulate --rules "$dir/<r&d>.yaml" --path /x --attribute tier=pro --method POST >"$dir/1.txt"
grep -q '^quota 9/min ' "$dir/1.txt" || die "the attribute was not passed"
"$weir" simulate --rules "$dir/<r&d>.yaml" --path /x >"$dir/1.txt"
grep -q '^quota 7/min ' "$dir/1.txt" || die "a tier without the attribute"
"$weir" simulate --rules "$dir/<r&d>.yaml" --path /login --algorithm fixed_window --rate 5/min >"$dir/1.txt"
[ "$(grep -c ' 10 = 2[.]00x ' "$dir/1.txt")" = 2 ] || die "a rule file is not what its limit is"

# A trace of attributes: each line with its own, at its own time of the day (10 s before midnight, 2023-11-14 UTC).
cat >"$dir/e.trace" <<'END'
# a login at midnight
{"time": 1700006390, "path": "/login", "ip": "192.0.2.1", "cost": 2}
{"time": 1700006390.5, "path": "/login", "ip": "192.0.2.1", "cost": 2}
{"time": 1700006400.25, "path": "/login", "ip": "192.0.2.1", "cost": 2}
{"time": 1700006401, "path": "/free", "ip": "192.0.2.1"}
{"time": 1700006402, "path": "/login", "ip": "192.0.2.2"}
END
echo 'limits: [{name: daily, when: {path: /login}, key: [ip], rate: 3/day, algorithm: fixed_window}]' >"$dir/daily.yaml"
"$weir" simulate --trace "$dir/e.trace" --rules "$dir/daily.yaml" --rate 3/min >"$dir/1.txt"
head -n 1 "$dir/1.txt" | grep -q '^e.trace: a login at midnight$' || die "the trace's title is not shown"
grep -q 'bound by daily: admitted 5, denied 2$' "$dir/1.txt" || die "the day does not end at midnight"
grep -q 'bound by (no limit): admitted 1, denied 0$' "$dir/1.txt" || die "no word of what no limit bound"
"$weir" simulate --trace "$dir/e.trace" --rules "$dir/daily.yaml" >"$dir/1.txt"
grep -q '^quota 3/day ' "$dir/1.txt" || die "the limit that binds the trace does not give the rate"

# Each limit that bound is named; of very many the last ones together; lists and missing attributes too.
{
    echo 'allow: [{ip: 192.0.2.7}]'
    echo 'block: [{ip: 192.0.2.8}]'
    echo 'limits:'
    echo '  - {name: owner, when: {path: /owner}, key: [user], rate: 1/s, on_missing: deny}'
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        echo "  - {name: l$i, when: {path: /$i}, key: [ip], rate: 1/h}"
        for ip in 1 1; do echo "{\"time\": $i, \"path\": \"/$i\", \"ip\": \"192.0.2.$ip\"}" >>"$dir/many.trace"; done
    done
} >"$dir/many.yaml"
for ip in 7 8 9; do echo "{\"time\": 0, \"path\": \"/owner\", \"ip\": \"192.0.2.$ip\"}"; done >>"$dir/many.trace"
"$weir" simulate --trace "$dir/many.trace" --rules "$dir/many.yaml" --rate 1/h >"$dir/1.txt"
grep -q 'bound by (allow list): admitted 1, denied 0$' "$dir/1.txt" || die "no allow list"
grep -q 'bound by (block list): admitted 0, denied 1$' "$dir/1.txt" || die "no block list"
grep -q 'bound by (missing attribute): admitted 0, denied 1$' "$dir/1.txt" || die "no missing attribute"
grep -q 'bound by l1: admitted 1, denied 1$' "$dir/1.txt" || die "l1 is not named"
grep -q 'bound by (others): admitted 8, denied 8$' "$dir/1.txt" || die "the rest is not counted"
grep -Eq '^  .*many[.]yaml +43 +21 +22 ' "$dir/1.txt" || die "not all is counted"
grep -q 'of the denied, 2 can never fit$' "$dir/1.txt" || die "what can never fit is not counted"

# Of a queue of 8, five need not wait: six units leave at once, and the ninth after 300 ms.
"$weir" simulate --algorithm leaky_bucket --rate 10/s --shape burst --queue 8 --undelayed 5 --ascii >"$dir/undelayed.txt"
grep -Eq '^  leaky_bucket +60 +36 +24 +9 = 0[.]90x +28[0-9][.][0-9]+ ms$' "$dir/undelayed.txt" || die "undelayed units wait"

# What it cannot do: exit code 2, one word of why, nothing on standard output, no file.
printf 'limits:\n  - {name: a, rat: 5/min}\n  - {name: b, rate: 5/month}\n' >"$dir/bad.yaml"
refused() { # refused message arguments...
    message=$1
    shift
    rc=0
    "$weir" simulate --out "$dir/no.svg" "$@" >"$dir/output" 2>"$dir/error" || rc=$?
    [ "$rc" = 2 ] || die "weir simulate $*: exit $rc instead of 2"
    grep -qF -- "$message" "$dir/error" || { cat "$dir/error" >&2; die "weir simulate $*: expected '$message'"; }
    [ ! -s "$dir/output" ] || die "weir simulate $*: it printed something"
    [ ! -e "$dir/no.svg" ] || die "weir simulate $*: it drew something"
}
refused "unknown shape 'egde'; did you mean 'edge'?" --shape egde
refused "unknown shape 'x'; 'weir simulate --help' lists them" --shape steady,x
refused "unknown shape ''" --shape steady,
refused "unknown algorithm 'tokenbucket'; did you mean 'token_bucket'?" --algorithm tokenbucket
refused "unknown option '--shap'; did you mean '--shape'?" --shap edge
refused "--rate: " --rate 10
refused "--rate: " --rate 0/s
refused "found a rate per calendar month" --rate 5/month
refused "token_bucket: " --rate 1/100ns --duration 1us --algorithm token_bucket
refused "sliding_log: count 70000" --rate 70k/min --algorithm sliding_log
refused "--clients: found '0', expected a whole number from 1 to 100000" --clients 0
refused "--clients: " --clients -1
refused "--load: found '0', expected a whole number from 1 to 100000" --load 0%
refused "--duration: " --duration 1
refused "--duration: found '20000d', expected a duration from 1us to 10950day" --duration 20000d
refused "--duration: found '1ns', expected a duration from 1us to 10950day" --duration 1ns
refused "more than 5000000 requests" --rate 1000/s --duration 30d
refused "--seed: " --seed x
refused "--out: found 'x.png', expected FILE.svg or FILE.html" --out x.png
refused "--out: found '.svg', expected FILE.svg or FILE.html" --out .svg
refused "found --trace and --shape, expected one of them" --trace "$dir/t.trace" --shape edge
refused "found --unit without --trace, expected both" --unit ms
refused "found --path without --rules, expected both" --path /
refused "--attribute: found 'tier', expected NAME=VALUE" --rules "$dir/<r&d>.yaml" --attribute tier
refused "found --burst, which is for token_bucket only" --burst 5 --algorithm sliding_log
refused "found --queue, which is for leaky_bucket only" --queue 5 --algorithm sliding_log
refused "found --undelayed, which is for leaky_bucket only" --undelayed 5 --algorithm sliding_log
refused "undelayed is more than queue" --undelayed 5 --queue 4 --algorithm leaky_bucket
refused 't.trace:2: found ' --trace "$(printf 'request a 1\nrequest a x\n' >"$dir/x-t.trace"; echo "$dir/x-t.trace")"
refused "no.trace: cannot be opened: No such file or directory" --trace "$dir/no.trace"
refused "bad.yaml:2:" --rules "$dir/bad.yaml"
refused "bad.yaml:3:" --rules "$dir/bad.yaml"
refused "weir simulate: $dir/bad.yaml: found errors in the rules" --rules "$dir/bad.yaml"
refused "no.yaml: " --rules "$dir/no.yaml"
refused "no limit applies to the first request" --rules "$(printf 'limits: [{name: a, when: {path: /a}, key: [ip], rate: 1/s}]\n' >"$dir/a.yaml"; echo "$dir/a.yaml")"
refused "found 'edge', expected options only" edge

rc=0
"$weir" simulate --out "$dir/none/x.svg" >/dev/null 2>"$dir/error" || rc=$?
[ "$rc" = 1 ] || die "a file that cannot be written: exit $rc instead of 1"
grep -q 'cannot write .*none/x.svg: No such file or directory' "$dir/error" || die "not named"
if [ -w /dev/full ]; then
    ln -s /dev/full "$dir/full.svg"
    rc=0
    "$weir" simulate --out "$dir/full.svg" >/dev/null 2>"$dir/error" || rc=$?
    [ "$rc" = 1 ] || die "a full disk: exit $rc instead of 1"
fi

# A default algorithm that cannot hold the quota is left out, with a word; the others go on.
"$weir" simulate --rate 70k/min >"$dir/1.txt" 2>"$dir/error"
grep -q 'sliding_log: count 70000' "$dir/error" || die "no word of the log"
grep -q '^  sliding_log ' "$dir/1.txt" && die "the log is in the table"
grep -Eq '^  fixed_window .* 140000 = 2[.]00x ' "$dir/1.txt" || die "the others do not go on"

# Pictures: well-formed, no script, nothing from elsewhere.
if command -v python3 >/dev/null; then
    well_formed() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"; }
elif command -v xmllint >/dev/null; then
    well_formed() { xmllint --noout "$1"; }
else
    well_formed() { missing=1; }
fi
for f in "$dir"/*.svg "$dir"/*.html; do
    [ -L "$f" ] && continue
    well_formed "$f" || die "$f is not well-formed"
    grep -Eq '<script|href=|src=|url\(|@import' "$f" && die "$f needs something else"
    grep -q 'prefers-color-scheme:dark' "$f" || die "$f is only light"
done
[ -z "${missing:-}" ] || { echo "neither python3 nor xmllint: the pictures were not parsed"; exit 77; }
echo "simulate ok"
