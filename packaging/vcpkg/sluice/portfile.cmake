# An overlay port: it lies in the repository and packages the tree around it, so there is no archive to fetch and no hash.
#   vcpkg install sluice --overlay-ports=<repository>/packaging/vcpkg
set(VCPKG_BUILD_TYPE release) # headers: nothing differs in debug
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# Whether device code can be used is decided where it is found: find_package(sluice COMPONENTS cuda). The feature brings CUDA.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DSLUICE_BUILD_TESTS=OFF
    -DSLUICE_BUILD_EXAMPLES=OFF
    -DSLUICE_BUILD_BENCHMARKS=OFF
    -DSLUICE_LLAMA=OFF
    -DSLUICE_CTRANSLATE2=OFF
    -DSLUICE_ONNXRUNTIME=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME sluice CONFIG_PATH share/cmake/sluice)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc") # the licence, which is share/sluice/copyright
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
