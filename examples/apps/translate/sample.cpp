// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/sample.hpp>

#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_sample(Options const& options, Models& models, Restrictions const& restrictions) {
  auto search = options.samplers.search();
  search.search.temperature = options.temperature;
  search.search.top_k = options.top_k, search.search.top_p = options.top_p;
  search.search.samples = options.candidates;
  search.search.watermark = options.watermark.read();
  search.search.length = {.min = options.min_length, .max = options.max_length};
  return make_workers(options, models, sluice::Ruled<text::Samplers::Looking, Restrictions>{search, restrictions});
}

}  // namespace translate
