# `cmake --install`: header, libraries, program, pkg-config file, CMake package. Everything finds its neighbours
# relative to itself, so the prefix may be chosen, or the tree moved, after the build.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")

install(TARGETS libweir_shared libweir_static EXPORT weirTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES include/weir.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(EXPORT weirTargets NAMESPACE weir:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/weirConfig.cmake.in cmake/weirConfig.cmake INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(cmake/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/weirConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/weirConfigVersion.cmake"
    DESTINATION "${package_dir}")

file(RELATIVE_PATH WEIR_PC_PREFIX "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
set(packages weir)
if(NOT WEIR_LIBRARY_ONLY)
    list(APPEND packages weir-rules weir-redis)
endif()
foreach(name IN LISTS packages)
    configure_file(cmake/${name}.pc.in cmake/${name}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/cmake/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

# All that is not libweir.
if(WEIR_LIBRARY_ONLY)
    return()
endif()

install(TARGETS libweir_rules_shared libweir_rules_static libweir_redis_shared libweir_redis_static
    EXPORT weirTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES include/weir_rules.h include/weir_fleet.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS weir weir-bench RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES "${PROJECT_BINARY_DIR}/man/weir.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${PROJECT_BINARY_DIR}/man/weir.yaml.5" DESTINATION "${CMAKE_INSTALL_MANDIR}/man5")
install(FILES "${PROJECT_BINARY_DIR}/man/weir.3" "${PROJECT_BINARY_DIR}/man/weir_rules.3"
    "${PROJECT_BINARY_DIR}/man/weir_fleet.3" ${WEIR_MAN_LINKS} DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
install(FILES "${PROJECT_BINARY_DIR}/completion/weir.bash" RENAME weir
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${PROJECT_BINARY_DIR}/completion/weir.zsh" RENAME _weir
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${PROJECT_BINARY_DIR}/completion/weir.fish"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
install(FILES schema/weir.schema.json DESTINATION "${CMAKE_INSTALL_DATADIR}/weir")
install(DIRECTORY proto DESTINATION "${CMAKE_INSTALL_DATADIR}/weir")
install(FILES docs/README.md docs/ARCHITECTURE.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs/guide docs/reference docs/explanation docs/migrate docs/images DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The units name the program where it is installed, which is known when that happens. For a package: PREFIX=/usr.
install(CODE "set(weir_units \"${PROJECT_SOURCE_DIR}/packaging\")
set(weir_bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")")
install(CODE [[
foreach(unit weir.service weir.socket)
    file(READ "${weir_units}/${unit}" text)
    string(REPLACE "@bindir@" "${weir_bindir}" text "${text}")
    set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit}")
    message(STATUS "Installing: ${to}")
    file(WRITE "${to}" "${text}")
endforeach()
]])
install(FILES packaging/weir.yaml DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
install(DIRECTORY packaging/prometheus DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
