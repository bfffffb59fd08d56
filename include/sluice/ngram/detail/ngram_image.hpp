// SPDX-License-Identifier: Apache-2.0
/// \file
/// A view of an n-gram table's bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/ngram/detail/ngram_format.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::inline v0::detail {

[[noreturn]] inline void fail_ngrams(std::string const& what) { throw std::runtime_error("n-grams: " + what); }

/// A view of the bytes, of which only the head and the size are checked here; see check_ngrams().
class NGramImage {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;

  /// What is known of a context.
  struct Context {
    std::uint32_t first = 0, last = 0;  // the entries that follow it
    std::uint32_t shorter = 0;          // the longest context that ends it
    float back_off = 0;
  };

  /// \param bytes  must live as long as this
  /// \throws std::runtime_error  naming what is wrong, for bytes that are no table, truncated, or of another version
  SLUICE_LAZY explicit NGramImage(std::span<std::byte const> bytes) : bytes_(bytes) {
    if (bytes.empty()) fail_ngrams("there is nothing to read");
    if (std::memcmp(bytes.data(), ngram_magic, bytes.size() < 8 ? bytes.size() : 8) != 0)
      fail_ngrams("this is no table of n-grams");
    auto const cut = [&] { fail_ngrams("cut off after " + std::to_string(bytes.size()) + " bytes"); };
    if (bytes.size() < ngram_head) cut();
    if (auto const version = load_little<std::uint32_t>(bytes.data() + 8); version != ngram_version)
      fail_ngrams("version " + std::to_string(version) + " of the format is unknown; only 1 is known");
    if (load_little<std::uint64_t>(bytes.data() + 120) != hash_words(bytes.first(120)))
      fail_ngrams("damaged: the checksum of the head is wrong");
    head_ = read_ngram_head(bytes.data());
    if (head_.bytes > bytes.size()) cut();
    if (head_.bytes < bytes.size()) fail_ngrams("something follows the end");
    auto const at_most = [](char const* what, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
      if (value < low || value > high)
        fail_ngrams(std::string(what) + ": " + std::to_string(value) + " is not from " + std::to_string(low) + " to " +
                    std::to_string(high));
    };
    at_most("order", head_.order, 1, ngram_longest);
    at_most("words", head_.words, 1, 0x7FFFFFFFu);
    at_most("entries", head_.entries, head_.words, none - 1);
    at_most("contexts", head_.contexts, head_.order > 1 ? std::uint64_t{head_.words} + 1 : 1,
            head_.order > 1 ? std::uint64_t{head_.entries} + 1 : 1);
    for (auto const word : {head_.begin, head_.end, head_.unknown}) at_most("word", word, 0, head_.words - 1);
    NGramSections const at(head_);
    if (at.bytes != head_.bytes)
      fail_ngrams(std::to_string(head_.bytes) + " bytes, where its numbers need " + std::to_string(at.bytes));
    levels_ = bytes.data() + at.levels, spellings_ = bytes.data() + at.spellings;
    spelling_ = reinterpret_cast<char const*>(bytes.data() + at.spelling), sorted_ = bytes.data() + at.sorted;
    last_ = bytes.data() + at.last, words_ = bytes.data() + at.words, values_ = bytes.data() + at.values;
    ends_ = bytes.data() + at.ends, contexts_ = bytes.data() + at.contexts, codes_ = bytes.data() + at.codes;
    for (std::uint32_t n = 0; n <= head_.order; ++n) level_[n] = load_little<std::uint32_t>(levels_ + 4 * n);
  }

  NGramHead const& head() const { return head_; }
  std::span<std::byte const> bytes() const { return bytes_; }
  /// The first entry of n + 1 words; for n = order: the number of entries.
  std::uint32_t level(std::uint32_t n) const { return level_[n]; }
  std::uint32_t spelling_at(std::uint32_t word) const {
    return load_little<std::uint32_t>(spellings_ + 4 * std::size_t{word});
  }
  std::string_view spelling(std::uint32_t word) const {
    auto const begin = spelling_at(word);
    return {spelling_ + begin, spelling_at(word + 1) - begin};
  }
  /// The k-th word by spelling.
  std::uint32_t sorted(std::uint32_t k) const { return load_little<std::uint32_t>(sorted_ + 4 * std::size_t{k}); }

  /// Calls f with what the arrays are made of: std::true_type if words have two bytes, std::true_type if values are codes.
  template <class F>
  decltype(auto) with_widths(F&& f) const {
    if (head_.words <= 65536)
      return head_.quantised != 0 ? f(std::true_type(), std::true_type()) : f(std::true_type(), std::false_type());
    return head_.quantised != 0 ? f(std::false_type(), std::true_type()) : f(std::false_type(), std::false_type());
  }

  /// The last word of an entry of several words.
  template <bool Narrow>
  std::uint32_t last_word(std::uint32_t entry) const {
    std::size_t const i = entry - head_.words;
    if constexpr (Narrow) return load_little<std::uint16_t>(last_ + 2 * i);
    else return load_little<std::uint32_t>(last_ + 4 * i);
  }
  float unigram(std::uint32_t word) const { return real(words_ + 4 * std::size_t{word}); }
  /// The log-probability of an entry of several words.
  template <bool Coded>
  float value(std::uint32_t entry) const {
    auto const end = entry >= head_.contexts - 1;
    std::size_t const i = entry - (end ? head_.contexts - 1 : head_.words);
    auto const* const from = end ? ends_ + i * (Coded ? 5 : 8) : values_ + i * (Coded ? 1 : 4);
    if constexpr (Coded) return code(words_of(entry + 1), 0, *from);
    else return real(from);
  }
  /// The context that is left after an entry that is no context.
  template <bool Coded>
  std::uint32_t left_after(std::uint32_t entry) const {
    std::size_t const i = entry - (head_.contexts - 1);
    return load_little<std::uint32_t>(ends_ + i * (Coded ? 5 : 8) + (Coded ? 1 : 4));
  }
  template <bool Coded>
  Context context(std::uint32_t number) const {
    constexpr std::size_t width = Coded ? 9 : 12;
    auto const* const from = contexts_ + number * width;
    Context made{load_little<std::uint32_t>(from), load_little<std::uint32_t>(from + width),
                 load_little<std::uint32_t>(from + 4), 0};
    if constexpr (Coded) made.back_off = code(words_of(number), 1, from[8]);
    else made.back_off = real(from + 8);
    return made;
  }
  /// The context will be asked for.
  template <bool Coded>
  void expect(std::uint32_t number) const {
    __builtin_prefetch(contexts_ + number * std::size_t{Coded ? 9 : 12});
  }
  /// The number of words of a context; of an entry, those of context entry + 1, which need not be one.
  std::uint32_t words_of(std::uint32_t context) const {
    std::uint32_t n = 0;
    while (n < head_.order && context > level_[n]) ++n;
    return n;
  }
  /// The entry among [first, last), all of several words, that ends with the word; none if there is none.
  template <bool Narrow>
  std::uint32_t find(std::uint32_t first, std::uint32_t last, std::uint32_t word) const {
    auto count = last - first;
    while (count > 8) {
      auto const half = count / 2;
      first = last_word<Narrow>(first + half) <= word ? first + half : first;
      count -= half;
    }
    for (std::uint32_t i = 0; i < count; ++i)
      if (last_word<Narrow>(first + i) == word) return first + i;
    return none;
  }
  float code(std::uint32_t words, std::uint32_t kind, std::byte which) const {
    auto const row = std::size_t{words == 0 ? 0 : words - 1} * 2 + kind;
    return real(codes_ + 4 * (row * 256 + std::to_integer<std::size_t>(which)));
  }

 private:
  static float real(std::byte const* from) { return std::bit_cast<float>(load_little<std::uint32_t>(from)); }

  std::span<std::byte const> bytes_;
  NGramHead head_;
  std::array<std::uint32_t, ngram_longest + 1> level_{};
  std::byte const *levels_ = nullptr, *spellings_ = nullptr, *sorted_ = nullptr, *last_ = nullptr, *words_ = nullptr,
                  *values_ = nullptr, *ends_ = nullptr, *contexts_ = nullptr, *codes_ = nullptr;
  char const* spelling_ = nullptr;
};

}  // namespace sluice::inline v0::detail
