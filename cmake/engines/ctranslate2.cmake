# Finds CTranslate2, for the build and for the installed package: through its own package (ctranslate2Config.cmake,
# installed by `cmake --install` of CTranslate2), in CTRANSLATE2_ROOT, CMAKE_PREFIX_PATH and the system.

set(sluice_ctranslate2_needs "CTranslate2 4: its package below CTRANSLATE2_ROOT or CMAKE_PREFIX_PATH")

# sluice_find_ctranslate2(): defines the target sluice_engine::ctranslate2 if CTranslate2 is found.
macro(sluice_find_ctranslate2)
  if(NOT TARGET CTranslate2::ctranslate2)
    find_package(ctranslate2 4 CONFIG QUIET HINTS ${CTRANSLATE2_ROOT} ENV CTRANSLATE2_ROOT)
  endif()
  if(TARGET CTranslate2::ctranslate2)
    add_library(sluice_engine::ctranslate2 INTERFACE IMPORTED GLOBAL)
    target_link_libraries(sluice_engine::ctranslate2 INTERFACE CTranslate2::ctranslate2 ${CMAKE_DL_LIBS})
    if(ctranslate2_VERSION)
      # Compared with the library's when a model is loaded.
      target_compile_definitions(sluice_engine::ctranslate2 INTERFACE SLUICE_CTRANSLATE2_VERSION="${ctranslate2_VERSION}")
    endif()
  endif()
endmacro()
