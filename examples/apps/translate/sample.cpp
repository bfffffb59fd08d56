// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/sample.hpp>

#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_sample(Options const& options, Models& models, Restrictions const& restrictions) {
  auto search = options.samplers.sample;
  search.temperature = options.temperature;
  search.top_k = options.top_k, search.top_p = options.top_p;
  search.samples = options.candidates;
  search.watermark = options.watermark.read();
  search.length = {.min = options.min_length, .max = options.max_length};
  auto processors = restrictions.processors;
  processors.append(options.samplers.processors());
  return make_workers(options, models, search, processors);
}

}  // namespace translate
