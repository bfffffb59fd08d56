# Finds llama.cpp, for the build and for the installed package. First its own package (llama-config.cmake, installed by
# `cmake --install` of llama.cpp), then llama.h and the libraries in LLAMA_ROOT, CMAKE_PREFIX_PATH and the system: an
# installed tree, or a checkout built in its folder build/.

set(sluice_llama_needs "llama.cpp: its package, or llama.h, libllama, libggml and libggml-base below LLAMA_ROOT")

# sluice_find_llama(): defines the target sluice_engine::llama if llama.cpp is found.
macro(sluice_find_llama)
  if(NOT TARGET llama AND NOT LLAMA_ROOT)
    find_package(llama CONFIG QUIET)
  endif()
  if(TARGET llama)
    add_library(sluice_engine::llama INTERFACE IMPORTED GLOBAL)
    target_link_libraries(sluice_engine::llama INTERFACE llama)
  else()
    find_path(SLUICE_LLAMA_INCLUDE_DIR llama.h HINTS ${LLAMA_ROOT} ENV LLAMA_ROOT PATH_SUFFIXES include)
    find_path(SLUICE_GGML_INCLUDE_DIR ggml.h HINTS ${LLAMA_ROOT} ENV LLAMA_ROOT PATH_SUFFIXES include ggml/include)
    foreach(sluice_library IN ITEMS llama ggml ggml-base)
      string(MAKE_C_IDENTIFIER ${sluice_library} sluice_name)
      string(TOUPPER ${sluice_name} sluice_name)
      find_library(SLUICE_${sluice_name}_LIBRARY ${sluice_library}
        HINTS ${LLAMA_ROOT} ENV LLAMA_ROOT PATH_SUFFIXES lib build/bin)
      mark_as_advanced(SLUICE_${sluice_name}_LIBRARY)
    endforeach()
    mark_as_advanced(SLUICE_LLAMA_INCLUDE_DIR SLUICE_GGML_INCLUDE_DIR)
    if(SLUICE_LLAMA_INCLUDE_DIR AND SLUICE_GGML_INCLUDE_DIR AND SLUICE_LLAMA_LIBRARY AND SLUICE_GGML_LIBRARY AND
        SLUICE_GGML_BASE_LIBRARY)
      add_library(sluice_engine::llama INTERFACE IMPORTED GLOBAL)
      target_include_directories(sluice_engine::llama INTERFACE ${SLUICE_LLAMA_INCLUDE_DIR} ${SLUICE_GGML_INCLUDE_DIR})
      target_link_libraries(sluice_engine::llama INTERFACE
        ${SLUICE_LLAMA_LIBRARY} ${SLUICE_GGML_LIBRARY} ${SLUICE_GGML_BASE_LIBRARY})
    endif()
  endif()
  # An installed libllama does not say where libggml lies. A program's RPATH holds for the libraries of its libraries, its RUNPATH,
  # which linkers write by default, does not.
  if(TARGET sluice_engine::llama AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(sluice_engine::llama INTERFACE LINKER:--disable-new-dtags)
  endif()
endmacro()
