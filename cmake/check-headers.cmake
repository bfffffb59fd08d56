# cmake [-DWRITE=ON] -P check-headers.cmake: compares the lists of headers.cmake with the files under include/ and
# kernels/, and fails naming the differences; with WRITE=ON it rewrites the lists instead.

cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
include(${CMAKE_CURRENT_LIST_DIR}/headers.cmake)

file(GLOB_RECURSE headers RELATIVE ${root} ${root}/include/*.hpp)
file(GLOB_RECURSE kernels RELATIVE ${root} ${root}/kernels/*.cuh)
list(SORT headers)
list(SORT kernels)
set(engines ${headers})
list(FILTER engines INCLUDE REGEX "^include/sluice/engine/")
list(FILTER headers EXCLUDE REGEX "^include/sluice/engine/")

if(WRITE)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/headers.cmake text)
  foreach(pair IN ITEMS "HEADERS;headers" "KERNELS;kernels" "ENGINE_HEADERS;engines")
    list(GET pair 0 name)
    list(GET pair 1 found)
    list(TRANSFORM ${found} PREPEND "\n  " OUTPUT_VARIABLE lines)
    list(JOIN lines "" lines)
    string(REGEX REPLACE "set\\(SLUICE_${name}[^)]*\\)" "set(SLUICE_${name}${lines})" text "${text}")
  endforeach()
  file(WRITE ${CMAKE_CURRENT_LIST_DIR}/headers.cmake "${text}")
  return()
endif()

set(wrong FALSE)
foreach(pair IN ITEMS "SLUICE_HEADERS;headers" "SLUICE_KERNELS;kernels" "SLUICE_ENGINE_HEADERS;engines")
  list(GET pair 0 name)
  list(GET pair 1 found)
  set(missing ${${found}})
  list(REMOVE_ITEM missing ${${name}})
  set(gone ${${name}})
  list(REMOVE_ITEM gone ${${found}})
  foreach(file IN LISTS missing)
    message(NOTICE "not in ${name}: ${file}")
  endforeach()
  foreach(file IN LISTS gone)
    message(NOTICE "in ${name}, but not there: ${file}")
  endforeach()
  set(sorted ${${name}})
  list(SORT sorted)
  list(REMOVE_DUPLICATES sorted)
  if(NOT "${sorted}" STREQUAL "${${name}}")
    message(NOTICE "not sorted, or something twice: ${name}")
    set(wrong TRUE)
  endif()
  if(missing OR gone)
    set(wrong TRUE)
  endif()
endforeach()

# all.hpp includes all headers except those that only other headers include; sluice.hpp, which it includes, what most programs use.
set(internal /detail/ ^model/checked$ ^language$
  ^watermark/key_file$ # reads and writes files
  ^grammar/ # large: include sluice/grammar/structure.hpp if you need it
  ^catalogue/ # maps files: include sluice/catalogue/catalogue_beam.hpp if you need it
  ^ngram/ ^speculative/suffix_cache$ # likewise
  ^frames/ # for models that score frames: include sluice/frames/ctc_beam_search.hpp if you need it
  ^output/compiled_ # needs the compiled library
  ^sluice$ ^all$)
list(JOIN internal "|" internal)
file(READ ${root}/include/sluice/sluice.hpp umbrella)
file(READ ${root}/include/sluice/all.hpp rest)
string(APPEND umbrella "${rest}")
foreach(header IN LISTS headers)
  string(REGEX REPLACE "^include/sluice/(.*)\\.hpp$" "\\1" stem ${header})
  string(FIND "${umbrella}" "#include <sluice/${stem}.hpp>" at)
  if(at EQUAL -1 AND NOT stem MATCHES "${internal}")
    message(NOTICE "not in all.hpp: ${stem}")
    set(wrong TRUE)
  endif()
endforeach()

# Every header begins with the check that stops a compiler without C++20.
foreach(file IN LISTS headers engines kernels)
  file(READ ${root}/${file} text LIMIT 4000)
  string(FIND "${text}" "\n#pragma once\n\n#include <sluice/language.hpp>\n" at)
  if(at EQUAL -1 AND NOT file STREQUAL "include/sluice/language.hpp")
    message(NOTICE "does not begin with #pragma once and <sluice/language.hpp>: ${file}")
    set(wrong TRUE)
  endif()
endforeach()

# Headers below a detail/ put their names into sluice::detail, or sluice::cuda::detail (scripts/api-listing sees each name, but
# only where Clang's Python bindings are, and only with the compiler's default instruction set). detail/<stem>_definition.hpp defines
# what <stem>.hpp declares; detail/compiled_<stem>.hpp is <stem>.hpp over the compiled library.
foreach(file IN LISTS headers engines kernels)
  if(file MATCHES "/detail/" AND NOT file MATCHES "_definition\\.hpp$|/compiled_[a-z_]+\\.hpp$")
    file(STRINGS ${root}/${file} lines REGEX "^namespace sluice")
    foreach(line IN LISTS lines)
      if(NOT line MATCHES "^namespace sluice::inline v0(::cuda)?::detail(::[a-z_]+)? {$")
        message(NOTICE "a header below a detail/ opens another namespace than detail: ${file}: ${line}")
        set(wrong TRUE)
      endif()
    endforeach()
  endif()
endforeach()

# Names that others define as macros (Qt, windows.h): tests/odr compiles the public headers after such macros; headers
# that need an engine or a device are only checked here.
foreach(file IN LISTS engines kernels)
  file(STRINGS ${root}/${file} lines
    REGEX "^[^/\"]*[^A-Za-z0-9_/\"]((slots|signals|emit|near|far|small|interface|ERROR|IN|OUT)[^A-Za-z0-9_]|(min|max)\\()")
  foreach(line IN LISTS lines)
    message(NOTICE "a word that others define as a macro ((min)(a, b) is none): ${file}: ${line}")
    set(wrong TRUE)
  endforeach()
endforeach()

# Which folder may include which: itself and those named here (docs/design.md has the same table). A folder may include
# only folders further up, so there are no cycles among folders.
set(folders
  core: "output:core" "watermark:core" "processor:core watermark" "search:core watermark processor"
  "grammar:core processor" "catalogue:core output processor search" "ngram:core output catalogue"
  "model:core output" "speculative:core output watermark search catalogue model"
  "frames:core output processor search ngram" "result:core" "decode:core output" "engine:core output model"
  "c:"
  "cuda/device:core" "cuda/line:core cuda/device" "cuda/select:core cuda/device cuda/line" "cuda/merge:core cuda/device cuda/line"
  "cuda/expand:core output cuda/device cuda/line cuda/select cuda/merge"
  "cuda/projection:core output cuda/device cuda/line cuda/expand"
  "cuda/verify:core cuda/device cuda/line" "cuda/cache:core model cuda/device"
  "cuda/beam:core search cuda/device cuda/line cuda/merge cuda/cache"
  "cuda/instances:cuda/line cuda/select cuda/merge cuda/projection cuda/verify cuda/cache cuda/beam cuda/device"
  "cuda:cuda/instances")
set(above)
foreach(line IN LISTS folders)
  string(REGEX MATCH "^([^:]*):(.*)$" matched "${line}")
  set(folder ${CMAKE_MATCH_1})
  separate_arguments(allowed UNIX_COMMAND "${CMAKE_MATCH_2}")
  foreach(other IN LISTS allowed)
    if(NOT other IN_LIST above)
      message(NOTICE "the table of folders has ${folder} above ${other}, which it may include")
      set(wrong TRUE)
    endif()
  endforeach()
  list(APPEND above ${folder})
  set(allowed_${folder} ${folder} ${allowed})
endforeach()

set(unsettled)
foreach(file IN LISTS headers engines kernels)
  string(REGEX REPLACE "^(include|kernels)/sluice/" "" stem ${file})
  cmake_path(GET stem PARENT_PATH folder)
  string(REGEX REPLACE "/detail(/.*)?$" "" folder "${folder}") # an internal folder belongs to the folder around it
  file(STRINGS ${root}/${file} lines REGEX "^#include <sluice/")
  set(within_${stem})
  if(NOT folder STREQUAL "") # sluice.hpp, all.hpp, version.hpp
    if(NOT folder IN_LIST above)
      message(NOTICE "no row of the table of folders: ${folder}")
      set(wrong TRUE)
      continue()
    endif()
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include <sluice/(.*)>.*$" "\\1" included "${line}")
      cmake_path(GET included PARENT_PATH other)
      string(REGEX REPLACE "/detail(/.*)?$" "" other "${other}")
      if(NOT other STREQUAL "" AND NOT other IN_LIST allowed_${folder})
        message(NOTICE "${stem} includes ${included}, but ${folder} may not include ${other}")
        set(wrong TRUE)
      endif()
      # There, nvcc includes definitions after declarations. Elsewhere detail/<stem>_definition.hpp comes after its <stem>.hpp.
      string(REGEX REPLACE "detail/([a-z_]+)_definition\\.hpp$" "\\1.hpp" declared "${stem}")
      if(other STREQUAL folder AND NOT folder MATCHES "^cuda" AND NOT included STREQUAL declared)
        list(APPEND within_${stem} ${included})
      endif()
    endforeach()
    list(APPEND unsettled ${stem})
  endif()
endforeach()

# No cycles within a folder: a header is settled once all headers that it includes are, until none is left.
set(before -1)
list(LENGTH unsettled count)
while(count GREATER 0 AND NOT count EQUAL before)
  set(rest)
  foreach(stem IN LISTS unsettled)
    foreach(other IN LISTS within_${stem})
      if(other IN_LIST unsettled)
        list(APPEND rest ${stem})
        break()
      endif()
    endforeach()
  endforeach()
  set(unsettled ${rest})
  set(before ${count})
  list(LENGTH unsettled count)
endwhile()
if(count GREATER 0)
  message(NOTICE "a circle of includes among: ${unsettled}")
  set(wrong TRUE)
endif()

if(wrong)
  message(FATAL_ERROR "cmake/headers.cmake, all.hpp and the folders differ")
endif()
