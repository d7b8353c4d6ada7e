#!/bin/sh
# test-labels: nosan
# Each public header, included alone and twice, and what it offers for initialising, is clean as C99, C11 and C++11,
# with strict warnings.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
strict="-pedantic -Wall -Wextra -Wundef -Wcast-qual -Werror -fsyntax-only -I$WEIR_SOURCE_DIR/include"

uses() { # uses header: the body of a program that initialises what callers do
    case $1 in
    weir.h)
        echo '    struct weir_options options = WEIR_OPTIONS_INIT;'
        echo '    return weir_open(0, &options, 0) == 0;'
        ;;
    weir_rules.h)
        echo '    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;'
        echo '    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("path", "/x")};'
        echo '    struct weir_rules_answer answer;'
        echo '    struct weir_rules_question question;'
        echo '    memset(&question, 0, sizeof question);'
        echo '    question.attributes = with;'
        echo '    question.attributes_count = sizeof with / sizeof with[0];'
        echo '    return weir_rules_open(0, "x", &options, 0) == 0 && weir_rules_ask(0, &question, &answer, 0) == 0 &&'
        echo '           answer.answer.remaining != WEIR_UNLIMITED;'
        ;;
    weir_fleet.h)
        echo '    struct weir_fleet_options options = WEIR_FLEET_OPTIONS_INIT;'
        echo '    struct weir_fleet_limit_options limit = WEIR_FLEET_LIMIT_OPTIONS_INIT;'
        echo '    struct weir_fleet_stats stats;'
        echo '    stats.size = sizeof stats;'
        echo '    limit.consistency = WEIR_FLEET_LEASED;'
        echo '    return weir_fleet_open(0, &options, 0) == 0 && weir_fleet_limit_open(0, 0, &limit, 0) == 0 &&'
        echo '           weir_fleet_stats_read(0, &stats) == 0 && weir_ring_open(0, 0, 0, 0) == 0;'
        ;;
    *) echo '    return 0;' ;;
    esac
}

for header in "$WEIR_SOURCE_DIR"/include/*.h; do
    name=${header##*/}
    {
        printf '#include <%s>\n#include <%s>\nint main(void)\n{\n' "$name" "$name"
        uses "$name"
        echo '}'
    } >"$dir/a.c"
    cp "$dir/a.c" "$dir/a.cc"
    for std in c99 c11; do
        # shellcheck disable=SC2086
        "${CC:-cc}" -std=$std $strict -Wshadow -Wstrict-prototypes "$dir/a.c"
    done
    for std in c++11 c++20; do
        # shellcheck disable=SC2086
        "${CXX:-g++}" -std=$std $strict "$dir/a.cc"
    done
    echo "$name: C99, C11, C++11, C++20"
done
