// SPDX-License-Identifier: Apache-2.0
/// \file
/// What all translations must obey: --grammar, --json-schema, --regex.
#pragma once

#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/search/rule/forbidden.hpp>
#include <sluice/search/rule/rules.hpp>

#include <translate/masks.hpp>
#include <translate/model.hpp>

namespace translate {

/// A grammar over the pieces of a model. The space with which the first piece begins is not printed, and not judged.
sluice::Structure make_structure(sluice::Grammar const& grammar, Models const& models);

/// All that the command line forbids.
using Restrictions =
    sluice::Rules<sluice::NoRepeatNgram, sluice::RepetitionPenalty, sluice::Forbidden, sluice::Structure>;
Restrictions restrictions(Masks const& masks, sluice::Structure const& structure);

}  // namespace translate
