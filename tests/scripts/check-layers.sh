#!/bin/sh
# test-labels: nosan
# The layer check accepts this tree, and refuses each kind of include, folder and name that it is there to refuse.
set -eu
check=$WEIR_SOURCE_DIR/scripts/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$check" "$WEIR_SOURCE_DIR"

fresh_tree() {
    rm -rf "$tree/src"
    mkdir -p "$tree/include" "$tree/src/base" "$tree/src/algo" "$tree/src/table" "$tree/src/cli"
    printf 'base :\nalgo : base # x\ntable : base\ncli : everything\n' >"$tree/src/LAYERS"
    printf 'struct slot {\n};\n' >"$tree/include/weir.h"
    printf 'struct line {\n    struct place {\n    } at;\n};\nenum state { ON };\n' >"$tree/src/table/slot.h"
    printf 'struct row *f(struct line *l);\nstruct row {\n};\n' >"$tree/src/table/one.c"
    echo '#include "base/clock.h"' >"$tree/src/algo/a.c"
    printf '#include <weir.h>\n#include "algo/a.h"\n# include "table/t.h"\n' >"$tree/src/cli/main.c"
}

refuses() { # refuses file line-of-source what-it-must-say
    fresh_tree
    mkdir -p "$(dirname "$tree/src/$1")"
    printf '\n%s\n' "$2" >"$tree/src/$1"
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
refuses base/b.c '#include "algo/a.h"' 'src/base/b.c:2: base may not include algo'      # up
refuses table/t.h '#  include "algo/a.h"' 'src/table/t.h:2: table may not include algo'  # sideways
refuses base/b.c '#include <table/t.h>' 'base may not include table'                     # in disguise
refuses algo/b.c '#include "a.h"' 'from src/'
refuses algo/b.c '#include "../base/clock.h"' 'from src/'
refuses algo/b.c '#include "nowhere/x.h"' 'in no layer'
refuses other/o.c '' 'not listed in src/LAYERS'
refuses stray.c '' 'belongs into a layer'
refuses LAYERS 'base : table' 'src/LAYERS:2: base names table, which is not listed above it'

# Two types never share a name: not in two headers, nor in a source and a header. In two sources they may.
refuses algo/a.h 'struct line {' 'src/table/slot.h:1: line is defined in src/algo/a.h:2 too'
refuses algo/a.h 'enum line { OFF };' 'src/table/slot.h:1: line is defined in src/algo/a.h:2 too'
refuses algo/a.h 'union state {' 'src/table/slot.h:5: state is defined in src/algo/a.h:2 too'
refuses algo/a.h 'struct slot {' 'src/algo/a.h:2: slot is defined in include/weir.h:1 too'
refuses algo/a.h 'typedef struct place {' 'src/table/slot.h:2: place is defined in src/algo/a.h:2 too'
refuses table/a.h 'struct row {' 'src/table/one.c:2: row is defined in src/table/a.h:2 too'
refuses cli/c.c '    struct line {' 'src/cli/c.c:2: line is defined in src/table/slot.h:1 too'
refuses cli/c.c 'struct slot { int at; };' 'src/cli/c.c:2: slot is defined in include/weir.h:1 too'
fresh_tree
printf 'struct row {\n};\nstruct line;\nstruct slot f(void)\n{\n}\n' >"$tree/src/cli/c.c"
"$check" "$tree"

# A folder below a listed one needs no row, unless src/LAYERS says so; only folders of what may include everything never do.
fresh_tree
mkdir -p "$tree/src/table/deep" "$tree/src/cli/deep"
touch "$tree/src/table/deep/d.c" "$tree/src/cli/deep/d.c"
"$check" "$tree"
echo 'each folder has a row  # now' >>"$tree/src/LAYERS"
if said=$("$check" "$tree" 2>&1); then
    echo "not refused: a folder without a row" >&2
    exit 1
fi
[ "$said" = "src/table/deep/d.c: folder table/deep is not listed in src/LAYERS" ] || { echo "said: $said" >&2; exit 1; }
echo 'table/deep : table' >>"$tree/src/LAYERS"
"$check" "$tree"
