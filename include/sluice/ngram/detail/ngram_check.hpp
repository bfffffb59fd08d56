// SPDX-License-Identifier: Apache-2.0
/// \file
/// Validates all bytes of an n-gram table.
#pragma once

#include <sluice/language.hpp>

#include <sluice/ngram/detail/ngram_format.hpp>
#include <sluice/ngram/detail/ngram_image.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace sluice::inline v0::detail {

/// Throws std::runtime_error naming what is wrong, and where. O(bytes). Afterwards no link of the image leads out of it, and
/// every walk along back-offs ends.
SLUICE_LAZY void check_ngrams(NGramImage const& image) {
  auto const bytes = image.bytes();
  if (load_little<std::uint64_t>(bytes.data() + 56) != hash_words(bytes.subspan(ngram_head)))
    fail_ngrams("damaged: the checksum is wrong");
  auto const& head = image.head();
  auto const order = head.order;
  if (image.level(0) != 0 || image.level(1) != head.words || image.level(order) != head.entries ||
      (order > 1 && image.level(order - 1) + 1 != head.contexts))
    fail_ngrams("the numbers of n-grams are not those of the head");
  for (std::uint32_t n = 0; n < order; ++n)
    if (image.level(n + 1) < image.level(n))
      fail_ngrams("n-grams of " + std::to_string(n + 1) + " words: fewer than none");
  for (std::uint32_t w = 0; w < head.words; ++w)
    if (image.spelling_at(w + 1) < image.spelling_at(w) || image.spelling_at(w + 1) > head.spelling)
      fail_ngrams("word " + std::to_string(w) + ": its spelling ends before it begins, or after all of them");
  for (std::uint32_t k = 0; k < head.words; ++k) {
    if (image.sorted(k) >= head.words) fail_ngrams("place " + std::to_string(k) + " of the sorted words is no word");
    if (k > 0 && !(image.spelling(image.sorted(k - 1)) < image.spelling(image.sorted(k))))
      fail_ngrams("words " + std::to_string(k - 1) + " and " + std::to_string(k) + " are not sorted by spelling");
    if (!std::isfinite(image.unigram(k))) fail_ngrams("word " + std::to_string(k) + ": its probability is no number");
  }
  image.with_widths([&](auto narrow, auto coded) {
    for (std::uint32_t n = 0; n < order; ++n) {  // contexts of n words
      auto const first = n == 0 ? 0 : image.level(n - 1) + 1, last = n == 0 ? 1 : image.level(n) + 1;
      for (auto c = first; c < last; ++c) {
        auto const fail = [&](std::string const& what) { fail_ngrams("context " + std::to_string(c) + ": " + what); };
        auto const context = image.context<coded.value>(c);
        if (c == first && context.first != image.level(n)) fail("the first of its length is not followed by the first");
        if (context.first > context.last || context.last > image.level(n + 1))
          fail("n-grams " + std::to_string(context.first) + " to " + std::to_string(context.last) +
               " cannot follow it");
        if (c + 1 == last && context.last != image.level(n + 1))
          fail("the last of its length is not followed by the last");
        if (!std::isfinite(context.back_off)) fail("its back-off weight is no number");
        if (context.shorter >= head.contexts || (n > 0 && image.words_of(context.shorter) >= n) ||
            (n == 0 && context.shorter != 0))
          fail("context " + std::to_string(context.shorter) + " does not end it");
        if (n == 0) continue;
        for (auto e = context.first; e < context.last; ++e)
          if (image.last_word<narrow.value>(e) >= head.words ||
              (e > context.first && image.last_word<narrow.value>(e) <= image.last_word<narrow.value>(e - 1)))
            fail("what follows it is not sorted, or no word, at n-gram " + std::to_string(e));
      }
    }
    for (std::uint32_t n = 2; n <= order; ++n)
      for (auto e = image.level(n - 1); e < image.level(n); ++e) {
        if (!std::isfinite(image.value<coded.value>(e)))
          fail_ngrams("n-gram " + std::to_string(e) + ": its probability is no number");
        if (n == order && image.left_after<coded.value>(e) >= head.contexts)
          fail_ngrams("n-gram " + std::to_string(e) + " leaves no context");
      }
    for (std::uint32_t e = 0; order == 1 && e < head.entries; ++e)
      if (image.left_after<coded.value>(e) >= head.contexts)
        fail_ngrams("n-gram " + std::to_string(e) + " leaves no context");
  });
}

}  // namespace sluice::inline v0::detail
