# Settings shared by our own programs; none of it reaches a consumer.

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release) # no build type means no optimisation, which is rarely wanted
  endif()
endif()

# Models of examples and references of tests use Eigen; of the library, only engine/eigen.hpp does.
sluice_find_eigen_package()
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
  # Part of Clang's -Wconversion, not of GCC's; and Clang reports uses of libstdc++ 12's std::stable_sort.
  "$<${clang}:-Wno-sign-conversion;-Wno-deprecated-declarations>"
  # GCC 12 reports it in std::optional and in its own AVX-512 intrinsics; the sanitizers and Clang check for it too.
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")

# GCC collects its garbage less often: a program here compiles in an eighth less time, with a quarter more memory (1.6 GB at most).
add_library(sluice_compiler_memory INTERFACE)
target_compile_options(sluice_compiler_memory INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-expand=200 --param ggc-min-heapsize=524288>")

add_library(sluice_native INTERFACE)
if(SLUICE_NATIVE)
  target_compile_options(sluice_native INTERFACE $<${gcc_or_clang}:-march=native>)
endif()

# Optional: our programs have their own threads, with single-threaded products.
add_library(sluice_openmp INTERFACE)
if(SLUICE_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    target_link_libraries(sluice_openmp INTERFACE OpenMP::OpenMP_CXX)
  else()
    message(STATUS "OpenMP was not found: its test runs in one thread (Debian, Clang 19: libomp-19-dev)")
  endif()
endif()

# What is tried, not measured (preset applications): nothing is optimised but the library, and what sluice_optimise names.
set(sluice_unoptimised FALSE)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_FLAGS_RELEASE MATCHES "^-O0( |$)")
  set(sluice_unoptimised TRUE)
endif()

# What our programs include and link: headers alone, or a compiled library (here a static one, for the processor of the others). Some
# are of headers alone even so: the small examples, as their readers build them, and tests that hold both to the same results.
set(sluice_own sluice::sluice)
set(sluice_of_headers_alone "^(sluice\\.test\\.decode|oracle_check|sluice\\.small_examples|smallest)$")
if(SLUICE_OWN_COMPILED)
  add_library(sluice_own_compiled STATIC EXCLUDE_FROM_ALL ${sluice_compiled_sources} ${PROJECT_SOURCE_DIR}/src/compiled/products.cpp)
  target_compile_definitions(sluice_own_compiled PUBLIC SLUICE_COMPILED SLUICE_COMPILED_PRODUCTS)
  target_compile_options(sluice_own_compiled PRIVATE $<${gcc_or_clang}:-O1>)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" OR sluice_unoptimised) # hardly a test of these presets reads grammars
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/compiled/grammars.cpp PROPERTIES COMPILE_OPTIONS -O0)
  endif()
  target_link_libraries(sluice_own_compiled PUBLIC sluice::sluice PRIVATE sluice_warnings sluice_native sluice_compiler_memory)
  set(sluice_own sluice_own_compiled)
endif()

# A precompiled header of what nearly all programs include: one for programs built as the preset says, and one for
# optimised programs. Not in every preset, as it hides missing includes.
# ccache reads what a precompiled header stands for, and Clang would ask for the times of its files.
if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache" AND SLUICE_PRECOMPILE)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
function(sluice_precompile name)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp) # built where it is used
  target_compile_options(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE ${sluice_own} Eigen3::Eigen sluice_warnings sluice_native sluice_compiler_memory)
  target_precompile_headers(${name} PRIVATE <sluice/all.hpp>)
  if(TARGET nlohmann_json::nlohmann_json)
    target_precompile_headers(${name} PRIVATE <nlohmann/json.hpp>)
  endif()
endfunction()
set(optimised $<${gcc_or_clang}:-O1>)
set(sluice_precompiled sluice.precompiled)
if(SLUICE_PRECOMPILE)
  file(CONFIGURE OUTPUT precompiled.cpp CONTENT "")
  sluice_precompile(sluice.precompiled)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_FLAGS_RELEASE MATCHES "^-O[01]( |$)") # all of it is compiled so
    set(sluice_precompiled_optimised sluice.precompiled)
  else()
    set(sluice_precompiled_optimised sluice.precompiled.optimised)
    sluice_precompile(sluice.precompiled.optimised ${optimised})
  endif()
endif()

# sluice_program(<name> <source>...): one of our programs; sluice_part(...): code that several of them share.
function(sluice_program name)
  add_executable(${name} ${ARGN})
  sluice_own(${name})
endfunction()
function(sluice_part name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARGN})
  sluice_own(${name})
endfunction()
function(sluice_own name)
  target_link_libraries(${name} PRIVATE Eigen3::Eigen sluice_warnings sluice_native sluice_compiler_memory)
  if(SLUICE_OWN_COMPILED AND name MATCHES "${sluice_of_headers_alone}")
    target_link_libraries(${name} PRIVATE sluice::sluice) # nor what is precompiled with the others' definitions
    return()
  endif()
  target_link_libraries(${name} PRIVATE ${sluice_own})
  if(SLUICE_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM ${sluice_precompiled})
  endif()
endfunction()

# sluice_optimise(<name>): optimises a program even if others are not, or less. -O2 would compile half as long again,
# and run no faster.
function(sluice_optimise name)
  if(sluice_unoptimised)
    target_compile_options(${name} PRIVATE -O1)
    set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    sluice_optimise_lightly(${name})
  endif()
endfunction()
# sluice_optimise_lightly(<name>): the same in every build, for what steers and does not compute: -O1 compiles in two thirds of the
# time of -O3.
function(sluice_optimise_lightly name)
  if(sluice_unoptimised)
    return()
  endif()
  target_compile_options(${name} PRIVATE ${optimised})
  get_target_property(precompiled ${name} PRECOMPILE_HEADERS_REUSE_FROM)
  if(precompiled)
    set_target_properties(${name} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM ${sluice_precompiled_optimised})
  endif()
endfunction()

# sluice_together(<name>): compiles a program's files as one unit, or SLUICE_BATCH at a time if all are compiled for speed, to use
# more than one processor.
function(sluice_together name)
  if(SLUICE_BATCH GREATER 1)
    set(batch 0)
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
      set(batch ${SLUICE_BATCH})
    endif()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# sluice_missing(<option> <what> <package>): reports a missing package. Fatal if the option is ON.
function(sluice_missing option what package)
  if(${option} STREQUAL "AUTO")
    message(STATUS "Left out: ${what} (needs ${package})")
  else()
    message(FATAL_ERROR "${what}: needs ${package}, or -D${option}=OFF")
  endif()
endfunction()

include(cmake/test-batches.cmake)
include(cmake/small-programs.cmake)

# All programs that use an engine: tests, examples, benchmarks.
add_custom_target(sluice.engines)

# Where a tree from tools/fetch-llama, or an installed one, has what its programs load: ggml's backends, if not
# linked, and vocabularies without weights.
set(sluice_llama_definitions SLUICE_LLAMA_BACKENDS="" SLUICE_LLAMA_MODELS="")
if(SLUICE_GGML_LIBRARY)
  cmake_path(GET SLUICE_GGML_LIBRARY PARENT_PATH folder)
  set(sluice_llama_definitions SLUICE_LLAMA_BACKENDS="${folder}" SLUICE_LLAMA_MODELS="")
  cmake_path(GET folder PARENT_PATH folder)
  if(EXISTS ${folder}/models/ggml-vocab-gpt-2.gguf)
    list(TRANSFORM sluice_llama_definitions REPLACE "MODELS=.*" "MODELS=\"${folder}/models\"")
  endif()
endif()

# sluice_engine::llama_jinja: llama.cpp's engine of Jinja, for chat templates, where tools/fetch-llama has built it.
if(TARGET sluice_engine::llama)
  find_path(SLUICE_LLAMA_JINJA_INCLUDE_DIR jinja/runtime.h HINTS ${LLAMA_ROOT} ENV LLAMA_ROOT PATH_SUFFIXES include)
  find_library(SLUICE_LLAMA_JINJA_LIBRARY llama_jinja HINTS ${LLAMA_ROOT} ENV LLAMA_ROOT PATH_SUFFIXES lib)
  mark_as_advanced(SLUICE_LLAMA_JINJA_INCLUDE_DIR SLUICE_LLAMA_JINJA_LIBRARY)
  if(SLUICE_LLAMA_JINJA_INCLUDE_DIR AND SLUICE_LLAMA_JINJA_LIBRARY)
    add_library(sluice_engine::llama_jinja INTERFACE IMPORTED GLOBAL)
    target_include_directories(sluice_engine::llama_jinja INTERFACE ${SLUICE_LLAMA_JINJA_INCLUDE_DIR})
    target_link_libraries(sluice_engine::llama_jinja INTERFACE ${SLUICE_LLAMA_JINJA_LIBRARY} sluice_engine::llama)
    target_compile_definitions(sluice_engine::llama_jinja INTERFACE SLUICE_LLAMA_JINJA)
  else()
    message(STATUS "Left out: chat templates in Jinja (need libllama_jinja, which tools/fetch-llama builds)")
  endif()
endif()

# Graphs for the programs that use ONNX Runtime, where python3-onnx is there; without, they say what they skip.
if(TARGET sluice_engine::onnxruntime)
  add_custom_target(sluice.onnx_models)
  set(sluice_onnx_definitions SLUICE_ONNX_MODELS="")
  find_program(SLUICE_PYTHON python3)
  foreach(python IN ITEMS ${SLUICE_PYTHON} /usr/bin/python3)
    execute_process(COMMAND ${python} -c "import numpy, onnx" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(sluice_onnx_models ${PROJECT_BINARY_DIR}/onnx-models)
      set(weights ${PROJECT_SOURCE_DIR}/examples/apps/translate/model/model.safetensors)
      add_custom_command(OUTPUT ${sluice_onnx_models}/expected.json
        COMMAND ${python} ${PROJECT_SOURCE_DIR}/tools/onnx_models.py ${sluice_onnx_models} ${weights}
        COMMAND ${python} ${PROJECT_SOURCE_DIR}/tools/onnx-cut ${sluice_onnx_models}/transformer/decoder_model_merged.onnx
          ${sluice_onnx_models}/transformer/hidden.onnx ${sluice_onnx_models}/transformer/layer.onnx
        COMMAND ${python} ${PROJECT_SOURCE_DIR}/tools/onnx-cut ${sluice_onnx_models}/gru/model.onnx
          ${sluice_onnx_models}/gru/hidden.onnx ${sluice_onnx_models}/gru/layer.onnx
        DEPENDS ${PROJECT_SOURCE_DIR}/tools/onnx_models.py ${PROJECT_SOURCE_DIR}/tools/onnx-cut ${weights} VERBATIM)
      add_custom_target(sluice.onnx_models.made DEPENDS ${sluice_onnx_models}/expected.json)
      add_dependencies(sluice.onnx_models sluice.onnx_models.made)
      set(sluice_onnx_definitions SLUICE_ONNX_MODELS="${sluice_onnx_models}")
      break()
    endif()
  endforeach()
  if(failed)
    message(STATUS "Left out: graphs for ONNX Runtime (needs python3-onnx and python3-numpy of Debian)")
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

# Every public header compiles on its own: `ninja all_verify_interface_header_sets`. CMake creates these targets after
# all others, so options added to the folder here, the warnings, apply only to them.
if(SLUICE_BUILD_TESTS)
  set_target_properties(sluice PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  foreach(engine IN LISTS SLUICE_ENGINES)
    if(TARGET sluice_engine::${engine})
      set_target_properties(sluice_${engine} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    endif()
  endforeach()
  add_compile_options($<TARGET_PROPERTY:sluice_warnings,INTERFACE_COMPILE_OPTIONS>)
endif()
