# How sluice finds what it needs; used by the build and by the installed package.

macro(sluice_find_eigen)
  # Two calls: Eigen 3.4.0 refuses a version range, Eigen 5 refuses a bare "3.4".
  find_package(Eigen3 3.4...<6 CONFIG QUIET)
  if(NOT Eigen3_FOUND)
    find_package(Eigen3 3.4 CONFIG QUIET)
  endif()
endmacro()

macro(sluice_find_cuda)
  find_package(CUDAToolkit 12 QUIET) # the first release with C++20
  find_package(CCCL CONFIG QUIET
    HINTS ${CUDAToolkit_LIBRARY_DIR}/cmake ${CUDAToolkit_LIBRARY_ROOT}/lib64/cmake)
endmacro()
