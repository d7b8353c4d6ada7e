# A file as a C array: cmake -D FROM=file -D TO=file.c -D NAME=array -D HEADER=header -P cmake/embed.cmake
file(READ "${FROM}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${TO}" "/* Made from ${NAME}'s source by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\n"
    "const char ${NAME}[] = {\n${bytes}0};\nconst size_t ${NAME}_size = ${size};\n")
