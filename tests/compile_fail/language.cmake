# cmake -DCOMPILER=c++ -DINCLUDE=dir -DHEADER=sluice/x.hpp -DPROGRAM=file -P language.cmake: fails unless the compiler refuses
# the header as what it is told to read lacks C++20, or exceptions, and says so in no more than six lines.
file(WRITE ${PROGRAM} "#include <${HEADER}>\nint main() {}\n")
foreach(case IN ITEMS "-std=c++17;sluice needs C\\+\\+20: -std=c\\+\\+20" "-std=c++20 -fno-exceptions;sluice needs exceptions")
  list(GET case 0 flags)
  list(GET case 1 sentence)
  separate_arguments(flags)
  execute_process(COMMAND ${COMPILER} ${flags} -I${INCLUDE} -fsyntax-only ${PROGRAM}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX MATCHALL "\n" lines "${output}")
  list(LENGTH lines count)
  if(status EQUAL 0 OR NOT output MATCHES "fatal error: '?${sentence}" OR count GREATER 6)
    message(FATAL_ERROR "${flags}: ${status}, ${count} lines:\n${output}")
  endif()
endforeach()
