# The libraries that users get. In the tree and after find_package(weir) they are weir::weir (libweir.so),
# weir::weir_static (libweir.a), weir::rules (libweir-rules.so), weir::rules_static (libweir-rules.a), weir::redis
# (libweir-redis.so) and weir::redis_static (libweir-redis.a).

set(public_headers $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# weir_shared(target name map objects...): lib<name>.so, which shows only what cmake/<map> lists.
function(weir_shared target name map)
    add_library(${target} SHARED ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
        VERSION ${PROJECT_VERSION} SOVERSION ${WEIR_SOVERSION}
        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/${map}")
    # nodelete: threads that have counted run a destructor of ours when they end, also after a dlclose().
    target_link_options(${target} PRIVATE LINKER:-z,nodelete
        "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/${map}")
    if(NOT WEIR_SANITIZE AND NOT WEIR_FUZZ)
        target_link_options(${target} PRIVATE LINKER:-z,defs) # a sanitizer's symbols come from the program
    endif()
    target_include_directories(${target} INTERFACE ${public_headers})
    target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()

# lib<name>.a: one relocatable object with every name but those of the list `keep` made local, so that internal names
# can be short and plain without ever clashing with those of the program that links it.
function(weir_static target name keep)
    list(TRANSFORM keep PREPEND "--keep-global-symbol=")
    set(local_object "${PROJECT_BINARY_DIR}/lib${name}_local.o")
    add_custom_command(OUTPUT "${local_object}"
        COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${local_object}" ${ARGN}
        COMMAND "${CMAKE_OBJCOPY}" --wildcard ${keep} "${local_object}"
        DEPENDS ${ARGN}
        COMMENT "Making internal names of lib${name}.a local" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${local_object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    add_library(${target} STATIC "${local_object}")
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C)
    target_include_directories(${target} INTERFACE ${public_headers})
    target_link_libraries(${target} INTERFACE Threads::Threads)
endfunction()

weir_shared(libweir_shared weir libweir.map $<TARGET_OBJECTS:weir_objects>)
weir_static(libweir_static weir "weir_*" $<TARGET_OBJECTS:weir_objects>)

# The rules' library carries its own copy of src/base: what libweir hides stays hidden between the two.
file(GLOB base_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/base/*.c")
add_library(weir_base_objects OBJECT ${base_sources})
target_include_directories(weir_base_objects PUBLIC include src)
set(rules_objects $<TARGET_OBJECTS:weir_rules_objects> $<TARGET_OBJECTS:weir_base_objects>)
weir_shared(libweir_rules_shared weir-rules libweir-rules.map ${rules_objects})
target_link_libraries(libweir_rules_shared PUBLIC libweir_shared PRIVATE ${WEIR_YAML})
weir_static(libweir_rules_static weir-rules "weir_rules_*" ${rules_objects})
target_link_libraries(libweir_rules_static INTERFACE libweir_static yaml)

# A fleet's library likewise, with what it takes to check a limit's numbers (src/limit/plan.c) and to speak RESP.
file(GLOB plan_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/algo/*.c" "${PROJECT_SOURCE_DIR}/src/table/*.c")
add_library(weir_plan_objects OBJECT ${plan_sources} src/limit/plan.c src/wire/resp.c src/wire/resp_reply.c)
target_include_directories(weir_plan_objects PUBLIC include src)
set(redis_objects $<TARGET_OBJECTS:weir_fleet_objects> $<TARGET_OBJECTS:weir_store_objects>
    $<TARGET_OBJECTS:weir_plan_objects> $<TARGET_OBJECTS:weir_base_objects>)
weir_shared(libweir_redis_shared weir-redis libweir-redis.map ${redis_objects})
target_link_libraries(libweir_redis_shared PUBLIC libweir_shared PRIVATE ${WEIR_UV})
weir_static(libweir_redis_static weir-redis "weir_fleet_*;weir_ring_*" ${redis_objects})
target_link_libraries(libweir_redis_static INTERFACE libweir_static uv)

add_library(weir::weir ALIAS libweir_shared)
add_library(weir::weir_static ALIAS libweir_static)
add_library(weir::rules ALIAS libweir_rules_shared)
add_library(weir::rules_static ALIAS libweir_rules_static)
add_library(weir::redis ALIAS libweir_redis_shared)
add_library(weir::redis_static ALIAS libweir_redis_static)
set_target_properties(libweir_shared PROPERTIES EXPORT_NAME weir)
set_target_properties(libweir_static PROPERTIES EXPORT_NAME weir_static)
# Found beside it wherever both are installed: a program's own runtime path does not reach this far.
set_target_properties(libweir_rules_shared PROPERTIES EXPORT_NAME rules INSTALL_RPATH "$ORIGIN")
set_target_properties(libweir_rules_static PROPERTIES EXPORT_NAME rules_static)
set_target_properties(libweir_redis_shared PROPERTIES EXPORT_NAME redis INSTALL_RPATH "$ORIGIN")
set_target_properties(libweir_redis_static PROPERTIES EXPORT_NAME redis_static)
