// SPDX-License-Identifier: Apache-2.0
/// \file
/// N-grams as text: read_arpa() and write_arpa().
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/arpa_reader.hpp>
#include <sluice/ngram/detail/ngram_lists.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <numbers>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How read_arpa() reads.
struct ArpaOptions {
  /// log10 p of `<unk>`, for a file without it, which is refused otherwise.
  std::optional<double> unknown{};
};

/// Reads a model in ARPA format, as KenLM, SRILM and IRSTLM write it: logarithms of base 10. `<UNK>` is `<unk>`. Words are numbered in
/// the order of the file. N-grams may lack their beginnings or ends (KenLM's blanks).
/// \throws std::invalid_argument  if options.unknown is no log-probability
/// \throws std::runtime_error  naming the line and what is wrong with it: a file that is cut off, counts that differ from
///     what follows, a word that is not among the 1-grams, something twice; or what is not there: `<s>`, `</s>`, `<unk>`
template <class = void>
NGramTable read_arpa(std::istream& stream, ArpaOptions const& options = {}) {
  if (options.unknown)
    require(std::isfinite(*options.unknown) && *options.unknown <= 0, "unknown", *options.unknown,
            "must be a number <= 0");
  detail::ArpaReader reader(stream);
  reader.read(options.unknown);
  detail::NGramImageBuilder builder(reader.words().spellings(), reader.lists(), reader.head());
  return NGramTable::from_kept(builder.take());
}

/// Writes a model in ARPA format. N-grams that are only implied by longer ones are written too.
/// \throws std::runtime_error  if writing to the stream fails
template <class = void>
void write_arpa(NGramTable const& table, std::ostream& stream) {
  auto const& image = table.image();
  auto const order = static_cast<std::uint32_t>(table.order());
  std::string text = "\\data\\\n";
  for (std::uint32_t n = 1; n <= order; ++n)
    text += "ngram " + std::to_string(n) + "=" + std::to_string(image.level(n) - image.level(n - 1)) + "\n";
  auto const put = [&](float natural) {
    char digits[32];
    auto const value = static_cast<float>(static_cast<double>(natural) / std::numbers::ln10);
    auto* const end = std::to_chars(digits, digits + sizeof digits, value == 0 ? 0.0f : value).ptr;
    text.append(digits, end);
  };
  auto const flush = [&] {
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    text.clear();
  };
  std::vector<std::string> prefix(image.head().contexts);  // the spelling of each context
  image.with_widths([&](auto narrow, auto coded) {
    for (std::uint32_t n = 1; n <= order; ++n) {
      text += "\n\\" + std::to_string(n) + "-grams:\n";
      auto const first = n == 1 ? 0 : image.level(n - 2) + 1, last = n == 1 ? 1 : image.level(n - 1) + 1;
      for (auto c = first; c < last; ++c) {
        auto const known = image.template context<coded.value>(c);
        for (auto e = known.first; e < known.last; ++e) {
          auto const word = n == 1 ? e : image.template last_word<narrow.value>(e);
          put(n == 1 ? image.unigram(e) : image.template value<coded.value>(e));
          auto words = prefix[c] + std::string(image.spelling(word));
          text += '\t' + words;
          if (n < order) {
            auto const back_off = image.template context<coded.value>(e + 1).back_off;
            prefix[e + 1] = std::move(words += ' ');
            text += '\t', put(back_off);
          }
          text += '\n';
        }
        if (text.size() > 1u << 16) flush();
      }
    }
  });
  text += "\n\\end\\\n";
  flush();
  stream.flush();
  if (!stream) throw std::runtime_error("arpa: cannot be written");
}

}  // namespace sluice::inline v0
