# Compiler and linker flags of everything in this tree (gcc 12 and clang 14, x86-64 and aarch64).

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

# -O2: the hot path is written for it, -O3 only grows it. -g costs nothing at run time and makes every report readable.
# No SLP vectoriser: it joins two 8-byte stores' values by one 16-byte load, which the processor cannot forward from its
# store buffer; a decision then waits some 6 ns (measured: 42 to 36 ns).
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG -fno-tree-slp-vectorize")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3 -fno-omit-frame-pointer")
# Sanitizers and coverage: fast enough to run every test, asserts on.
set(CMAKE_C_FLAGS_CHECKED "-O1 -g -fno-omit-frame-pointer" CACHE STRING "Flags of the Checked build type")

# Asserts check the numbered guarantees in Debug and Checked builds, and cost nothing in any other, such as None or that of
# a project which weir is a part of.
add_compile_definitions($<$<NOT:$<OR:$<CONFIG:Debug>,$<CONFIG:Checked>,$<CONFIG:Release>>>:NDEBUG>)

# An empty value agrees with a source file that says `#define _GNU_SOURCE` itself.
add_compile_options(-D_GNU_SOURCE=)

# Warnings are for those who work on weir. In another project it says nothing of its own, and a warning that the options of
# that project ask for is never an error.
if(WEIR_TOP_LEVEL)
    add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
                        -Wformat=2 -Wimplicit-fallthrough)
    if(WEIR_WERROR)
        add_compile_options(-Werror)
    endif()
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
        add_compile_options(-Wbidi-chars=any)
    endif()
else()
    add_compile_options(-Wno-error)
endif()

# Thread-local statistics are on the hot path: no call to __tls_get_addr from the shared library.
add_compile_options(-ftls-model=initial-exec)

# Hardening, after the OpenSSF compiler guide. Left out knowingly:
# - -ftrivial-auto-var-init=zero: clears every local, also the scratch of the hot path, for each decision;
# - -z nodlopen: a library must stay loadable by plug-ins and by other languages;
# - -fstrict-flex-arrays=3, -fhardened: need gcc 13 and 14.
add_compile_options(-fstack-protector-strong -fstack-clash-protection)
add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:--as-needed)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    add_compile_options(-mcx16 -fcf-protection=full) # cx16: the table's 16-byte compare-and-swap
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    add_compile_options(-mbranch-protection=standard)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3) # needs optimisation; clashes with sanitizers
endif()

if(WEIR_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "WEIR_FUZZ needs clang (preset fuzz)")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
if(WEIR_SANITIZE)
    add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_COVERAGE)
    # WEIR_COVERAGE: tests count less, every line counts itself.
    add_compile_options(--coverage -fprofile-update=atomic -DWEIR_COVERAGE=1)
    add_link_options(--coverage)
endif()
