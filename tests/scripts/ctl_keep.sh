#!/bin/sh
# `weir ctl put --keep FILE`: the limit survives reloads and restarts, and no file of somebody else is changed.
# test-timeout: 180
set -eu
export LC_ALL=C.UTF-8
unset WEIR_ADMIN WEIR_ADMIN_SECRET WEIR_ADMIN_SECRETS RUNTIME_DIRECTORY 2>/dev/null || true
dir=$(mktemp -d)
export XDG_RUNTIME_DIR="$dir" # for the secret that the server makes
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; cat "$dir/said" "$dir/complaint" "$dir/err" >&2 2>/dev/null || true; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

start() {
    : >"$dir/out"
    "$weir" serve --resp off --http off --admin 127.0.0.1:0 --max-age 0 --config "$dir/rules" </dev/null \
        >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    admin=$(sed -n 's/^ *admin  *//p' "$dir/out")
}

stop() {
    kill -TERM "$pid"
    wait "$pid" || die "after SIGTERM: exit $?"
    pid=
}

# ctl CODE ARGUMENT...: standard output in said, standard error in complaint
ctl() {
    expected=$1
    shift
    rc=0
    timeout 60 "$weir" ctl --admin "$admin" "$@" >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
    [ "$rc" = "$expected" ] || die "ctl $*: exit $rc instead of $expected"
}
says() { grep -Eq -e "$1" "$dir/said" || die "expected '$1'"; }
complains() { grep -Fq -e "$1" "$dir/complaint" || die "expected the complaint '$1'"; }
only() { [ "$(ls -A "$dir/rules" | tr '\n' ' ')" = "$1" ] || die "found $(ls -A "$dir/rules"), expected $1"; }

mkdir "$dir/rules" "$dir/elsewhere"
printf '# by hand\nlimits: [{name: api, key: [user], rate: 2/h}]\n' >"$dir/rules/weir.yaml"
cp "$dir/rules/weir.yaml" "$dir/by-hand"
printf '# why: the spring sale\nname: sale\nkey: [user] # of the shop\n\nrate: 7/min\n' >"$dir/sale.yaml"
start

# It is written as it came, with its comments, and it stays.
umask 027
ctl 0 put "$dir/sale.yaml" --keep "$dir/rules/sale.yaml"
umask 022
says "^sale: added, and kept in $dir/rules/sale.yaml\$"
grep -q '^    # why: the spring sale$' "$dir/rules/sale.yaml" || die "a comment is lost"
[ "$(stat -c %a "$dir/rules/sale.yaml")" = 640 ] || die "the file has another mode than new files have"
only "sale.yaml weir.yaml "
timeout 60 "$weir" config check "$dir/rules" >"$dir/said" 2>"$dir/complaint" || die "config check"
ctl 0 reload
ctl 0 limits sale
says ' 7/min '
stop
start
ctl 0 limits sale
says ' 7/min '

# It is replaced by the same command, with its owner and mode; a document mark is no part of a limit.
chmod 604 "$dir/rules/sale.yaml"
printf -- '---\n{name: sale, key: [user],\n rate: 8/min}\n...\n' >"$dir/sale.yaml"
ctl 0 --json put "$dir/sale.yaml" --keep "$dir/rules/sale.yaml"
says "\"kept\": \"$dir/rules/sale.yaml\""
[ "$(stat -c %a "$dir/rules/sale.yaml")" = 604 ] || die "the mode has changed"
ctl 0 reload
ctl 0 limits sale
says ' 8/min '

# A relative name starts where the command runs, as that of the limit's file does.
(cd "$dir/rules" && ctl 0 put "$dir/sale.yaml" --keep sale.yaml) || die "a relative name"
only "sale.yaml weir.yaml "

# Files that this command has not written for this limit are refused, before the server is told of the limit.
printf 'name: other\nkey: [user]\nrate: 9/min\n' >"$dir/other.yaml"
for taken in weir.yaml sale.yaml; do
    before=$(cat "$dir/rules/$taken")
    ctl 2 put "$dir/other.yaml" --keep "$dir/rules/$taken"
    complains "exists, and was not written for this limit; expected a new file"
    [ "$(cat "$dir/rules/$taken")" = "$before" ] || die "$taken has changed"
done
ln -s "$dir/elsewhere/target" "$dir/rules/link.yaml"
ctl 2 put "$dir/other.yaml" --keep "$dir/rules/link.yaml"
complains "is not a regular file"
rm "$dir/rules/link.yaml"
ctl 1 limits other

# A limit of a file by hand is changed by hand.
printf 'name: api\nkey: [user]\nrate: 3/h\n' >"$dir/api.yaml"
ctl 2 put "$dir/api.yaml" --keep "$dir/rules/api.yaml"
complains "a rule file of the server has this limit already, in its line 2: change it there, or name that file if --keep has written it"
only "sale.yaml weir.yaml "

# Of a limit that the server refuses, nothing is written.
printf 'name: other\nkey: [user]\nrate: often\n' >"$dir/bad.yaml"
ctl 1 put "$dir/bad.yaml" --keep "$dir/rules/other.yaml"
complains "found 'often'"
only "sale.yaml weir.yaml "

# A file that the server does not read is taken back, and the limit is in effect as without --keep.
ctl 1 put "$dir/other.yaml" --keep "$dir/elsewhere/other.yaml"
complains "the server does not read $dir/elsewhere/other.yaml"
complains "in effect until the next reload; it is not kept"
[ -z "$(ls -A "$dir/elsewhere")" ] || die "the file is there"
sleep 0.5 # the watcher notices a changed file within 100 ms
ctl 0 limits other
ctl 1 put "$dir/other.yaml" --keep "$dir/nowhere/other.yaml"
complains "cannot write $dir/nowhere/other.yaml: No such file or directory"

# So is one with which the rules cannot be loaded: here another file has become wrong in the meantime.
sed -i 's|2/h|often|' "$dir/rules/weir.yaml"
until_true grep -q 'the old rules stay' "$dir/err"
ctl 1 put "$dir/other.yaml" --keep "$dir/rules/other.yaml"
complains "found 'often'"
complains "it is not kept"
only "sale.yaml weir.yaml "
cp "$dir/by-hand" "$dir/rules/weir.yaml"
until_true "$weir" ctl --admin "$admin" reload >/dev/null

# After a put without --keep the limit can be kept.
ctl 0 put "$dir/other.yaml"
says '^other: added until the next reload or restart$'
ctl 0 put "$dir/other.yaml" --keep "$dir/rules/other.yaml"
says "^other: replaced, and kept in "
stop
start
ctl 0 limits other
cmp -s "$dir/by-hand" "$dir/rules/weir.yaml" || die "the file by hand has changed"
ctl 2 limits --keep x
complains "limits has no --keep"
stop
