// SPDX-License-Identifier: Apache-2.0
/// \file
/// The layout of an n-gram table in memory and in its file.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/file_words.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

// The format, version 1. All numbers are little-endian. An entry is an n-gram. A context is an n-gram shorter than the order, or
// nothing: context 0 is empty, and context e + 1 is entry e. Entries are sorted by length, then by their words. So what may follow a
// context is a range of entries, sorted by their last words, and entry w is the word w.
//
//   8 bytes   "SLUICENG"
//   uint32    version
//   uint32    order: words of the longest n-gram, 1 to 16
//   uint64    bytes of the file, a multiple of 64
//   uint32    words, each of which is an entry
//   uint32    entries
//   uint32    contexts: 1, and the entries that are shorter than the order
//   uint32    1: quantised; 0: not
//   uint32    number of <s>, </s>, <unk> (3 numbers)
//   uint32    bytes of all spellings
//   uint64    hash of everything after the first 128 bytes
//   56 bytes  0
//   uint64    hash of the first 120 bytes
//   sections, each of which begins at a multiple of 64, with zeros before it:
//     levels     uint32 [order + 1]: the first entry of each length, from 1; the number of entries
//     spellings  uint32 [words + 1]: where each word's spelling begins; their bytes
//     sorted     uint32 [words]: words by their spelling
//     last       [entries - words]: the last word of each entry of several words; uint16 if there are at most 65,536 words, else uint32
//     values     float [words]: log-probabilities of words; then of longer entries that are contexts: float, or uint8, a code
//     ends       for each entry that is no context: float or uint8, the same; uint32, the context that is left after it
//     contexts   [contexts + 1], 12 or 9 bytes each: uint32, the first entry that follows; uint32, the longest context that ends it
//                (and is of use); float, its back-off weight (a logarithm); or uint8, a code; the last one only ends the ranges
//     codes      quantised: float [order][2][256]: log-probabilities and back-off weights of each length
//
// A context is of use if something follows it, or its back-off weight is not 0. No link leads to another one.

constexpr char ngram_magic[] = "SLUICENG";
constexpr std::uint32_t ngram_version = 1, ngram_longest = 16;
constexpr std::uint64_t ngram_head = 128;

/// The contents of the first 128 bytes.
struct NGramHead {
  std::uint32_t order = 1;
  std::uint64_t bytes = 0;
  std::uint32_t words = 0, entries = 0, contexts = 1;
  std::uint32_t quantised = 0;
  std::uint32_t begin = 0, end = 0, unknown = 0;
  std::uint32_t spelling = 0;

  std::uint32_t word_width() const { return words <= 65536 ? 2 : 4; }
  std::uint32_t value_width() const { return quantised != 0 ? 1 : 4; }
  std::uint32_t end_width() const { return value_width() + 4; }
  std::uint32_t context_width() const { return quantised != 0 ? 9 : 12; }
};

/// Where the sections begin. They follow from the head alone.
struct NGramSections {
  std::uint64_t levels, spellings, spelling, sorted, last, words, values, ends, contexts, codes, bytes;

  explicit NGramSections(NGramHead const& head) {
    std::uint64_t at = ngram_head;
    auto const section = [&](std::uint64_t size) {
      auto const begin = at;
      at = aligned_64(at + size);
      return begin;
    };
    std::uint64_t const w = head.words, e = head.entries, c = head.contexts;
    levels = section((head.order + std::uint64_t{1}) * 4);
    spellings = section((w + 1) * 4);
    spelling = section(head.spelling);
    sorted = section(w * 4);
    last = section((e - w) * head.word_width());
    words = section(w * 4);
    values = section((c - 1 > w ? c - 1 - w : 0) * head.value_width());
    ends = section((e - (c - 1)) * head.end_width());
    contexts = section((c + 1) * head.context_width());
    codes = section(head.quantised != 0 ? head.order * std::uint64_t{2 * 256 * 4} : 0);
    bytes = at;
  }
};

inline void write_ngram_head(std::byte* to, NGramHead const& head) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(ngram_magic[i]);
  store_little(to + 8, ngram_version);
  store_little(to + 12, head.order);
  store_little(to + 16, head.bytes);
  std::array const numbers{head.words, head.entries, head.contexts, head.quantised,
                           head.begin, head.end,     head.unknown,  head.spelling};
  for (std::size_t i = 0; i < numbers.size(); ++i) store_little(to + 24 + 4 * i, numbers[i]);
}
inline NGramHead read_ngram_head(std::byte const* from) {
  auto const number = [&](std::size_t i) { return load_little<std::uint32_t>(from + 24 + 4 * i); };
  return {.order = load_little<std::uint32_t>(from + 12),
          .bytes = load_little<std::uint64_t>(from + 16),
          .words = number(0),
          .entries = number(1),
          .contexts = number(2),
          .quantised = number(3),
          .begin = number(4),
          .end = number(5),
          .unknown = number(6),
          .spelling = number(7)};
}

/// Writes both hashes; call it last.
inline void seal_ngrams(std::span<std::byte> file) {
  store_little(file.data() + 56, hash_words(file.subspan(ngram_head)));
  store_little(file.data() + 120, hash_words(file.first(120)));
}

}  // namespace sluice::inline v0::detail
