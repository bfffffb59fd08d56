// SPDX-License-Identifier: Apache-2.0
/// \file
/// What every search knows of a sentence's outputs: their tokens, their beginning, their length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>

#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// The limits that a sentence, its vocabulary and a search's options set to its outputs: the base of a search's State.
struct OutputLimits {
  Bans bans;
  Prefix prefix;
  Vocabulary const* vocabulary = nullptr;
  LengthLimits::Bounds bounds{};

  /// \throws std::invalid_argument  as LengthLimits::of() does
  SLUICE_LAZY void begin(Sentence const& sentence, LengthLimits const& length) {
    bounds = length.of(sentence);
    bans.reset(*sentence.vocabulary);
    prefix = Prefix(sentence);
    vocabulary = sentence.vocabulary;
  }
  /// The tokens that cannot follow an output of this length.
  SLUICE_LAZY std::span<Edit const> edits(std::int32_t size) const { return bans.edits(size < bounds.min); }
  /// Whether an output of this length that ends in `token` is finished: by an eos, or, where there is none, by its length.
  SLUICE_LAZY bool finished_by(Token token, std::int32_t size) const {
    return vocabulary->ends(token) || (size >= bounds.max && vocabulary->eos.empty());
  }
};

}  // namespace sluice::inline v0::detail
