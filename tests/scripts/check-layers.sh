#!/bin/sh
# test-labels: nosan
# The layer check accepts this tree, and refuses each kind of include that it is there to refuse.
set -eu
check=$WEIR_SOURCE_DIR/scripts/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$check" "$WEIR_SOURCE_DIR"

fresh_tree() {
    rm -rf "$tree/src"
    mkdir -p "$tree/src/base" "$tree/src/algo" "$tree/src/table" "$tree/src/cli"
    printf 'base :\nalgo : base # x\ntable : base\ncli : everything\n' >"$tree/src/LAYERS"
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
