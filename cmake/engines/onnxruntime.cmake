# Finds ONNX Runtime, for the build and for the installed package. First its own package (onnxruntimeConfig.cmake, installed by
# `cmake --install` of ONNX Runtime), then onnxruntime_cxx_api.h and the library in ONNXRUNTIME_ROOT, CMAKE_PREFIX_PATH and the
# system: an archive of a release, an installed tree, Debian's libonnxruntime-dev.

set(sluice_onnxruntime_needs "ONNX Runtime 1.17: its package, or onnxruntime_cxx_api.h and libonnxruntime below ONNXRUNTIME_ROOT")

# sluice_find_onnxruntime(): defines the target sluice_engine::onnxruntime if ONNX Runtime is found.
macro(sluice_find_onnxruntime)
  if(NOT TARGET onnxruntime::onnxruntime AND NOT ONNXRUNTIME_ROOT)
    find_package(onnxruntime CONFIG QUIET)
  endif()
  if(TARGET onnxruntime::onnxruntime)
    add_library(sluice_engine::onnxruntime INTERFACE IMPORTED GLOBAL)
    target_link_libraries(sluice_engine::onnxruntime INTERFACE onnxruntime::onnxruntime)
  else()
    find_path(SLUICE_ONNXRUNTIME_INCLUDE_DIR onnxruntime_cxx_api.h HINTS ${ONNXRUNTIME_ROOT} ENV ONNXRUNTIME_ROOT
      PATH_SUFFIXES include include/onnxruntime onnxruntime include/onnxruntime/core/session)
    find_library(SLUICE_ONNXRUNTIME_LIBRARY onnxruntime HINTS ${ONNXRUNTIME_ROOT} ENV ONNXRUNTIME_ROOT PATH_SUFFIXES lib)
    mark_as_advanced(SLUICE_ONNXRUNTIME_INCLUDE_DIR SLUICE_ONNXRUNTIME_LIBRARY)
    if(SLUICE_ONNXRUNTIME_INCLUDE_DIR AND SLUICE_ONNXRUNTIME_LIBRARY)
      add_library(sluice_engine::onnxruntime INTERFACE IMPORTED GLOBAL)
      target_include_directories(sluice_engine::onnxruntime INTERFACE ${SLUICE_ONNXRUNTIME_INCLUDE_DIR})
      target_link_libraries(sluice_engine::onnxruntime INTERFACE ${SLUICE_ONNXRUNTIME_LIBRARY})
    endif()
  endif()
endmacro()
