// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where words and sentences begin and end.
#pragma once

#include <sluice/core/types.hpp>

#include <text/words.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace translate {

/// Makes characters into symbols: the characters themselves, and a mark wherever two of them are not of one word. So
/// whole words are plain sequences of symbols: "cat" is begin c a t end, which is not in "cats".
///
/// A sentence begins at the beginning of the text, after one of . ! ? and a space, and after an opening quotation mark.
class WordReader {
 public:
  enum class Before : std::uint8_t { nothing, space, word, opener, other };
  enum class Sentence : std::uint8_t { inside, ended, opening };

  static constexpr sluice::Token word_begins = -1;      ///< within a sentence
  static constexpr sluice::Token sentence_begins = -2;  ///< a word that is its first
  static constexpr sluice::Token word_ends = -3;
  static constexpr sluice::Token no_word = -4;  ///< neither before nor after

  WordReader() = default;
  /// Somewhere in a text.
  WordReader(Before before, Sentence sentence) : before_(before), sentence_(sentence) {}

  /// Calls `symbol` with the mark before `c`, if there is one, and c.
  template <class F>
  void read(char32_t c, F&& symbol) {
    auto const word = text::is_word(c);
    if (word && before_ != Before::word) symbol(opening() ? sentence_begins : word_begins);
    if (!word) symbol(before_ == Before::word ? word_ends : no_word);
    auto const space = text::is_space(c);
    if (word) sentence_ = Sentence::inside;
    else if (space) sentence_ = sentence_ == Sentence::ended ? Sentence::opening : sentence_;
    else punctuation(c);
    symbol(space ? sluice::Token{' '} : static_cast<sluice::Token>(c));
    before_ = word ? Before::word : space ? Before::space : opens(c) ? Before::opener : Before::other;
  }
  /// The text ends here.
  template <class F>
  void finish(F&& symbol) {
    symbol(before_ == Before::word ? word_ends : no_word);
    before_ = Before::other;
  }

  /// Calls `symbol` for each of a phrase that comes here, with the number of bytes up to there. Only an edge that is of
  /// a word is marked: "." may directly follow one.
  template <class F>
  void phrase(std::string_view text, F&& symbol) {
    std::size_t bytes = 0;
    auto const add = [&](sluice::Token s) { symbol(s, bytes); };
    for (auto const c : text::characters(text)) {
      auto edge = bytes == 0 && !text::is_word(c);
      bytes += text::to_utf8({&c, 1}).size();
      read(c, [&](sluice::Token s) {
        if (!std::exchange(edge, false)) add(s);
      });
    }
    if (before_ == Before::word) finish(add);
  }

  /// Whether `c` usually follows a word directly.
  static bool closes(char32_t c) { return one_of(U".,;:!?%)]}'\u2019\u201D\u00BB\u2026", c); }

  Before before() const { return before_; }
  /// Whether a word that came now would be the first of a sentence.
  bool opening() const { return sentence_ == Sentence::opening; }

 private:
  static bool one_of(std::u32string_view set, char32_t c) { return set.find(c) != set.npos; }
  /// Whether a word follows `c` without a space.
  bool opens(char32_t c) const {
    return one_of(U"([{-/", c) ||
           (one_of(U"\"'\u2018\u201C\u201E\u00AB", c) && before_ != Before::word && before_ != Before::other);
  }
  void punctuation(char32_t c) {
    if (sentence_ == Sentence::opening) return;
    if (one_of(U".!?\u2026", c)) sentence_ = Sentence::ended;
    else if (one_of(U"\"\u201C\u201E\u00AB", c) && before_ == Before::space) sentence_ = Sentence::opening;
    else if (!one_of(U"\"'\u201C\u201D\u2019\u00BB)]", c)) sentence_ = Sentence::inside;
  }

  Before before_ = Before::nothing;
  Sentence sentence_ = Sentence::opening;
};

}  // namespace translate
