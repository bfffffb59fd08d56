# Finds sluice's dependencies, for the build and for the installed package.

macro(sluice_find_cuda)
  find_package(CUDAToolkit 12 QUIET) # the first release with C++20
  find_package(CCCL CONFIG QUIET
    HINTS ${CUDAToolkit_LIBRARY_DIR}/cmake ${CUDAToolkit_LIBRARY_ROOT}/lib64/cmake)
  if(CUDAToolkit_FOUND AND NOT CCCL_FOUND)
    sluice_find_cccl_headers()
  endif()
  if(CUDAToolkit_FOUND AND NOT TARGET CUDA::cublas AND SLUICE_CUBLAS_ROOT)
    sluice_find_cublas()
  endif()
endmacro()

# CCCL::CCCL from the toolkit's headers alone, where the files that tell CMake of it are missing. Kernels use nothing of CUB, but the
# toolkit's own cuda_fp16.h and cuda_bf16.h include <nv/target>, which lies in its folder, and compilers other than nvcc must be told.
macro(sluice_find_cccl_headers)
  find_path(SLUICE_CCCL_INCLUDE nv/target HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl NO_DEFAULT_PATH)
  if(SLUICE_CCCL_INCLUDE)
    add_library(CCCL::CCCL INTERFACE IMPORTED GLOBAL)
    target_include_directories(CCCL::CCCL INTERFACE ${SLUICE_CCCL_INCLUDE})
    set(CCCL_FOUND TRUE)
  endif()
endmacro()

# CUDA::cublas if the toolkit has none: SLUICE_CUBLAS_ROOT is a folder with include/ and lib/, such as that of PyPI's
# nvidia-cublas (site-packages/nvidia/cublas or nvidia/cu13), which only has libraries with versioned names.
function(sluice_find_cublas)
  find_path(SLUICE_CUBLAS_INCLUDE cublas_v2.h HINTS ${SLUICE_CUBLAS_ROOT}/include NO_DEFAULT_PATH)
  find_library(SLUICE_CUBLAS_LIBRARY HINTS ${SLUICE_CUBLAS_ROOT}/lib NO_DEFAULT_PATH
    NAMES cublas libcublas.so.${CUDAToolkit_VERSION_MAJOR} libcublas.so.13 libcublas.so.12)
  if(SLUICE_CUBLAS_INCLUDE AND SLUICE_CUBLAS_LIBRARY)
    add_library(CUDA::cublas SHARED IMPORTED GLOBAL)
    set_target_properties(CUDA::cublas PROPERTIES IMPORTED_LOCATION ${SLUICE_CUBLAS_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${SLUICE_CUBLAS_INCLUDE}
      INTERFACE_LINK_OPTIONS "LINKER:-rpath-link,${SLUICE_CUBLAS_ROOT}/lib;LINKER:-rpath,${SLUICE_CUBLAS_ROOT}/lib")
  endif()
endfunction()
