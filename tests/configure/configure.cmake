# Configures the repository, and nothing more, in a folder of its own, with one package hidden or as the machine is.
#   SOURCE, BUILD, GENERATOR, COMPILER
#   OPTIONS   what else cmake is given
#   SAYS      regular expressions (a list): each must match what cmake prints
#   FAILS     ON: cmake must refuse
#   MACHINE   ON: a package whose header this machine lacks must be named as the reason why something is left out
file(REMOVE_RECURSE ${BUILD})
if(HIDE_PKG_CONFIG)
  set(ENV{PKG_CONFIG_LIBDIR} ${BUILD}/nothing)
  set(ENV{PKG_CONFIG_PATH} "")
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} -DSLUICE_BUILD_TESTS=OFF
    ${OPTIONS}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
file(REMOVE_RECURSE ${BUILD})
string(REGEX REPLACE "[ \n]+" " " text "${output}") # CMake wraps its errors

if(FAILS AND status EQUAL 0)
  message(FATAL_ERROR "cmake should have refused:\n${output}")
elseif(NOT FAILS AND NOT status EQUAL 0)
  message(FATAL_ERROR "cmake failed:\n${output}")
endif()
foreach(pattern IN LISTS SAYS)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "cmake does not say \"${pattern}\":\n${output}")
  endif()
endforeach()

if(MACHINE)
  foreach(pair IN ITEMS CLI/CLI.hpp=libcli11-dev png.h=libpng-dev zlib.h=zlib1g-dev zstd.h=libzstd-dev
      sentencepiece_processor.h=libsentencepiece-dev httplib.h=libcpp-httplib-dev benchmark/benchmark.h=libbenchmark-dev
      mpi.h=libopenmpi-dev)
    string(REPLACE "=" ";" pair ${pair})
    list(POP_FRONT pair header package)
    file(GLOB found /usr/include/${header} /usr/local/include/${header} /usr/include/*/${header} /usr/include/*/*/${header})
    file(GLOB beside /usr/lib/*/*/include/${header} /usr/lib/*/*/*/include/${header})
    if(header MATCHES "^z(lib|std)\\.h$" AND text MATCHES "Left out: the example translate ")
      continue() # asked for by a program that is left out itself
    endif()
    if(NOT found AND NOT beside AND NOT text MATCHES "needs [^)]*${package}")
      message(FATAL_ERROR "${header} is not on this machine, yet nothing is left out for want of ${package}:\n${output}")
    endif()
  endforeach()
endif()
