# Runs the portfile of packaging/vcpkg without vcpkg: what it calls is done here as vcpkg documents it, for headers alone.
#
#   cmake -DOUT=<folder> -P tests/packages/vcpkg.cmake
#
# OUT/packages is then what vcpkg would install. A portfile that calls something else, or passes something else, fails.
cmake_minimum_required(VERSION 3.25)
set(PORT sluice)
set(CURRENT_PACKAGES_DIR ${OUT}/packages)
set(CURRENT_BUILDTREES_DIR ${OUT}/buildtrees)
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR} ${CURRENT_BUILDTREES_DIR})

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  if(DEFINED arg_UNPARSED_ARGUMENTS OR NOT IS_DIRECTORY "${arg_SOURCE_PATH}")
    message(FATAL_ERROR "vcpkg_cmake_configure: ${ARGV}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${CURRENT_BUILDTREES_DIR} --no-warn-unused-cli
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DCMAKE_INSTALL_LIBDIR=lib
    -DCMAKE_ERROR_ON_ABSOLUTE_INSTALL_DESTINATION=ON -DCMAKE_EXPORT_NO_PACKAGE_REGISTRY=ON ${arg_OPTIONS}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${CURRENT_BUILDTREES_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${CURRENT_BUILDTREES_DIR} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Moves CONFIG_PATH to share/<name>, two folders below the prefix, and tells the files so.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS OR NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "vcpkg_cmake_config_fixup: ${ARGV}, for ${VCPKG_BUILD_TYPE}")
  endif()
  set(to ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
  file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${to})
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/share/cmake)
  file(GLOB_RECURSE files ${to}/*.cmake)
  set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
    string(REPLACE "\${CMAKE_CURRENT_LIST_DIR}/../../../" "\${CMAKE_CURRENT_LIST_DIR}/../../" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(GLOB found ${CURRENT_PACKAGES_DIR}/share/pkgconfig/*.pc)
  if(NOT found OR ARGC GREATER 0)
    message(FATAL_ERROR "vcpkg_fixup_pkgconfig: ${ARGV}, for ${found}")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright)
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/../../packaging/vcpkg/sluice/portfile.cmake)
