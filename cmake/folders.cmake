# SPDX-License-Identifier: Apache-2.0
# undertow_folder(<name> SOURCES ... DEPENDS <folders> LIBRARIES <external targets>)
#
# Each folder is a target of its own that may include only the folders it names (and what those name); tools/
# check_includes.py holds the same arrows against the source. All folders together make libundertow.
function(undertow_folder name)
  cmake_parse_arguments(F "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(undertow_${name} OBJECT ${F_SOURCES})
  target_include_directories(undertow_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(d ${F_DEPENDS})
    target_link_libraries(undertow_${name} PUBLIC undertow_${d})
  endforeach()
  target_link_libraries(undertow_${name} PRIVATE fmt::fmt ${F_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY UNDERTOW_FOLDERS undertow_${name})
  set_property(GLOBAL APPEND PROPERTY UNDERTOW_LIBRARIES ${F_LIBRARIES})
endfunction()
