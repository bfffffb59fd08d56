// SPDX-License-Identifier: Apache-2.0
#include <translate/decoders.hpp>

namespace translate {

std::unique_ptr<Decoders> make_decoders(Options const& options, Models& models, Masks const& masks) {
  switch (options.search) {
    case SearchName::greedy: return make_greedy(options, models, masks);
    case SearchName::sample: return make_sample(options, models, masks);
    case SearchName::blockwise: return make_blockwise(options, models, masks);
    case SearchName::score: return make_score(options, models);
    case SearchName::beam: break;
  }
  return options.constrained() ? make_constrained(options, models, masks) : make_beam(options, models, masks);
}

}  // namespace translate
