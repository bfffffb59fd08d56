# cmake -DBUILD=dir -DCONFIG=c -DTARGET=t -DPATTERNS=file -P must_fail.cmake: fails unless building the target does, with errors
# that match every line of the file; a line that begins with "first: " is for the first error.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --config ${CONFIG} --target ${TARGET}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(APPEND output "${errors}")
if(status EQUAL 0)
  message(FATAL_ERROR "${TARGET} compiles")
endif()
file(STRINGS ${PATTERNS} patterns)
string(REGEX MATCH "[^\n]* error: [^\n]*" first "${output}")
foreach(pattern IN LISTS patterns)
  if(pattern MATCHES "^first: (.*)" AND NOT first MATCHES "${CMAKE_MATCH_1}")
    message(FATAL_ERROR "${TARGET} does not compile, but what it says first does not match: ${pattern}\n${output}")
  endif()
  string(REGEX REPLACE "^first: " "" pattern "${pattern}")
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${TARGET} does not compile, but nothing it says matches: ${pattern}\n${output}")
  endif()
endforeach()
