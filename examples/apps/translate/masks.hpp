// SPDX-License-Identifier: Apache-2.0
/// \file
/// Masks: forbidden phrases, n-gram blocking and penalties, for any search; and boosted phrases.
#pragma once

#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>

#include <text/bias.hpp>
#include <translate/options.hpp>
#include <translate/tokenizer.hpp>

#include <string>
#include <vector>

namespace translate {

struct Masks {
  sluice::NoRepeatNgram ngrams{};
  sluice::RepetitionPenalty repetition{};
  sluice::Forbidden forbidden{};
};

/// \throws text::InputError  if the file of phrases cannot be read
Masks make_masks(Options const& options, Tokenizer const& tokenizer);
/// The same of phrases that are no file's.
Masks make_masks(Options const& options, std::vector<std::string> const& forbidden, Tokenizer const& tokenizer);

/// \throws text::InputError  naming a phrase that has a character unknown to the tokenizer
sluice::Bias make_bias(std::vector<text::BiasTerm> const& terms, bool once, Tokenizer const& tokenizer);

}  // namespace translate
