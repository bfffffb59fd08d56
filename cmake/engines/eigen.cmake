# Finds Eigen, for the build and for the installed package: through its own package (Debian: libeigen3-dev).

set(sluice_eigen_needs "Eigen 3.4 or newer (Debian: libeigen3-dev)")

# sluice_find_eigen_package(): defines the target Eigen3::Eigen if Eigen is found. Two calls: Eigen 3.4.0 rejects a version range,
# Eigen 5 rejects a bare "3.4".
macro(sluice_find_eigen_package)
  if(NOT TARGET Eigen3::Eigen)
    find_package(Eigen3 3.4...<6 CONFIG QUIET)
    if(NOT Eigen3_FOUND)
      find_package(Eigen3 3.4 CONFIG QUIET)
    endif()
  endif()
endmacro()

# sluice_find_eigen(): defines the target sluice_engine::eigen if Eigen is found.
macro(sluice_find_eigen)
  sluice_find_eigen_package()
  if(TARGET Eigen3::Eigen)
    add_library(sluice_engine::eigen INTERFACE IMPORTED GLOBAL)
    target_link_libraries(sluice_engine::eigen INTERFACE Eigen3::Eigen)
  endif()
endmacro()
