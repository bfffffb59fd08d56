// SPDX-License-Identifier: Apache-2.0
/// \file
/// The grammar that all translations match: --grammar, --json-schema, --regex.
#pragma once

#include <sluice/core/logits_processor_list.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>

#include <translate/masks.hpp>
#include <translate/model.hpp>

namespace translate {

/// A grammar over the pieces of a model. The space before the first piece is not printed, and the grammar does not see it.
sluice::Structure make_structure(sluice::Grammar const& grammar, Models const& models);

/// All that the command line forbids, what it prefers, and the mark of searches that do not draw.
struct Restrictions {
  sluice::LogitsProcessorList processors{};
  sluice::Structure structure{};  ///< one of them
};
Restrictions restrictions(Masks const& masks, sluice::Structure const& structure, sluice::Bias const& bias,
                          sluice::GreenList const& mark);
/// The mark that a processor makes; none if there is no watermark, or the search makes it.
sluice::GreenList make_mark(Options const& options);

}  // namespace translate
