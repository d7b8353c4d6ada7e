# The two libraries that users get, made from weir_objects. In the tree and after find_package(weir) they are
# weir::weir (libweir.so) and weir::weir_static (libweir.a).

set(public_headers $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

add_library(libweir_shared SHARED $<TARGET_OBJECTS:weir_objects>)
add_library(weir::weir ALIAS libweir_shared)
set_target_properties(libweir_shared PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir
    VERSION ${PROJECT_VERSION} SOVERSION ${WEIR_SOVERSION}
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/libweir.map")
# nodelete: threads that have counted run a destructor of ours when they end, also after a dlclose().
target_link_options(libweir_shared PRIVATE LINKER:-z,nodelete)
target_link_options(libweir_shared PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/libweir.map")
if(NOT WEIR_SANITIZE AND NOT WEIR_FUZZ)
    target_link_options(libweir_shared PRIVATE LINKER:-z,defs) # a sanitizer's symbols come from the program
endif()
target_include_directories(libweir_shared INTERFACE ${public_headers})
target_link_libraries(libweir_shared PRIVATE Threads::Threads)

# One relocatable object with every name but weir_* made local, so that internal names can be short and plain
# without ever clashing with those of the program that links libweir.a.
set(local_object "${PROJECT_BINARY_DIR}/libweir_local.o")
add_custom_command(OUTPUT "${local_object}"
    COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${local_object}" $<TARGET_OBJECTS:weir_objects>
    COMMAND "${CMAKE_OBJCOPY}" --wildcard "--keep-global-symbol=weir_*" "${local_object}"
    DEPENDS weir_objects $<TARGET_OBJECTS:weir_objects>
    COMMENT "Making internal names local" COMMAND_EXPAND_LISTS VERBATIM)
set_source_files_properties("${local_object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

add_library(libweir_static STATIC "${local_object}")
add_library(weir::weir_static ALIAS libweir_static)
set_target_properties(libweir_static PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir_static LINKER_LANGUAGE C)
target_include_directories(libweir_static INTERFACE ${public_headers})
target_link_libraries(libweir_static INTERFACE Threads::Threads)
