# Smaller numbers for searches that are exhaustive (search.h). The code is the same; what it does often it does seldom:
#
#   claim.c    fewer rounds in vain before whoever is in the way gets a turn, and fewer searches left out
#   move.c     one move to make room, not a row of three
#   decide.c   How often somebody has waited is not counted, so that it is the same state after the first wait and after the fifth: patience has no end, and each wait is a pause
#              (patient); or it ends with the first wait (hasty). In truth it ends after at most a thousand.

# weir_explore_small(variable file kind): the text of that file, with smaller numbers.
function(weir_explore_small variable file kind)
    set(text "${${variable}}")
    if(file STREQUAL "claim.c")
        weir_explore_number(text ROUNDS 2)
        weir_explore_number(text SEARCH_PAUSE 2)
    elseif(file STREQUAL "move.c")
        weir_explore_number(text MOVES_MAX 1)
        weir_explore_replace(text "(2 + 8 + 32 + 128)" "(2 + 8)")
    else()
        set(patient "    lock_pause(cost);\n")
        set(hasty "    (void)cost;\n    patience->left = 0;\n")
        weir_explore_replace(text "    patience->left -= (unsigned)min_u64(cost, patience->left);\n" "${${kind}}")
    endif()
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()
