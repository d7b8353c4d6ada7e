# All that stands on libweir: the rules, the store, the fleet, the server and the program. -DWEIR_LIBRARY_ONLY=ON leaves it
# out. In the tree and after find_package(weir) the libraries are weir::rules (libweir-rules.so), weir::rules_static,
# weir::redis (libweir-redis.so) and weir::redis_static.

if(NOT WEIR_HAVE_XXHASH)
    unset(WEIR_HAVE_XXHASH CACHE) # look again when it is installed
    message(FATAL_ERROR "xxhash.h is missing: run scripts/setup build")
endif()
find_path(WEIR_YAML_DIR yaml.h)
find_library(WEIR_YAML yaml)
if(NOT WEIR_YAML_DIR OR NOT WEIR_YAML)
    message(FATAL_ERROR "libyaml is missing: run scripts/setup build")
endif()
find_path(WEIR_UV_DIR uv.h)
find_library(WEIR_UV uv)
if(NOT WEIR_UV_DIR OR NOT WEIR_UV)
    message(FATAL_ERROR "libuv is missing: run scripts/setup build")
endif()
find_path(WEIR_JANSSON_DIR jansson.h)
find_library(WEIR_JANSSON jansson)
if(NOT WEIR_JANSSON_DIR OR NOT WEIR_JANSSON)
    message(FATAL_ERROR "jansson is missing: run scripts/setup build")
endif()
find_path(WEIR_SSL_DIR openssl/ssl.h)
find_library(WEIR_SSL ssl)
find_library(WEIR_CRYPTO crypto)
if(NOT WEIR_SSL_DIR OR NOT WEIR_SSL OR NOT WEIR_CRYPTO)
    message(FATAL_ERROR "OpenSSL is missing: run scripts/setup build")
endif()
find_path(WEIR_LLHTTP_DIR llhttp.h HINTS /usr/share/include/llhttp)
find_file(WEIR_LLHTTP_SOURCE llhttp.c HINTS /usr/share/llhttp)
if(NOT WEIR_LLHTTP_DIR OR NOT WEIR_LLHTTP_SOURCE)
    message(FATAL_ERROR "llhttp is missing: run scripts/setup build")
endif()

find_path(WEIR_NGHTTP2_DIR nghttp2/nghttp2.h)
find_library(WEIR_NGHTTP2 nghttp2)
if(NOT WEIR_NGHTTP2_DIR OR NOT WEIR_NGHTTP2)
    message(FATAL_ERROR "nghttp2 is missing: run scripts/setup build")
endif()

# Makes NAME.c, which defines NAME and NAME_size as HEADER declares them, from the bytes of a file.
function(weir_embed name source header)
    add_custom_command(OUTPUT "${name}.c"
        COMMAND "${CMAKE_COMMAND}" -D "FROM=${PROJECT_SOURCE_DIR}/${source}" -D "TO=${name}.c" -D "NAME=${name}"
            -D "HEADER=${header}" -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
        DEPENDS "${source}" cmake/embed.cmake COMMENT "Embedding ${source}" VERBATIM)
endfunction()

# What the layers above libweir share. Like src/base, a copy in each library: what one hides stays hidden from the others.
file(GLOB WEIR_COMMON_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/common/*.c")
add_library(weir_common_objects OBJECT ${WEIR_COMMON_SOURCES})
target_include_directories(weir_common_objects PUBLIC include src)
add_library(weir_common STATIC $<TARGET_OBJECTS:weir_common_objects>)
target_link_libraries(weir_common PUBLIC weir_internal)

# The rules, on top of the library's public interface, of src/base and src/common.
file(GLOB_RECURSE WEIR_RULES_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/rules/*.c")
add_library(weir_rules_objects OBJECT ${WEIR_RULES_SOURCES})
target_include_directories(weir_rules_objects PUBLIC include src PRIVATE ${WEIR_YAML_DIR})

add_library(weir_rules_internal STATIC $<TARGET_OBJECTS:weir_rules_objects>)
target_include_directories(weir_rules_internal PUBLIC include src)
target_link_libraries(weir_rules_internal PUBLIC weir_common weir_internal ${WEIR_YAML})

# TLS, for the fleet and the program.
file(GLOB WEIR_TLS_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/tls/*.c")
add_library(weir_tls_objects OBJECT ${WEIR_TLS_SOURCES})
target_include_directories(weir_tls_objects PUBLIC include src PRIVATE ${WEIR_SSL_DIR})
add_library(weir_tls STATIC $<TARGET_OBJECTS:weir_tls_objects>)
target_include_directories(weir_tls PUBLIC include src)
target_link_libraries(weir_tls PUBLIC weir_common weir_internal ${WEIR_SSL} ${WEIR_CRYPTO})

# The HTTP parser of Node, whose package brings it as sources. Strict: what may be read in two ways is refused.
get_filename_component(WEIR_LLHTTP_SOURCES "${WEIR_LLHTTP_SOURCE}" DIRECTORY)
add_library(weir_llhttp STATIC "${WEIR_LLHTTP_SOURCES}/api.c" "${WEIR_LLHTTP_SOURCES}/http.c" "${WEIR_LLHTTP_SOURCE}")
target_include_directories(weir_llhttp SYSTEM PUBLIC "${WEIR_LLHTTP_DIR}")
target_compile_definitions(weir_llhttp PUBLIC LLHTTP_STRICT_MODE=1)
target_compile_options(weir_llhttp PRIVATE -w)

# Codecs without I/O, for the server. Part of the program only.
file(GLOB_RECURSE WEIR_WIRE_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/wire/*.c")
add_library(weir_wire STATIC ${WEIR_WIRE_SOURCES})
target_include_directories(weir_wire PUBLIC include src)
target_link_libraries(weir_wire PUBLIC weir_common weir_internal m PRIVATE weir_llhttp)

# Who decides if not this process: the scripts of a shared store.
file(GLOB_RECURSE WEIR_STORE_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/redis/*.c"
    "${PROJECT_SOURCE_DIR}/src/shared/*.c")
file(GLOB WEIR_LUA CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/shared/lua/*.lua")
# Makes the C file `to` with the scripts as `name`; pieces that are also in the folder `instead` are taken from there.
function(weir_embed_scripts to instead name)
    file(GLOB others CONFIGURE_DEPENDS "${instead}/*.lua")
    add_custom_command(OUTPUT "${to}"
        COMMAND "${CMAKE_COMMAND}" -D "FROM=${PROJECT_SOURCE_DIR}/src/shared/lua" -D "INSTEAD=${instead}" -D "NAME=${name}"
            -D "TO=${to}" -P "${PROJECT_SOURCE_DIR}/cmake/scripts.cmake"
        DEPENDS ${WEIR_LUA} ${others} "${PROJECT_SOURCE_DIR}/cmake/scripts.cmake" COMMENT "Embedding ${name}" VERBATIM)
endfunction()
weir_embed_scripts(scripts.c "" store_scripts)
add_library(weir_store_objects OBJECT ${WEIR_STORE_SOURCES} scripts.c)
target_include_directories(weir_store_objects PUBLIC include src)
add_library(weir_store STATIC $<TARGET_OBJECTS:weir_store_objects>)
target_include_directories(weir_store PUBLIC include src)
target_link_libraries(weir_store PUBLIC weir_wire weir_internal)

# A store's sockets and threads.
file(GLOB_RECURSE WEIR_FLEET_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/fleet/*.c")
add_library(weir_fleet_objects OBJECT ${WEIR_FLEET_SOURCES})
target_include_directories(weir_fleet_objects PUBLIC include src ${WEIR_UV_DIR})
add_library(weir_fleet STATIC $<TARGET_OBJECTS:weir_fleet_objects>)
target_include_directories(weir_fleet PUBLIC include src ${WEIR_UV_DIR})
target_link_libraries(weir_fleet PUBLIC weir_store weir_rules_internal weir_tls ${WEIR_UV})

file(GLOB base_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/base/*.c")
add_library(weir_base_objects OBJECT ${base_sources})
target_include_directories(weir_base_objects PUBLIC include src)
set(rules_objects weir_rules_objects weir_common_objects weir_base_objects)
weir_shared(libweir_rules_shared weir-rules libweir-rules.map ${rules_objects})
target_link_libraries(libweir_rules_shared PUBLIC libweir_shared PRIVATE ${WEIR_YAML})
weir_static(libweir_rules_static weir-rules "weir_rules_*" ${rules_objects})
target_link_libraries(libweir_rules_static INTERFACE libweir_static yaml)

# A fleet's library likewise, with what it takes to check a limit's numbers (src/limit/plan.c), to speak RESP, and to
# compare addresses with networks.
file(GLOB plan_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/algo/*.c" "${PROJECT_SOURCE_DIR}/src/table/*.c")
add_library(weir_plan_objects OBJECT ${plan_sources} src/limit/plan.c src/wire/resp.c src/wire/resp_reply.c
    src/rules/value/address.c src/rules/value/cidr.c src/rules/value/quote.c)
target_include_directories(weir_plan_objects PUBLIC include src)
set(redis_objects weir_fleet_objects weir_store_objects weir_plan_objects weir_tls_objects weir_common_objects
    weir_base_objects)
weir_shared(libweir_redis_shared weir-redis libweir-redis.map ${redis_objects})
target_link_libraries(libweir_redis_shared PUBLIC libweir_shared PRIVATE ${WEIR_UV} ${WEIR_SSL} ${WEIR_CRYPTO})
weir_static(libweir_redis_static weir-redis "weir_fleet_*;weir_ring_*" ${redis_objects})
target_link_libraries(libweir_redis_static INTERFACE libweir_static uv ssl crypto)

add_library(weir::rules ALIAS libweir_rules_shared)
add_library(weir::rules_static ALIAS libweir_rules_static)
add_library(weir::redis ALIAS libweir_redis_shared)
add_library(weir::redis_static ALIAS libweir_redis_static)
# Found beside it wherever both are installed: a program's own runtime path does not reach this far.
set_target_properties(libweir_rules_shared PROPERTIES EXPORT_NAME rules INSTALL_RPATH "$ORIGIN")
set_target_properties(libweir_rules_static PROPERTIES EXPORT_NAME rules_static)
set_target_properties(libweir_redis_shared PROPERTIES EXPORT_NAME redis INSTALL_RPATH "$ORIGIN")
set_target_properties(libweir_redis_static PROPERTIES EXPORT_NAME redis_static)

# The server: loops and listeners around the codecs. Part of the program only.
file(GLOB_RECURSE WEIR_SERVER_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/server/*.c")
weir_embed(openapi_json src/server/http/openapi_base.json server/http/openapi.h)

# The operators' page, as it is in web/. CMake runs again when a file is added.
set(page_from "")
set(page_sources "")
if(WEIR_PAGE)
    find_program(WEIR_GZIP gzip REQUIRED)
    set(page_from "${PROJECT_SOURCE_DIR}/web")
    file(GLOB page_sources CONFIGURE_DEPENDS "${page_from}/*")
endif()
add_custom_command(OUTPUT page_files.c
    COMMAND "${CMAKE_COMMAND}" -D "FROM=${page_from}" -D "TO=page_files.c" -D "GZIP=${WEIR_GZIP}"
        -P "${PROJECT_SOURCE_DIR}/cmake/page.cmake"
    DEPENDS ${page_sources} cmake/page.cmake COMMENT "Embedding web/" VERBATIM)
add_library(weir_server STATIC ${WEIR_SERVER_SOURCES} openapi_json.c page_files.c)
target_include_directories(weir_server PUBLIC include src ${WEIR_UV_DIR} ${WEIR_NGHTTP2_DIR} PRIVATE ${WEIR_JANSSON_DIR})
target_link_libraries(weir_server PUBLIC weir_wire weir_tls weir_rules_internal ${WEIR_UV} ${WEIR_JANSSON} ${WEIR_NGHTTP2})

# The program.
file(GLOB_RECURSE WEIR_CLI_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cli/*.c")
list(FILTER WEIR_CLI_SOURCES EXCLUDE REGEX "/main\\.c$")
weir_embed(serve_example examples/rules.yaml cli/serve/serve.h)
weir_embed(sim_svg_style src/cli/simulate/simulate_svg.css cli/simulate/simulate.h)
weir_embed(sim_html_style src/cli/simulate/simulate_html.css cli/simulate/simulate.h)
add_library(weir_cli STATIC ${WEIR_CLI_SOURCES} serve_example.c sim_svg_style.c sim_html_style.c)
target_include_directories(weir_cli PUBLIC include src PRIVATE ${WEIR_JANSSON_DIR})
target_link_libraries(weir_cli PUBLIC weir_server weir_fleet weir_store weir_wire weir_rules_internal weir_internal ${WEIR_JANSSON} m)
add_executable(weir src/cli/main.c)
target_link_libraries(weir PRIVATE weir_cli)

# The benchmarks: a program of their own, which `weir bench load` runs.
file(GLOB WEIR_LOAD_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/program/load/*.c")
add_library(weir_load STATIC ${WEIR_LOAD_SOURCES}) # for tests and the manual too
target_include_directories(weir_load PUBLIC bench/program)
target_link_libraries(weir_load PUBLIC weir_cli)
file(GLOB WEIR_BENCH_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/program/*.c")
add_executable(weir-bench ${WEIR_BENCH_SOURCES})
target_link_libraries(weir-bench PRIVATE weir_load)

# The manual pages: of the program from templates and from the rows that the parsers are made of, of the libraries from
# their headers.
file(GLOB WEIR_MANUAL_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.c")
add_executable(make_manual ${WEIR_MANUAL_SOURCES})
target_link_libraries(make_manual PRIVATE weir_load)
set(WEIR_MAN_PAGES "")
function(weir_man_page page source)
    add_custom_command(OUTPUT "man/${page}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory man
        COMMAND make_manual "${PROJECT_SOURCE_DIR}/${source}" > "man/${page}"
        DEPENDS make_manual "${source}" COMMENT "Making ${page}" VERBATIM)
    set(WEIR_MAN_PAGES ${WEIR_MAN_PAGES} "${PROJECT_BINARY_DIR}/man/${page}" PARENT_SCOPE)
endfunction()
weir_man_page(weir.1 docs/man/weir.1.in)
weir_man_page(weir.yaml.5 docs/man/weir.yaml.5.in)

# `man weir_open` finds the page of its header: a page for each function that refers to it.
set(WEIR_MAN_LINKS "")
foreach(name weir weir_rules weir_fleet)
    weir_man_page(${name}.3 include/${name}.h)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "include/${name}.h")
    file(STRINGS "include/${name}.h" functions REGEX "^WEIR_API .*[ *]weir_[a-z0-9_]+\\(")
    foreach(line IN LISTS functions)
        string(REGEX REPLACE "^WEIR_API [^(]*[ *](weir_[a-z0-9_]+)\\(.*" "\\1" function "${line}")
        file(WRITE "${PROJECT_BINARY_DIR}/man/links/${function}.3" ".so man3/${name}.3\n")
        list(APPEND WEIR_MAN_LINKS "${PROJECT_BINARY_DIR}/man/links/${function}.3")
    endforeach()
endforeach()

# What shells need to complete command lines, printed by the program itself.
set(WEIR_COMPLETIONS "")
foreach(shell bash zsh fish)
    add_custom_command(OUTPUT "completion/weir.${shell}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory completion
        COMMAND weir completion ${shell} > "completion/weir.${shell}"
        DEPENDS weir COMMENT "Making the completion for ${shell}" VERBATIM)
    list(APPEND WEIR_COMPLETIONS "${PROJECT_BINARY_DIR}/completion/weir.${shell}")
endforeach()
add_custom_target(manual ALL DEPENDS ${WEIR_MAN_PAGES} ${WEIR_COMPLETIONS})

# Includes may only fall down the layers, and bounds have rows: checked in every build, when a source has changed.
file(GLOB_RECURSE layered CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.[ch]")
add_custom_command(OUTPUT layers.stamp
    COMMAND "${PROJECT_SOURCE_DIR}/scripts/check-layers" "${PROJECT_SOURCE_DIR}"
    COMMAND "${CMAKE_COMMAND}" -E touch layers.stamp
    DEPENDS src/LAYERS scripts/check-layers ${layered}
    COMMENT "Checking the layers" VERBATIM)
add_custom_target(check-layers ALL DEPENDS layers.stamp)
add_custom_command(OUTPUT bounds.stamp
    COMMAND "${PROJECT_SOURCE_DIR}/scripts/check-bounds" "${PROJECT_SOURCE_DIR}"
    COMMAND "${CMAKE_COMMAND}" -E touch bounds.stamp
    DEPENDS src/server/bounds.def scripts/check-bounds include/weir.h ${layered}
    COMMENT "Checking the bounds" VERBATIM)
add_custom_target(check-bounds ALL DEPENDS bounds.stamp)
