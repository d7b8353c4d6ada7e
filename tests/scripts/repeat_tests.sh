#!/bin/sh
# test-labels: nosan
# scripts/run-tests repeats once what a busy machine explains, and nothing else: seen in a project of fake tests.
set -eu
for tool in ctest cmake python3; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
run_tests=$WEIR_SOURCE_DIR/scripts/run-tests
export WEIR_UNSTABLE="$dir/UNSTABLE.md" JOBS=2
die() { echo "$*" >&2; cat "$dir/out" >&2; exit 1; }

# project NAME 'LABEL COMMAND' ...: tests t1, t2, ...; in a command, "first FILE" succeeds at its first call
project() {
    name=$1
    shift
    mkdir -p "$dir/$name"
    cat >"$dir/first" <<'END'
[ ! -e "$1" ] && : >"$1"
END
    {
        echo 'cmake_minimum_required(VERSION 3.20)
project(fake NONE)
enable_testing()'
        n=0
        for line; do
            n=$((n + 1))
            echo "add_test(NAME t$n COMMAND sh -c [=[first() { sh '$dir/first' '$dir/$name/'\$1; }; ${line#* }]=])"
            echo "set_tests_properties(t$n PROPERTIES LABELS ${line%% *} TIMEOUT 2 SKIP_RETURN_CODE 77)"
        done
    } >"$dir/$name/CMakeLists.txt"
    cmake -S "$dir/$name" -B "$dir/$name/build" ${SANITIZE:+-DWEIR_SANITIZE="$SANITIZE"} >/dev/null 2>&1
}

# expect STATUS 'LAST LINE' REPEATED PROJECT...: REPEATED is what Testing/repeated has, or "none"
expect() {
    status=$1
    last=$2
    repeated=$3
    shift 3
    project "$@"
    rc=0
    "$run_tests" "$dir/$1/build" >"$dir/out" 2>&1 </dev/null || rc=$?
    [ "$rc" = "$status" ] || die "$1: exit $rc, expected $status"
    [ "$(tail -1 "$dir/out")" = "$last" ] || die "$1: the last line is not: $last"
    found=$(paste -s -d ',' "$dir/$1/build/Testing/repeated")
    [ "${found:-none}" = "$repeated" ] || die "$1: repeated $found, expected $repeated"
}
says() { grep -qF "$*" "$dir/out" || die "not said: $*"; }

: >"$WEIR_UNSTABLE"
expect 0 "1 passed, 0 failed, 1 skipped" none calm "server true" "server exit 77"

# What a busy machine explains is repeated, and passes or fails for good.
for label in server store fleet script page example; do
    expect 0 "2 passed, 0 failed" "t1 (did not start in time)" "late_$label" "$label ! first a || exit 75" "unit true"
done
expect 0 "1 passed, 0 failed" "t1 (time limit)" slow "server ! first a || sleep 20"
says "repeated: t1 (time limit); enter it in tests/UNSTABLE.md with the next commit"
expect 1 "1 passed, 1 failed" none twice "server exit 75" "server true"
expect 1 "0 passed, 1 failed" none turned "server first a && exit 75; exit 1"

# Nothing else is: other labels, wrong results, crashes, reports of sanitizers, also beside a late test.
expect 1 "0 passed, 1 failed" none label "unit ! first a || exit 75"
expect 1 "0 passed, 1 failed" none comparison "server ! first a || exit 1"
expect 1 "0 passed, 1 failed" none abort 'server ! first a || kill -ABRT $$'
expect 1 "0 passed, 1 failed" none segfault 'server ! first a || kill -SEGV $$'
expect 1 "0 passed, 1 failed" none killed 'server ! first a || kill -KILL $$'
expect 1 "0 passed, 1 failed" none report "server ! first a || { echo '==1==ERROR: AddressSanitizer: heap-use-after-free'; exit 75; }"
expect 1 "0 passed, 1 failed" none late_report "server ! first a || { echo 'x.c:1:2: runtime error: overflow'; sleep 20; }"
expect 1 "0 passed, 1 failed" none late_crash "server ! first a || { echo 'Segmentation fault'; exit 75; }"
expect 1 "0 passed, 1 failed" none late_heap "server ! first a || { echo 'free(): invalid pointer'; sleep 20; }"
expect 1 "0 passed, 1 failed" none late_stack "server ! first a || { echo '*** stack smashing detected ***: terminated'; exit 75; }"
expect 1 "0 passed, 1 failed" none late_count "server ! first a || { echo '[  FAILED  ] sums'; sleep 20; }"
expect 1 "0 passed, 2 failed" none beside "server ! first a || exit 75" "server ! first b || exit 1"
SANITIZE=address expect 1 "0 passed, 1 failed" none sanitized "server ! first a || exit 75"

# Three in a run, not four.
late='server ! first'
expect 0 "3 passed, 0 failed" "t1 (did not start in time),t2 (did not start in time),t3 (did not start in time)" three \
    "$late a || exit 75" "$late b || exit 75" "$late c || exit 75"
expect 1 "0 passed, 4 failed" none four "$late a || exit 75" "$late b || exit 75" "$late c || exit 75" "$late d || exit 75"
says "4 tests were late, at most 3 may be repeated"

# The list of past repeats.
day() { date -u -d "$1 days ago" +%Y-%m-%d; }
entry() { echo "| \`$1\` | $(day "$2") | not ready after 60 s |"; }
{ entry t1 2; entry other 7; } >"$WEIR_UNSTABLE"
expect 0 "1 passed, 0 failed" "t1 (did not start in time)" once "$late a || exit 75"
{ entry t1 2; entry t1 1; } >"$WEIR_UNSTABLE"
expect 1 "0 passed, 1 failed" none thrice "$late a || exit 75"
says "t1 failed, and stands in UNSTABLE.md 2 times already: mend its cause"
{ entry t1 2; entry t1 1; entry t1 0; } >"$WEIR_UNSTABLE"
expect 1 "1 passed, 0 failed" none three_entries "server true"
says "t1 stands in UNSTABLE.md 3 times, expected fewer than 3"
entry t1 8 >"$WEIR_UNSTABLE"
expect 1 "1 passed, 0 failed" none old "server true"
says "t1 stands in UNSTABLE.md for 8 days, expected at most 7"
echo '| `t1` | yesterday | x |' >"$WEIR_UNSTABLE"
expect 1 "1 passed, 0 failed" none unreadable "server true"
says "UNSTABLE.md:1: found"

# The status has one function in each language.
found=$(cd "$WEIR_SOURCE_DIR" && grep -rlE '\bNOT_STARTED\b|exit\(75\)|exit 75\b' tests examples | sort | paste -s -d ' ')
expected="tests/scripts/repeat_tests.sh tests/support/scripts/starting.py tests/support/scripts/until_true.sh"
expected="$expected tests/support/server/await_start.c tests/support/server/await_start.h"
[ "$found" = "$expected" ] || die "exit status 75 is used in: $found"

# Whatever starts programs in the background waits for them with it. The others start nothing that becomes ready: copies of
# a test, and programs that run to their end.
found=$(cd "$WEIR_SOURCE_DIR" && {
    grep -rlE '\b(exec(v|vp|ve|l|lp|le)|posix_spawnp?)\(|\bPopen\(' tests examples --include='*.c' --include='*.py'
    grep -rlE '[^&>0-9] &( *#.*)?$' tests --include='*.sh'
} | xargs grep -L await_start | sort | paste -s -d ' ')
expected="tests/process/test_containers.c tests/scripts/replay.sh tests/scripts/terminal.py"
expected="$expected tests/support/scripts/share_file.sh tests/unit/cli/test_serve_seccomp.c"
[ "$found" = "$expected" ] || die "programs are started without await_start in: $found, expected $expected"
