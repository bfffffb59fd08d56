// SPDX-License-Identifier: Apache-2.0
#include <translate/decoders.hpp>

#include <tuple>

namespace translate {

std::unique_ptr<Decoders> make_decoders(Options const& options, Models& models, Restrictions const& restrictions) {
  switch (options.search) {
    case SearchName::greedy: return make_greedy(options, models, restrictions);
    case SearchName::best_first: return make_best_first(options, models, restrictions);
    case SearchName::sample: return make_sample(options, models, restrictions);
    case SearchName::blockwise: return make_blockwise(options, models, restrictions);
    case SearchName::score: return make_score(options, models, restrictions.structure);
    case SearchName::beam: break;
  }
  return options.constrained() ? make_constrained(options, models, restrictions)
                               : make_beam(options, models, restrictions);
}

}  // namespace translate
