# Compiling a test mostly means parsing headers and instantiating the same templates again, so SLUICE_BATCH tests of a
# program are compiled as one translation unit. All their includes come first, then each file in its own namespace, so a
# test is written as if it were alone. One difference: a test's own function hides those of the same name in
# sluice::test.

# sluice_test_batches(<variable> <name> <source>...): the files to compile instead of the sources. A source that defines
# macros, which may change a header, or that uses a sluice namespace of its own, is compiled separately.
function(sluice_test_batches variable name)
  if(NOT SLUICE_BATCH)
    set(${variable} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(alone)
  set(together)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} obstacles REGEX "^#define|^namespace sluice")
    if(obstacles)
      list(APPEND alone ${source})
    else()
      list(APPEND together ${source})
    endif()
  endforeach()

  # Batches of nearly equal numbers of files.
  list(LENGTH together files)
  math(EXPR batches "(${files} + ${SLUICE_BATCH} - 1) / ${SLUICE_BATCH}")
  set(result ${alone})
  set(begin 0)
  foreach(batch RANGE 1 ${batches})
    if(files EQUAL 0)
      break()
    endif()
    math(EXPR end "${files} * ${batch} / ${batches}")
    math(EXPR length "${end} - ${begin}")
    list(SUBLIST together ${begin} ${length} sources)
    set(begin ${end})
    if(length EQUAL 1)
      list(APPEND result ${sources})
      continue()
    endif()

    set(includes)
    set(bodies)
    foreach(source IN LISTS sources)
      file(STRINGS ${source} lines REGEX "^#include ")
      list(APPEND includes ${lines})
      cmake_path(GET source FILENAME stem)
      string(MAKE_C_IDENTIFIER ${stem} stem)
      string(APPEND bodies "namespace ${stem} {\n#include \"${source}\"\n}\n")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source}) # its includes may change
    endforeach()
    list(REMOVE_DUPLICATES includes)
    list(JOIN includes "\n" includes)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${name}.${batch}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${includes}\n${bodies}" @ONLY)
    list(APPEND result ${file})
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()
