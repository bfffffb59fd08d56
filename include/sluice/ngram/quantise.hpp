// SPDX-License-Identifier: Apache-2.0
/// \file
/// quantise(): an n-gram table with codes of 8 bits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/ngram/detail/ngram_format.hpp>
#include <sluice/ngram/detail/ngram_image.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// Up to 256 numbers that stand for others: each for equally many, as their mean; or the others themselves, if they are few (the
/// binning of Federico and Bertoldi 2006, "How Many Bits Are Needed to Store Probabilities").
class Codebook {
 public:
  /// \param zero  0 has a code of its own, the first
  template <class = void>
  Codebook(std::vector<float> values, bool zero) : zero_(zero) {
    if (zero) values.erase(std::remove(values.begin(), values.end(), 0.0f), values.end());
    std::sort(values.begin(), values.end());
    auto const most = std::size_t{zero ? 255u : 256u};
    auto distinct = values;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    if (distinct.size() <= most) {
      centres_ = std::move(distinct);
      return;
    }
    for (std::size_t b = 0; b < most; ++b) {
      auto const first = b * values.size() / most, last = (b + 1) * values.size() / most;
      double sum = 0;
      for (auto i = first; i < last; ++i) sum += static_cast<double>(values[i]);
      if (first < last) centres_.push_back(static_cast<float>(sum / static_cast<double>(last - first)));
    }
  }
  template <class = void>
  std::uint8_t code(float value) const {
    if (zero_ && value == 0) return 0;
    auto const above = std::lower_bound(centres_.begin(), centres_.end(), value);
    auto best = above == centres_.end() ? above - 1 : above;
    if (best != centres_.begin() && value - *(best - 1) < *best - value) --best;
    return static_cast<std::uint8_t>((best - centres_.begin()) + (zero_ ? 1 : 0));
  }
  /// What the codes stand for.
  template <class = void>
  std::array<float, 256> values() const {
    std::array<float, 256> all{};
    std::copy(centres_.begin(), centres_.end(), all.begin() + (zero_ ? 1 : 0));
    return all;
  }

 private:
  bool zero_;
  std::vector<float> centres_;  // ascending
};

}  // namespace detail

/// The same n-grams, with codes of 8 bits for log-probabilities of several words and for back-off weights: 255 or 256 values for each
/// length. A quarter to a third of the file is saved. Returns the table if it is quantised already.
template <class = void>
NGramTable quantise(NGramTable const& table) {
  if (table.quantised()) return table;
  auto const& from = table.image();
  auto head = from.head();
  detail::NGramSections const before(head);
  head.quantised = 1;
  detail::NGramSections const after(head);
  head.bytes = after.bytes;
  auto [keeper, to] = detail::zeroed_bytes(static_cast<std::size_t>(after.bytes));
  auto* const data = to;
  detail::write_ngram_head(data, head);
  std::memcpy(data + after.levels, from.bytes().data() + before.levels, before.values - before.levels);

  for (std::uint32_t n = 1; n <= head.order; ++n) {
    auto const first = from.level(n - 1), last = from.level(n);
    std::vector<float> values, back_offs;
    auto const value = [&](std::uint32_t e) { return n == 1 ? from.unigram(e) : from.value<false>(e); };
    for (auto e = first; e < last; ++e) {
      values.push_back(value(e));
      if (n < head.order) back_offs.push_back(from.context<false>(e + 1).back_off);
    }
    detail::Codebook const of_values(std::move(values), false), of_back_offs(std::move(back_offs), true);
    auto const put = [&](std::uint32_t kind, detail::Codebook const& book) {
      auto const all = book.values();
      for (std::size_t i = 0; i < all.size(); ++i)
        detail::store_little(data + after.codes + 4 * ((std::size_t{n - 1} * 2 + kind) * 256 + i),
                             std::bit_cast<std::uint32_t>(all[i]));
    };
    put(0, of_values), put(1, of_back_offs);
    for (auto e = first; e < last; ++e) {
      auto const code = static_cast<std::byte>(of_values.code(value(e)));
      if (n == head.order) {
        auto* const where = data + after.ends + 5 * std::size_t{e - (head.contexts - 1)};
        where[0] = code;
        detail::store_little(where + 1, from.left_after<false>(e));
        continue;
      }
      if (n > 1) data[after.values + (e - head.words)] = code;
      data[after.contexts + 9 * (std::size_t{e} + 1) + 8] =
          static_cast<std::byte>(of_back_offs.code(from.context<false>(e + 1).back_off));
    }
  }
  for (std::uint32_t c = 0; c <= head.contexts; ++c) {
    auto const* const old = from.bytes().data() + before.contexts + 12 * std::size_t{c};
    std::memcpy(data + after.contexts + 9 * std::size_t{c}, old, c < head.contexts ? 8 : 4);
  }
  std::span<std::byte> const all(data, static_cast<std::size_t>(after.bytes));
  detail::seal_ngrams(all);
  return NGramTable::from_kept({std::move(keeper), all});
}

}  // namespace sluice::inline v0
