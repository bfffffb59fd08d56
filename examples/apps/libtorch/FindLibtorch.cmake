# Finds libtorch: Debian's (libtorch-dev, CPU), or that of an installation of PyTorch 2, with CUDA if it has it:
#
#   cmake -DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)') ...
#
# The folder of the Python package (or of an unpacked libtorch) itself will do too. By hand, since TorchConfig.cmake of a
# CUDA build looks for a CUDA compiler and for libraries that only the building of PyTorch needs.
#
# Defines the target libtorch::libtorch, and libtorch_CUDA: whether it can use a GPU.

set(hints)
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND hints ${prefix} ${prefix}/../..) # cmake_prefix_path is share/cmake
endforeach()
find_path(libtorch_INCLUDE_DIR ATen/ATen.h HINTS ${hints} PATH_SUFFIXES include)
set(libraries)
foreach(name IN ITEMS torch torch_cpu c10)
  find_library(libtorch_${name}_LIBRARY ${name} HINTS ${hints} PATH_SUFFIXES lib)
  list(APPEND libraries libtorch_${name}_LIBRARY)
endforeach()

# Only from beside torch itself: of another installation they would not fit.
set(libtorch_CUDA ON)
cmake_path(GET libtorch_torch_LIBRARY PARENT_PATH folder)
foreach(name IN ITEMS torch_cuda c10_cuda)
  find_library(libtorch_${name}_LIBRARY ${name} PATHS "${folder}" NO_DEFAULT_PATH)
  if(NOT libtorch_${name}_LIBRARY)
    set(libtorch_CUDA OFF)
  endif()
endforeach()

foreach(header IN ITEMS torch/csrc/api/include/torch/version.h torch/headeronly/version.h)
  if(EXISTS ${libtorch_INCLUDE_DIR}/${header} AND NOT libtorch_VERSION)
    file(STRINGS ${libtorch_INCLUDE_DIR}/${header} numbers REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
    list(TRANSFORM numbers REPLACE "^.* " "")
    list(JOIN numbers "." libtorch_VERSION)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS libtorch_torch_LIBRARY ${libraries} libtorch_INCLUDE_DIR VERSION_VAR libtorch_VERSION)
mark_as_advanced(libtorch_INCLUDE_DIR ${libraries} libtorch_torch_cuda_LIBRARY libtorch_c10_cuda_LIBRARY)

if(Libtorch_FOUND AND NOT TARGET libtorch::libtorch)
  # PyTorch 2.5 and older from PyPI have strings of another layout than everything else here.
  if(EXISTS ${folder}/../share/cmake/Torch/TorchConfig.cmake)
    file(STRINGS ${folder}/../share/cmake/Torch/TorchConfig.cmake old REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(old)
      message(FATAL_ERROR "${folder}: was built with the old layout of std::string; PyTorch 2.6 and newer are not")
    endif()
  endif()
  add_library(libtorch::libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(libtorch::libtorch INTERFACE # of an imported target: no warnings from there
    ${libtorch_INCLUDE_DIR} ${libtorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(libtorch::libtorch INTERFACE
    ${libtorch_torch_LIBRARY} ${libtorch_torch_cpu_LIBRARY} ${libtorch_c10_LIBRARY})
  if(libtorch_CUDA)
    # It registers itself and is never called by name, so it must not be dropped as unused. Its own dependencies are found
    # through its search path.
    target_link_libraries(libtorch::libtorch INTERFACE
      "-Wl,--push-state,--no-as-needed,${libtorch_torch_cuda_LIBRARY},--pop-state" ${libtorch_c10_cuda_LIBRARY})
    target_link_options(libtorch::libtorch INTERFACE -Wl,--allow-shlib-undefined -Wl,-rpath,${folder})
  endif()
endif()
