// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the tokenizer continues a phrase, from any position in it.
#pragma once

#include <sluice/core/types.hpp>

#include <text/words.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace translate {

/// A vocabulary as texts.
struct Pieces {
  std::vector<std::string> texts;  ///< [token] with a space where a word begins; empty: writes nothing (the end)
  sluice::Token eos = -1;
  std::function<std::vector<sluice::Token>(std::string_view)> begin;   ///< of a text, a space before it
  std::function<std::vector<sluice::Token>(std::string_view)> inside;  ///< of a text that continues another one

  /// The tokens for one byte each, -1 where there is none.
  std::array<sluice::Token, 256> bytes() const {
    std::array<sluice::Token, 256> bytes;
    bytes.fill(-1);
    for (auto t = texts.size(); t-- > 0;)
      if (texts[t].size() == 1) bytes[static_cast<unsigned char>(texts[t][0])] = static_cast<sluice::Token>(t);
    return bytes;
  }
};

/// The tokens of one text from each of its bytes on: a model that cut the beginning in its own way is told how to go on.
class Spelling {
 public:
  static constexpr std::int32_t impossible = 1 << 20;

  /// \param other  of a text that ends alike: what they have in common is not looked up again
  Spelling(Pieces const& pieces, std::span<sluice::Token const, 256> bytes, std::string text,
           Spelling const* other = nullptr)
      : text_(std::move(text)), next_(text_.size(), -1), left_(text_.size() + 1, impossible) {
    left_.back() = 0;
    std::string_view const all(text_);
    auto begin = all.size();
    if (other != nullptr)
      for (auto from = other->text_.size(); begin > 0 && from > 0 && all[begin - 1] == other->text_[from - 1];)
        --begin, --from, next_[begin] = other->next_[from], left_[begin] = other->left_[from];
    for (auto i = begin; i-- > 0;) {
      // Text far ahead does not change the next token, and would make long texts slow.
      auto end = std::min(all.size(), i + 64);
      while (end < all.size() && text::Utf8::continues(all[end])) --end;
      auto const rest = all.substr(i, end - i);
      auto const tokens = text::Utf8::continues(rest[0]) ? std::vector{bytes[static_cast<unsigned char>(rest[0])]}
                                                         : pieces.inside(rest);
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

/// Spellings by their texts: a glossary's terms come again and again. Calls from several threads are fine.
class Spellings {
 public:
  static constexpr std::size_t most = std::size_t{1}
                                      << 18;    ///< bytes of text that are kept, ten times as many of memory
  static constexpr std::size_t longest = 1024;  ///< of a text that is: long ones do not come again

  explicit Spellings(Pieces pieces) : pieces_(std::move(pieces)), piece_of_(pieces_.bytes()) {}

  Pieces const& pieces() const { return pieces_; }
  /// \param other  as in Spelling
  std::shared_ptr<Spelling const> of(std::string const& text, Spelling const* other = nullptr) const {
    {
      std::lock_guard const lock(mutex_);
      if (auto const found = known_.find(text); found != known_.end()) return found->second;
    }
    auto made = std::make_shared<Spelling const>(pieces_, piece_of_, text, other);
    std::lock_guard const lock(mutex_);
    if (text.size() <= longest && bytes_ + text.size() > most) known_.clear(), bytes_ = 0;
    if (text.size() <= longest && known_.try_emplace(text, made).second) bytes_ += text.size();
    return made;
  }

 private:
  Pieces pieces_;
  std::array<sluice::Token, 256> piece_of_;  // [byte]
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<Spelling const>> known_;
  mutable std::size_t bytes_ = 0;
};

}  // namespace translate
