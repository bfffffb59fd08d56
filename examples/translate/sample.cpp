// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/sample/sample.hpp>

#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_sample(Options const& options, Models& models, Restrictions const& restrictions) {
  sluice::Sample const search{.temperature = options.temperature,
                              .top_k = options.top_k,
                              .top_p = options.top_p,
                              .samples = options.candidates,
                              .length = {.min = options.min_length, .max = options.max_length}};
  return make_workers(options, models, sluice::Ruled<sluice::Sample, Restrictions>{search, restrictions});
}

}  // namespace translate
