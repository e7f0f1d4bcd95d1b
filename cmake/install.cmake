# SPDX-License-Identifier: Apache-2.0
# `cmake --install build --prefix P` gives a C++ user libundertow, the headers that undertow/undertow.h reaches and
# find_package(Undertow). A wheel (built through scikit-build-core) holds the Python module and libundertow beside it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(SKBUILD)
  install(TARGETS undertow undertow_openmp_policy LIBRARY DESTINATION undertow COMPONENT python)
  if(TARGET _core)
    # Not into the source tree, where the module of the development build stands.
    set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/module)
    install(TARGETS _core LIBRARY DESTINATION undertow COMPONENT python)
  endif()
  return()
endif()

install(TARGETS undertow undertow_openmp_policy EXPORT UndertowTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT UndertowTargets NAMESPACE Undertow:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Undertow)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/UndertowConfig.cmake.in UndertowConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Undertow)
# Before 1.0 a minor version may break the one before it.
write_basic_package_version_file(UndertowConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/UndertowConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/UndertowConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Undertow)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The headers are found when they are installed, by following the includes, so the set is never out of date.
configure_file(${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake.in install_headers.cmake @ONLY)
install(SCRIPT ${CMAKE_CURRENT_BINARY_DIR}/install_headers.cmake)
