# What our own programs share; nothing of it reaches a consumer.

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release) # no type means no optimisation, which is hardly what anybody wants here
  endif()
endif()

# Models of examples and references of tests compute with it; the library does not. Two calls: Eigen 3.4.0 refuses a version
# range, Eigen 5 refuses a bare "3.4".
find_package(Eigen3 3.4...<6 CONFIG QUIET)
if(NOT Eigen3_FOUND)
  find_package(Eigen3 3.4 CONFIG QUIET)
endif()
if(NOT TARGET Eigen3::Eigen)
  message(FATAL_ERROR "sluice's own programs need Eigen 3.4 or newer (Debian: libeigen3-dev)")
endif()
find_package(nlohmann_json 3.11 CONFIG QUIET)

set(gcc_or_clang $<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>)
set(clang $<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>)
set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(SLUICE_WERROR)
  list(APPEND warnings -Werror)
endif()

add_library(sluice_warnings INTERFACE)
target_compile_options(sluice_warnings INTERFACE
  "$<${gcc_or_clang}:${warnings}>"
  # Part of Clang's -Wconversion, not of GCC's; and Clang reports std::stable_sort of libstdc++ 12 to whoever calls it.
  "$<${clang}:-Wno-sign-conversion;-Wno-deprecated-declarations>"
  # GCC 12 finds it in std::optional and in its own AVX-512 intrinsics; the sanitizers and Clang look too.
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")

add_library(sluice_native INTERFACE)
if(SLUICE_NATIVE)
  target_compile_options(sluice_native INTERFACE $<${gcc_or_clang}:-march=native>)
endif()

# For those who ask: our programs have threads of their own, each with products in one thread.
add_library(sluice_openmp INTERFACE)
if(SLUICE_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    target_link_libraries(sluice_openmp INTERFACE OpenMP::OpenMP_CXX)
  else()
    message(STATUS "OpenMP was not found: its test runs in one thread (Debian, Clang 19: libomp-19-dev)")
  endif()
endif()

# What nearly all programs read, compiled once: for programs as the preset has them, and for those that are optimised more.
# Not for every preset, as it hides includes that are missing from a program.
function(sluice_precompile name)
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE sluice::sluice Eigen3::Eigen sluice_warnings sluice_native)
  target_precompile_headers(${name} PRIVATE <sluice/sluice.hpp>)
  if(TARGET nlohmann_json::nlohmann_json)
    target_precompile_headers(${name} PRIVATE <nlohmann/json.hpp>)
  endif()
endfunction()
set(optimised $<${gcc_or_clang}:-O1>)
if(SLUICE_PRECOMPILE)
  file(CONFIGURE OUTPUT precompiled.cpp CONTENT "")
  sluice_precompile(sluice.precompiled)
  sluice_precompile(sluice.precompiled.optimised ${optimised})
endif()

# sluice_program(<name> <source>...): one of our programs; sluice_part(...): what several of them share.
function(sluice_program name)
  add_executable(${name} ${ARGN})
  sluice_own(${name})
endfunction()
function(sluice_part name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARGN})
  sluice_own(${name})
endfunction()
function(sluice_own name)
  target_link_libraries(${name} PRIVATE sluice::sluice Eigen3::Eigen sluice_warnings sluice_native)
  if(SLUICE_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM sluice.precompiled)
  endif()
endfunction()

# sluice_optimise(<name>): a program that is optimised even where the others are not, or less. -O2 would take half as long again
# to compile, and run no faster.
function(sluice_optimise name)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE ${optimised})
    if(SLUICE_PRECOMPILE)
      set_target_properties(${name} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM sluice.precompiled.optimised)
    endif()
  endif()
endfunction()
# sluice_together(<name>): a program whose files may be compiled as one, or half of them where all are compiled for speed, so that
# two processors share the work.
function(sluice_together name)
  if(SLUICE_BATCH GREATER 1)
    set(batch 0)
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
      set(batch ${SLUICE_BATCH})
    endif()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# sluice_missing(<option> <what> <package>): a package is not there. Fatal where the option insists.
function(sluice_missing option what package)
  if(${option} STREQUAL "AUTO")
    message(STATUS "Left out: ${what} (needs ${package})")
  else()
    message(FATAL_ERROR "${what}: needs ${package}, or -D${option}=OFF")
  endif()
endfunction()

include(cmake/test-batches.cmake)

# All that drives an engine: tests, examples, benchmarks.
add_custom_target(sluice.engines)

# Where a tree that scripts/fetch-llama brought, or an installed one, has what its programs load: backends of ggml, if they are
# not linked; and vocabularies without weights.
set(sluice_llama_definitions SLUICE_LLAMA_BACKENDS="" SLUICE_LLAMA_MODELS="")
if(SLUICE_GGML_LIBRARY)
  cmake_path(GET SLUICE_GGML_LIBRARY PARENT_PATH folder)
  set(sluice_llama_definitions SLUICE_LLAMA_BACKENDS="${folder}" SLUICE_LLAMA_MODELS="")
  cmake_path(GET folder PARENT_PATH folder)
  if(EXISTS ${folder}/models/ggml-vocab-gpt-2.gguf)
    list(TRANSFORM sluice_llama_definitions REPLACE "MODELS=.*" "MODELS=\"${folder}/models\"")
  endif()
endif()

add_subdirectory(examples) # first: it defines sluice_transformer, which tests and benchmarks use
if(SLUICE_BUILD_TESTS)
  enable_testing()
  add_subdirectory(tests)
endif()
if(SLUICE_BUILD_BENCHMARKS OR SLUICE_BUILD_BENCHMARKS STREQUAL "AUTO")
  enable_testing()
  add_subdirectory(benchmarks)
endif()

# Every public header compiles on its own: `ninja all_verify_interface_header_sets`. The targets that do it come into being
# after all others, so what is added to the folder here, the warnings, counts for them alone.
if(SLUICE_BUILD_TESTS)
  set_target_properties(sluice PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  foreach(engine IN LISTS SLUICE_ENGINES)
    if(TARGET sluice_engine::${engine})
      set_target_properties(sluice_${engine} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    endif()
  endforeach()
  add_compile_options($<TARGET_PROPERTY:sluice_warnings,INTERFACE_COMPILE_OPTIONS>)
endif()
