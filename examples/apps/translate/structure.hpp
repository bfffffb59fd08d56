// SPDX-License-Identifier: Apache-2.0
/// \file
/// The grammar that all translations match: --grammar, --json-schema, --regex.
#pragma once

#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/search/bias/bias.hpp>
#include <sluice/search/rule/forbidden.hpp>
#include <sluice/search/rule/rules.hpp>

#include <translate/masks.hpp>
#include <translate/model.hpp>

namespace translate {

/// A grammar over the pieces of a model. The space before the first piece is not printed, and the grammar does not see it.
sluice::Structure make_structure(sluice::Grammar const& grammar, Models const& models);

/// All that the command line forbids, and what it prefers.
using Restrictions =
    sluice::Rules<sluice::NoRepeatNgram, sluice::RepetitionPenalty, sluice::Forbidden, sluice::Structure, sluice::Bias>;
Restrictions restrictions(Masks const& masks, sluice::Structure const& structure, sluice::Bias const& bias);
/// The same without preferences, for searches that bear none.
using Bans = sluice::Rules<sluice::NoRepeatNgram, sluice::RepetitionPenalty, sluice::Forbidden, sluice::Structure>;
Bans bans(Restrictions const& restrictions);

}  // namespace translate
