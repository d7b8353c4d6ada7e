#!/bin/sh
# test-labels: nosan
# The check of the bounds accepts this tree, and refuses a bound without a row, a row without a bound, and a row with an
# old value. Exceptions are counted here: a new one needs a thought, and this number.
set -eu
check=$WEIR_SOURCE_DIR/scripts/check-bounds
exceptions=48
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$check" "$WEIR_SOURCE_DIR"
found=$(grep -c '^BOUND_EXCEPTION(' "$WEIR_SOURCE_DIR/src/server/bounds.def")
[ "$found" -eq "$exceptions" ] || {
    echo "found $found exceptions in src/server/bounds.def, expected $exceptions: is the new one really no client's to fill?" >&2
    exit 1
}

fresh_tree() {
    rm -rf "$tree/src" "$tree/include"
    mkdir -p "$tree/src/server/loop" "$tree/src/fleet" "$tree/src/common" "$tree/include"
    printf '%s\n' 'BOUND("a.h", SERVER_MAX, (2u << 4), "things",' '    "at", "who", "same", "other")' \
        'BOUND_OPTION("a.h", idle_ms, 5, "ms",' '    "at", "who", "same", "other")' \
        'BOUND_EXCEPTION("a.h", PAUSE_MS, "a pause")' >"$tree/src/server/bounds.def"
    cat >"$tree/src/server/loop/a.h" <<'EOF'
#define SERVER_MAX \
    (2u << 4) /* things */
#define PAUSE_MS 10 /* that
                     * ends */
struct server_options {
    uint64_t idle_ms; /* or so */
};
struct other {
    int wait_ms;
};
EOF
    echo '#define LINE_BYTES 80' >"$tree/src/common/b.h" # not of the server
}

refuses() { # refuses file line-of-source what-it-must-say
    fresh_tree
    printf '%s\n' "$2" >>"$tree/src/$1"
    if said=$("$check" "$tree" 2>&1); then
        echo "not refused: $2 in $1" >&2
        exit 1
    fi
    case $said in
    *"$3"*) ;;
    *) echo "refused $2 in $1, but said: $said" >&2; exit 1 ;;
    esac
}

fresh_tree
"$check" "$tree"
refuses server/loop/c.c '#define QUEUE_BYTES 5' 'src/server/loop/c.c:1: QUEUE_BYTES has no row'
refuses fleet/d.c '#  define READS_MAX 5' 'src/fleet/d.c:1: READS_MAX has no row'
refuses server/loop/c.c '#define LIMIT_OF(x) (x)' 'LIMIT_OF has no row'
refuses server/loop/c.c '#define SERVER_MAX 5' 'SERVER_MAX has no row' # of another file
refuses server/loop/c.h 'struct b_options {
    unsigned most;
    uint64_t write_ms;
};' 'src/server/loop/c.h:3: write_ms has no row'
refuses server/loop/c.h 'struct b_options {
    unsigned first_max, second;
};' 'first_max has no row'
refuses server/loop/c.h 'struct b_options {
    unsigned first_max, /* which goes on */
        second;
};' 'first_max has no row'
refuses server/loop/c.h 'struct b_options {
    unsigned http2_max[5];
};' 'http2_max has no row'
refuses server/loop/c.h 'struct b_options {
    unsigned a_limit : 3;
};' 'a_limit has no row'
refuses server/loop/c.c 'enum { PLACES = 4, CALLS_MAX = 5 };' 'CALLS_MAX has no row'
refuses server/loop/c.c 'enum places {
    PLACES = 4, /* of all */
    CALLS_MAX = 5,
};' 'src/server/loop/c.c:3: CALLS_MAX has no row'
refuses fleet/d.c 'static const unsigned most_bytes = 5;' 'most_bytes has no row'
refuses fleet/d.c 'const size_t wait_ms[] = {5, WAIT};' 'wait_ms has no row'
refuses fleet/d.c 'static const size_t room_bytes = sizeof(int);' 'room_bytes has no row'
refuses server/loop/c.c '/* after words */ #define BEHIND_MAX 5' 'BEHIND_MAX has no row'
refuses server/bounds.def 'BOUND("a.h", GONE_MAX, 1, "things",' 'a.h has no GONE_MAX'
refuses server/bounds.def 'BOUND_EXCEPTION("a.h", GONE_MS, "a pause")' 'a.h has no GONE_MS'
refuses server/bounds.def 'BOUND_EXCEPTION("a.h", SERVER_MAX, "a pause")' 'a second row'
refuses server/loop/a.h '#undef SERVER_MAX
#define SERVER_MAX 33' 'SERVER_MAX is 33, not 2u<<4'
