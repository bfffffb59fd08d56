// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the tokenizer writes a phrase on, wherever the text stands.
#pragma once

#include <sluice/core/types.hpp>

#include <text/words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translate {

/// A vocabulary as texts.
struct Pieces {
  std::vector<std::string> texts;  ///< [token] with a space where a word begins; empty: writes nothing (the end)
  sluice::Token eos = -1;
  std::function<std::vector<sluice::Token>(std::string_view)> begin;   ///< of a text, a space before it
  std::function<std::vector<sluice::Token>(std::string_view)> inside;  ///< of a text that goes on where one stopped

  /// The token for one byte, -1 if there is none.
  sluice::Token byte(char byte) const {
    for (std::size_t t = 0; t < texts.size(); ++t)
      if (texts[t].size() == 1 && texts[t][0] == byte) return static_cast<sluice::Token>(t);
    return -1;
  }
};

/// The tokens of one text from each of its bytes on: a model that cut the beginning in its own way is told how to go on.
class Spelling {
 public:
  static constexpr std::int32_t impossible = 1 << 20;

  Spelling(Pieces const& pieces, std::string text)
      : text_(std::move(text)), next_(text_.size(), -1), left_(text_.size() + 1, impossible) {
    left_.back() = 0;
    std::string_view const all(text_);
    for (auto i = all.size(); i-- > 0;) {
      auto const rest = all.substr(i);
      auto const tokens = text::Utf8::continues(rest[0]) ? std::vector{pieces.byte(rest[0])} : pieces.inside(rest);
      if (tokens.empty() || tokens[0] < 0) continue;
      auto const& piece = pieces.texts[static_cast<std::size_t>(tokens[0])];
      if (piece.empty() || !rest.starts_with(piece)) continue;
      next_[i] = tokens[0], left_[i] = std::min(impossible, 1 + left_[i + piece.size()]);
    }
    auto const tokens = pieces.begin(all);
    if (tokens.empty()) return;
    auto const& piece = pieces.texts[static_cast<std::size_t>(tokens[0])];
    if (!piece.starts_with(' ') || !all.starts_with(std::string_view(piece).substr(1))) return;
    first_ = tokens[0], length_ = std::min(impossible, 1 + left_[piece.size() - 1]);
  }

  std::string const& text() const { return text_; }
  /// The token from byte `i` on, and how many there are from there to the end; impossible if the tokenizer has none.
  sluice::Token next(std::size_t i) const { return next_[i]; }
  std::int32_t left(std::size_t i) const { return left_[i]; }
  /// The same from the beginning, with the space before it.
  sluice::Token first() const { return first_; }
  std::int32_t length() const { return length_; }

 private:
  std::string text_;
  std::vector<sluice::Token> next_;
  std::vector<std::int32_t> left_;
  sluice::Token first_ = -1;
  std::int32_t length_ = impossible;
};

}  // namespace translate
