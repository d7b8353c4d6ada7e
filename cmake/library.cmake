# How the libraries that users get are made, and libweir itself. In the tree and after find_package(weir) it is weir::weir
# (libweir.so) and weir::weir_static (libweir.a).

set(public_headers $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# weir_shared(target name map libraries...): lib<name>.so of object libraries, which shows only what cmake/<map> lists.
function(weir_shared target name map)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
    add_library(${target} SHARED ${objects})
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

# weir_static(target name keep libraries...): lib<name>.a of object libraries. It is one relocatable object with every name
# but those of the list `keep` made local, so that internal names can be short and plain without ever clashing with those of
# the program that links it.
function(weir_static target name keep)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
    list(TRANSFORM keep PREPEND "--keep-global-symbol=")
    set(local_object "${PROJECT_BINARY_DIR}/lib${name}_local.o")
    add_custom_command(OUTPUT "${local_object}"
        COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${local_object}" ${objects}
        COMMAND "${CMAKE_OBJCOPY}" --wildcard ${keep} "${local_object}"
        DEPENDS ${objects}
        COMMENT "Making internal names of lib${name}.a local" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${local_object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    add_library(${target} STATIC "${local_object}")
    add_dependencies(${target} ${ARGN}) # make has no rule for the objects of another target
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C)
    target_include_directories(${target} INTERFACE ${public_headers})
    target_link_libraries(${target} INTERFACE Threads::Threads)
endfunction()

weir_shared(libweir_shared weir libweir.map weir_objects)
weir_static(libweir_static weir "weir_*" weir_objects)

add_library(weir::weir ALIAS libweir_shared)
add_library(weir::weir_static ALIAS libweir_static)
set_target_properties(libweir_shared PROPERTIES EXPORT_NAME weir)
set_target_properties(libweir_static PROPERTIES EXPORT_NAME weir_static)
