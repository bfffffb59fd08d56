// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases with boosts, and how a ContextGraph pays them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/common/phrase.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::inline v0 {

/// A phrase with its boost, in nats: what its occurrence adds to the log-probability of an output.
struct BiasedPhrase {
  std::vector<Phrase> spellings{};    ///< any of these counts as the phrase: cases, other cuts of a tokeniser
  std::optional<float> per_token{};   ///< each token earns this; default: ContextOptions::per_token
  std::optional<float> whole{};       ///< instead: the phrase earns this, spread evenly over a spelling's tokens
  std::vector<float> token_boosts{};  ///< instead: one per token; every spelling then has so many tokens
};

/// Which phrases are paid where several end at one token.
enum class Matches : std::uint8_t {
  all,      ///< each of them; a phrase of which several spellings end there only once, for its longest one
  longest,  ///< only those of the longest spelling
  first,    ///< the same, and no other phrase may have begun before that token (sherpa-onnx without its strict mode)
};

/// The options of a ContextGraph.
struct ContextOptions {
  float per_token = 1;  ///< the boost of a token where the phrase does not say; finite
  Matches matches = Matches::all;
  bool once = false;  ///< pay each phrase only the first time that it occurs in an output
  std::int32_t lead =
      0;  ///< beginnings of so many tokens are lent nothing yet: 0, a phrase helps from its first token on;
          ///< 1, from its second on, which spares an edit for each first token; as many as phrases have,
          ///< only whole phrases count (sequence_bias of Hugging Face). >= 0
};

}  // namespace sluice::inline v0
