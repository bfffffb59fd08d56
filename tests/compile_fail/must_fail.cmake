# cmake -DBUILD=dir -DCONFIG=c -DTARGET=t -DPATTERNS=file -P must_fail.cmake: fails unless building the target does, with errors
# that match every line of the file.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --config ${CONFIG} --target ${TARGET}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(APPEND output "${errors}")
if(status EQUAL 0)
  message(FATAL_ERROR "${TARGET} compiles")
endif()
file(STRINGS ${PATTERNS} patterns)
foreach(pattern IN LISTS patterns)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${TARGET} does not compile, but nothing it says matches: ${pattern}\n${output}")
  endif()
endforeach()
