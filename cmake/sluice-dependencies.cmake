# How sluice finds what it needs; used by the build and by the installed package.

macro(sluice_find_cuda)
  find_package(CUDAToolkit 12 QUIET) # the first release with C++20
  find_package(CCCL CONFIG QUIET
    HINTS ${CUDAToolkit_LIBRARY_DIR}/cmake ${CUDAToolkit_LIBRARY_ROOT}/lib64/cmake)
endmacro()
