// SPDX-License-Identifier: Apache-2.0
// The catalogues of the C interface; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/in_catalogue.hpp>

#include "handles.hpp"
#include "passing.hpp"

#include <cstddef>

using namespace sluice::c;

extern "C" {

sluice_status sluice_catalogue_open(char const* file, sluice_catalogue** catalogue) {
  return guarded([&] {
    auto const* const path = &not_null(file, "file");
    auto& made = not_null(catalogue, "catalogue");
    made = new sluice_catalogue{sluice::Catalogue::open(path)};
    return SLUICE_OK;
  });
}

sluice_status sluice_catalogue_create(sluice_token const* tokens, size_t const* lengths, size_t count,
                                      sluice_catalogue** catalogue) {
  return guarded([&] {
    auto& made = not_null(catalogue, "catalogue");
    sluice::require(lengths != nullptr || count == 0, "lengths", "null", "must be as many as it says");
    sluice::CatalogueBuilder builder;
    for (std::size_t i = 0; i < count; ++i) {
      not_null(tokens, "tokens");
      builder.add({tokens, lengths[i]});
      tokens += lengths[i];
    }
    made = new sluice_catalogue{builder.build()};
    return SLUICE_OK;
  });
}
void sluice_catalogue_free(sluice_catalogue* catalogue) { delete catalogue; }

sluice_status sluice_search_choose(sluice_search* search, sluice_catalogue const* catalogue) {
  return guarded([&] {
    not_null(search, "search").options.items =
        catalogue == nullptr ? sluice::InCatalogue() : sluice::InCatalogue(catalogue->catalogue);
    return SLUICE_OK;
  });
}

}  // extern "C"
