# The scripts of src/shared/lua as C arrays, each with its SHA-1, by which a Redis knows it:
#
#   cmake -D FROM=folder [-D INSTEAD=folder] -D NAME=store_scripts -D TO=scripts.c -P cmake/scripts.cmake
#
# A piece that is also in INSTEAD is taken from there: so tests have a clock of their own, and faults. Each script begins
# with clock.lua. Their order: one for several algorithms, those of enum weir_algorithm, and SCRIPT_... of shared/core/script.h.
set(several full common lease bucket token_bucket leaky_bucket fixed_window sliding_window sliding_log sync leased_bucket
    leased_window decide)
set(token_bucket full plain_bucket single_bucket common bucket token_bucket sync decide)
set(leaky_bucket full common bucket leaky_bucket decide)
set(fixed_window full plain_window single_window common fixed_window sync decide)
set(sliding_window full common sliding_window sync decide)
set(sliding_log full common sliding_log decide)
set(leased_bucket full single_lease single_bucket common lease bucket token_bucket leased_bucket decide)
set(leased_window full single_window common lease fixed_window leased_window decide)
set(members members)

set(texts "")
set(rows "")
foreach(script several token_bucket leaky_bucket fixed_window sliding_window sliding_log leased_bucket leased_window members)
    file(WRITE "${TO}.lua" "")
    foreach(piece clock ${${script}})
        set(source "${FROM}/${piece}.lua")
        if(INSTEAD AND EXISTS "${INSTEAD}/${piece}.lua")
            set(source "${INSTEAD}/${piece}.lua")
        endif()
        file(READ "${source}" text)
        # Lines that are comments, and indentation, are of no use to a Redis.
        string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
        string(REGEX REPLACE "\n[ \n]+" "\n" text "${text}")
        file(APPEND "${TO}.lua" "${text}")
    endforeach()
    file(SHA1 "${TO}.lua" sha1)
    file(READ "${TO}.lua" bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND texts "static const char ${script}[] = {\n${bytes}};\n")
    string(APPEND rows "    {\"${script}\", {${script}, sizeof ${script}}, \"${sha1}\"},\n")
endforeach()
file(REMOVE "${TO}.lua")
file(WRITE "${TO}" "/* Made by cmake/scripts.cmake. */\n#include \"redis/script_call.h\"\n\nextern const struct scripts ${NAME};\n\n"
    "${texts}\nconst struct scripts ${NAME} = {{\n${rows}}};\n")
