#!/bin/sh
# The admin secret that a server makes: where it is, who may read it, how weir ctl and weir top find it, when it is gone.
# Then the modes and groups of unix sockets, and what weir config check says about weak secrets.
# test-timeout: 120
set -eu
export LC_ALL=C
unset WEIR_ADMIN WEIR_ADMIN_SECRET WEIR_ADMIN_SECRETS WEIR_STATE RUNTIME_DIRECTORY XDG_RUNTIME_DIR 2>/dev/null || true
for tool in curl timeout stat; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
export HOME="$dir/none"
as= # runs the server and the commands as another user
die() { echo "$*" >&2; cat "$dir/said" "$dir/complaint" "$dir/err" >&2 2>/dev/null || true; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

# start OPTION...: a server; $admin and $resp are its addresses
start() {
    : >"$dir/out"
    $as "$weir" serve --http off --max-age 0 --threads 1 "$@" </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    admin=$(sed -n 's/^ *admin  *//p' "$dir/out")
    resp=$(sed -n 's/^ *resp  *//p' "$dir/out")
}

# end SIGNAL
end() {
    kill "-$1" "$pid"
    wait "$pid" 2>/dev/null || true
    pid=
}

# ctl CODE ARGUMENT...: standard output in said, standard error in complaint
ctl() {
    expected=$1
    shift
    rc=0
    timeout 60 $as "$weir" ctl --admin "$admin" "$@" >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
    [ "$rc" = "$expected" ] || die "ctl $*: exit $rc instead of $expected"
}
says() { grep -Eq -e "$1" "$dir/said" || die "expected '$1'"; }
complains() { grep -Fq -e "$1" "$dir/complaint" || die "expected the complaint '$1'"; }
mode() { [ "$(stat -c %a "$2")" = "$1" ] || die "$2 has mode $(stat -c %a "$2"), expected $1"; }
gone() { [ ! -e "$1" ] || die "$1 is there"; }

mkdir -m 700 "$dir/run" "$dir/xdg" "$dir/state" "$dir/other"

# In $RUNTIME_DIRECTORY, the first of several: 256 bits, for its owner alone. It is gone after the end.
RUNTIME_DIRECTORY=$dir/run:$dir/other XDG_RUNTIME_DIR=$dir/xdg start --resp 127.0.0.1:0 --admin 127.0.0.1:0
file=$dir/run/admin-$admin.secret
mode 600 "$file"
grep -Exq '[0-9a-f]{64}' "$file" || die "found another secret than 64 hexadecimal digits"
grep -q " admin_secret=$file" "$dir/err" || die "the log does not name the file"
! grep -q "$(cat "$file")" "$dir/out" "$dir/err" || die "the secret is in a file that is no terminal"
gone "$dir/xdg/weir"
ctl 1 limits
complains "(401)"
complains "--secret-file FILE or WEIR_ADMIN_SECRET"
ctl 0 status # counts need no secret
[ ! -s "$dir/complaint" ] || die "a secret is missed that is not needed"
says '^config +-$'
ctl 0 ready
ctl 0 --secret-file "$file" limits
ctl 1 link
complains "found no secret for $admin"
export RUNTIME_DIRECTORY="$dir/run"
ctl 0 limits
ctl 0 status
ctl 0 mode shadow
timeout 60 "$weir" top --admin "$admin" --once --interval 100ms </dev/null >"$dir/said" 2>"$dir/complaint" || die "top"
ctl 0 link
says "^http://$admin/#secret=$(cat "$file")\$"
# Of a server that listens everywhere, as in a container, a link that browsers open.
for every in "0.0.0.0:7 127.0.0.1:7" "[::]:7 [::1]:7" "0.0.0.0.example:7 0.0.0.0.example:7"; do
    printed=$(WEIR_ADMIN_SECRET=one-secret "$weir" ctl --admin "${every% *}" link)
    [ "$printed" = "http://${every#* }/#secret=one-secret" ] || die "the link for ${every% *}: $printed"
done
ctl 0 --json link
says "\"link\": \"http://$admin/#secret=$(cat "$file")\""
port=${admin##*:}
ip=$admin
admin=localhost:$port
ctl 0 limits
admin=$ip
[ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "http://$admin/v1/limits")" = 401 ] || die "limits without a secret"
[ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "http://$admin/metrics")" = 200 ] || die "no metrics without a secret"
[ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(cat "$file")" "http://$admin/v1/limits")" = 200 ] ||
    die "the secret is not valid"
# A reload keeps it.
kill -HUP "$pid"
until_true grep -q 'the old rules stay' "$dir/err" # they came from no file
ctl 0 limits

# What is not a file of this user alone is not used.
chmod 640 "$file"
ctl 1 limits
complains "$file is open to other users; expected mode 0600"
chmod 600 "$file"
mv "$file" "$dir/elsewhere"
ln -s "$dir/elsewhere" "$file"
ctl 1 limits
complains "$file is a symbolic link"
rm "$file"
mkdir "$file"
ctl 1 limits
complains "$file is not a regular file"
rmdir "$file"
mv "$dir/elsewhere" "$file"
if [ "$(id -u)" = 0 ]; then
    chown 12345 "$file"
    ctl 1 limits
    complains "$file belongs to another user"
    chown 12345 "$dir/run" # also in a folder of that user, which is not the service's
    ctl 1 limits
    complains "$file belongs to another user"
    chown 0 "$dir/run" "$file"
fi
ctl 0 limits

# A second server at the same address does not start, and leaves the file alone.
before=$(cat "$file")
rc=0
timeout 60 "$weir" serve --http off --resp off --admin "$admin" </dev/null >"$dir/said" 2>"$dir/complaint" || rc=$?
[ "$rc" = 1 ] || die "two servers at $admin: exit $rc"
[ "$(cat "$file")" = "$before" ] || die "a server that did not start has changed the file"
end TERM
gone "$file"

# A server that was killed leaves its file; the next one replaces it, also if it is a link by now.
start --resp off --admin "$admin"
end KILL
[ -f "$file" ] || die "a killed server has removed its file"
mv "$file" "$dir/elsewhere"
ln -s "$dir/elsewhere" "$file"
before=$(cat "$dir/elsewhere")
start --resp off --admin "$admin"
mode 600 "$file"
[ ! -L "$file" ] || die "a link was followed"
[ "$(cat "$dir/elsewhere")" = "$before" ] || die "what a link leads to was changed"
[ "$(cat "$file")" != "$before" ] || die "the secret is the old one"
ctl 0 limits
end TERM
gone "$file"
unset RUNTIME_DIRECTORY

# In $XDG_RUNTIME_DIR/weir; for a unix socket by its path, however it is written.
export XDG_RUNTIME_DIR="$dir/xdg"
ln -s "$dir" "$dir/link"
start --resp off --admin "unix:$dir/link/admin.sock"
file=$(echo "$dir"/xdg/weir/admin-*)
[ "$file" = "$dir/xdg/weir/admin-unix:$(echo "$dir/admin.sock" | sed 's|/|%2F|g').secret" ] || die "found $file"
mode 600 "$file"
mode 700 "$dir/xdg/weir"
ctl 0 limits
admin=unix:$dir/admin.sock
ctl 0 limits
ctl 2 link
complains "browsers cannot open unix sockets"
end TERM
gone "$file"

# Without an admin listener it is for the commands of RESP.
start --resp 127.0.0.1:0 --admin off
[ -f "$dir/xdg/weir/admin-$resp.secret" ] || die "no secret for RESP"
if command -v redis-cli >/dev/null; then
    secret=$(cat "$dir/xdg/weir/admin-$resp.secret")
    redis-cli -p "${resp##*:}" WEIR.RESET search x >"$dir/said"
    says '^NOPERM'
    redis-cli -p "${resp##*:}" --no-auth-warning -a "$secret" WEIR.RESET search x >"$dir/said"
    says '^allow'
fi
end TERM
unset XDG_RUNTIME_DIR

# Root without a session, as in a container or by cron: in a folder that is not the service's.
if [ "$(id -u)" = 0 ] && [ -w /run ]; then
    start --resp off --admin 127.0.0.1:0 --state "$dir/state"
    file=/run/weir-root/admin-$admin.secret
    mode 600 "$file"
    mode 700 /run/weir-root
    ctl 0 limits
    ctl 0 link
    timeout 60 "$weir" top --admin "$admin" --once --interval 100ms </dev/null >"$dir/said" 2>"$dir/complaint" || die "top"
    end TERM
    gone "$file"
fi

# What follows is for users who are not root.
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null || { echo "setpriv is missing" >&2; exit 77; }
    as="setpriv --reuid=12345 --regid=12345 --clear-groups"
    chmod 755 "$dir"
    cp "$weir" "$dir/weir"
    weir=$dir/weir
    # That user need not be able to reach the folder of the sources either.
    cp "$WEIR_SOURCE_DIR/tests/tsan.supp" "$dir/tsan.supp"
    TSAN_OPTIONS=$(printf '%s' "${TSAN_OPTIONS:-}" | sed "s|suppressions=[^:]*|suppressions=$dir/tsan.supp|")
    export TSAN_OPTIONS
    give() { chown -R 12345:12345 "$@"; }
else
    give() { :; }
fi

# A user without a session: in the home, whose folders are made.
mkdir -m 700 "$dir/home"
give "$dir/home" "$dir/state"
export HOME="$dir/home"
start --resp off --admin 127.0.0.1:0 --state "$dir/state"
file=$dir/home/.local/state/weir/admin-$admin.secret
mode 600 "$file"
mode 700 "$dir/home/.local/state/weir"
ctl 0 limits
ctl 0 link
end TERM
gone "$file"

# Not in a folder that others can write to, nor below a folder of somebody else.
refuse_home() {
    start --resp off --admin 127.0.0.1:0 --state "$dir/state"
    grep -q " admin_secret=$dir/state/" "$dir/err" || die "$1"
    end TERM
    chmod 700 "$dir/home/.local"
}
chmod 770 "$dir/home/.local"
refuse_home "a folder that a group can write to is used"
if [ "$(id -u)" = 0 ]; then
    chown 54321 "$dir/home/.local"
    chmod 755 "$dir/home/.local"
    refuse_home "a folder below that of somebody else is used"
fi

# In the state folder, which the commands must be told of.
export HOME="$dir/none"
start --resp off --admin 127.0.0.1:0 --state "$dir/state"
file=$dir/state/admin-$admin.secret
mode 600 "$file"
WEIR_STATE=$dir/state ctl 0 limits
ctl 1 limits
complains "or name the server's state folder in WEIR_STATE"
ctl 1 link
complains "or name the server's state folder in WEIR_STATE"
end TERM
gone "$file"

# A folder that others can write to is not used, and without any the log says what to do.
mkdir "$dir/public"
chmod 1777 "$dir/public"
export HOME="$dir/public"
RUNTIME_DIRECTORY=$dir/public XDG_RUNTIME_DIR=$dir/none start --resp off --admin 127.0.0.1:0
grep -q 'warning weir ctl cannot make changes: .*--admin-secrets' "$dir/err" || die "the log does not name --admin-secrets"
[ -z "$(ls -A "$dir/public")" ] || die "the secret is in a folder that others can write to"
ctl 1 mode shadow
complains "(401)"
ctl 0 status
end TERM
XDG_RUNTIME_DIR=$dir/public start --resp off --admin 127.0.0.1:0 --state "$dir/state"
grep -q " admin_secret=$dir/state/" "$dir/err" || die "the next folder is not used"
gone "$dir/public/weir"
gone "$dir/public/.local"
end TERM
as=
weir=$WEIR_BUILD_DIR/weir

# Secrets that are given: none is made, and the start needs no folder.
printf 'an-admin-secret-that-is-long\n' >"$dir/admin"
chmod 600 "$dir/admin"
XDG_RUNTIME_DIR=$dir/xdg start --resp off --admin 127.0.0.1:0 --admin-secrets "$dir/admin"
[ -z "$(ls -A "$dir/xdg/weir")" ] || die "a secret was made although one is given"
! grep -q warning "$dir/err" || die "a warning about good secrets"
XDG_RUNTIME_DIR=$dir/xdg ctl 1 limits
ctl 0 --secret-file "$dir/admin" limits
end TERM

# The start prints a link for a person at a terminal.
if command -v python3 >/dev/null; then
    XDG_RUNTIME_DIR=$dir/xdg timeout 60 python3 - "$weir" >"$dir/said" 2>"$dir/complaint" <<'END' || die "no link on a terminal"
import os, pty, re, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "serve", "--resp", "off", "--http", "off", "--admin", "127.0.0.1:0"])
said = b""
while not re.search(rb"\blink +http://127\.0\.0\.1:[0-9]+/#secret=[0-9a-f]{64}\r\n", said):
    said += os.read(terminal, 4096)
os.kill(pid, signal.SIGTERM)
os.waitpid(pid, 0)
END
else
    echo "python3 is missing: the terminal was left out"
fi

# Unix sockets have mode 0660, whatever the umask, or what the option or the rule file says; and their group.
umask 077
start --resp "unix:$dir/resp.sock" --admin off
mode 660 "$dir/resp.sock"
end TERM
umask 0
WEIR_SOCKET_MODE=600 start --resp "unix:$dir/resp.sock" --admin off
mode 600 "$dir/resp.sock"
end TERM
umask 022
printf "server: {socket_mode: '0666', socket_group: '%s'}\nlimits: []\n" "$(id -g)" >"$dir/rules.yaml"
start --config "$dir/rules.yaml" --resp "unix:$dir/resp.sock" --admin off
mode 666 "$dir/resp.sock"
end TERM
if [ "$(id -u)" = 0 ]; then
    start --resp "unix:$dir/resp.sock" --admin off --socket-group 12345 --socket-mode 0620
    mode 620 "$dir/resp.sock"
    [ "$(stat -c %g "$dir/resp.sock")" = 12345 ] || die "the socket has another group"
    end TERM
fi
for bad in 0 888 1000 rw; do
    rc=0
    timeout 60 "$weir" serve --socket-mode "$bad" </dev/null >"$dir/said" 2>"$dir/complaint" || rc=$?
    [ "$rc" = 2 ] || die "--socket-mode $bad: exit $rc"
    complains "expected a mode in octal"
done
rc=0
timeout 60 "$weir" serve --http off --admin off --resp "unix:$dir/resp.sock" --socket-group no-such-group </dev/null \
    >"$dir/said" 2>"$dir/complaint" || rc=$?
[ "$rc" = 2 ] || die "--socket-group no-such-group: exit $rc"
complains "found 'no-such-group', expected a group of this system"
gone "$dir/resp.sock"

# The group and the mode are checked without unix sockets too; if they have no effect, the log says so.
rc=0
timeout 60 "$weir" serve --http off --admin off --resp 127.0.0.1:0 --socket-group no-such-group </dev/null \
    >"$dir/said" 2>"$dir/complaint" || rc=$?
[ "$rc" = 2 ] || die "--socket-group no-such-group without a unix socket: exit $rc"
complains "found 'no-such-group', expected a group of this system"
start --resp 127.0.0.1:0 --admin off --socket-group "$(id -g)"
grep -q 'warning .*socket_group has no effect' "$dir/err" || die "no word of a useless --socket-group"
end TERM
start --resp 127.0.0.1:0 --admin off --socket-mode 0600
grep -q 'warning .*socket_mode has no effect' "$dir/err" || die "no word of a useless --socket-mode"
end TERM
start --resp "unix:$dir/resp.sock" --admin off --socket-group "$(id -g)" --socket-mode 0600
! grep -q 'no effect' "$dir/err" || die "a warning about a useful group and mode"
end TERM

# weir config check warns of weak secrets, without showing them.
printf 'short\nlong-enough-for-a-secret\n' >"$dir/check"
printf 'long-enough-for-a-secret\n' >"$dir/admin"
chmod 600 "$dir/check"
chmod 644 "$dir/admin"
printf 'server: {check_secrets: check, admin_secrets: admin}\nlimits: [{name: api, key: [user], rate: 1/s}]\n' >"$dir/rules.yaml"
timeout 60 "$weir" config check "$dir/rules.yaml" >"$dir/said" 2>"$dir/complaint" || die "config check"
complains "$dir/check:1:1: warning: a secret is short enough to be guessed: found 5 bytes, expected at least 16 bytes"
complains "$dir/admin: warning: a file of secrets can be read by other users: found 0644, expected 0600 or 0400"
complains "$dir/check: warning: a secret is valid for both roles"
! grep -q 'long-enough' "$dir/complaint" || die "a secret is shown"
start --config "$dir/rules.yaml" --resp off --admin 127.0.0.1:0
grep -q 'warning a secret is short enough to be guessed' "$dir/err" || die "no warning at the start"
grep -q 'warning a secret is valid for both roles' "$dir/err" || die "no warning about sharing at the start"
end TERM
