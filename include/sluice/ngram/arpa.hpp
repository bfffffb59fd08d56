// SPDX-License-Identifier: Apache-2.0
/// \file
/// N-grams as text: read_arpa() and write_arpa().
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/arpa_reader.hpp>
#include <sluice/ngram/detail/ngram_lists.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <algorithm>
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
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How read_arpa() reads.
struct ArpaOptions {
  /// log10 p of `<unk>`, for a file without it, which is refused otherwise.
  std::optional<double> unknown{};
};

/// Reads a model in ARPA format, as KenLM, SRILM, IRSTLM and pocolm write it: logarithms of base 10. `<UNK>` is `<unk>`. Words are
/// numbered in the order of the file. Fields have blanks or tabs between them; a byte order mark, empty lines and the line ends of
/// Windows may be anywhere; n-grams may lack their back-off weights (0), and their beginnings or ends (KenLM's blanks).
/// \throws std::invalid_argument  if options.unknown is no log-probability
/// \throws std::runtime_error  naming the line and what is wrong with it: a file that is cut off, counts that differ from
///     what follows, a word that is not among the 1-grams, something twice, a number beyond 1e36; or what is not there: `<s>`, `</s>`,
///     `<unk>`
template <class = void>
NGramTable read_arpa(std::istream& stream, ArpaOptions const& options = {}) {
  if (options.unknown)
    require(std::isfinite(*options.unknown) && *options.unknown <= 0, "unknown", *options.unknown,
            "must be a number <= 0");
  require(options.unknown.value_or(0) >= -detail::arpa_most, "unknown", options.unknown.value_or(0),
          "must be at least -1e36");
  detail::ArpaReader reader(stream);
  reader.read(options.unknown);
  detail::NGramImageBuilder builder(reader.words().spellings(), reader.lists(), reader.head());
  return NGramTable::from_kept(builder.take());
}

namespace detail {

/// Why ARPA cannot hold a word; null: it can.
template <class = void>
char const* no_arpa_word(std::string_view word) {
  if (word.empty()) return "is empty: no field of ARPA is";
  if (word.find_first_of(std::string_view(" \t\r\n\0", 5)) != std::string_view::npos)
    return "has white space or a zero byte in it, which would end it";
  return word == "<UNK>" ? "would be read as <unk>" : nullptr;
}

/// What write_arpa() writes of an image.
class ArpaWriter {
 public:
  /// \throws std::invalid_argument  for what would not be read again
  template <class = void>
  explicit ArpaWriter(NGramImage const& image) : image_(image), order_(image.head().order) {
    for (std::uint32_t w = 0; w < image.head().words; ++w)
      if (auto const* const why = no_arpa_word(image.spelling(w))) {
        auto shown = std::string(image.spelling(w));
        std::replace(shown.begin(), shown.end(), '\0', '?');  // which would end the message
        require(false, "write_arpa: word", shown, why);
      }
    for (auto const& [word, name] : {std::pair(image.head().begin, "<s>"), std::pair(image.head().end, "</s>"),
                                     std::pair(image.head().unknown, "<unk>")})
      require(image.spelling(word) == name, std::string("write_arpa: ") + name, image.spelling(word),
              "must be spelt so in ARPA");
    left_out_.resize(order_);
    each_context([&](auto narrow, auto coded, std::uint32_t n, std::uint32_t c) {
      auto const known = image_.context<coded.value>(c);
      for (auto e = known.first; e < known.last; ++e) {
        auto const value = n == 1 ? image_.unigram(e) : image_.value<coded.value>(e);
        auto const back_off = n < order_ ? image_.context<coded.value>(e + 1).back_off : 0;
        auto const name = "write_arpa: n-gram " + std::to_string(e);
        auto const most = arpa_natural(arpa_most);
        require(value >= -most, name, value, "ARPA's logarithms are read from -1e36 on");
        require(std::abs(back_off) <= most, name + ": back-off weight", back_off, "must be from -1e36 to 1e36 in ARPA");
        if (value <= 0) continue;
        require(n > 1 && implied<narrow.value, coded.value>(n, c, e), name, value, "has a probability above 1");
        ++left_out_[n - 1];
      }
    });
  }

  template <class = void>
  void write(std::ostream& stream) {
    text_ = "\\data\\\n";
    for (std::uint32_t n = 1; n <= order_; ++n)
      text_ += "ngram " + std::to_string(n) + "=" +
               std::to_string(image_.level(n) - image_.level(n - 1) - left_out_[n - 1]) + "\n";
    std::vector<std::string> prefix(image_.head().contexts);  // the spelling of each context
    std::uint32_t section = 0;
    each_context([&](auto narrow, auto coded, std::uint32_t n, std::uint32_t c) {
      if (n != section) text_ += "\n\\" + std::to_string(section = n) + "-grams:\n";
      auto const known = image_.context<coded.value>(c);
      for (auto e = known.first; e < known.last; ++e) {
        auto const word = n == 1 ? e : image_.last_word<narrow.value>(e);
        auto const value = n == 1 ? image_.unigram(e) : image_.value<coded.value>(e);
        auto words = prefix[c] + std::string(image_.spelling(word));
        if (value <= 0) put(value), text_ += '\t' + words;
        if (n < order_) {
          if (value <= 0) text_ += '\t', put(image_.context<coded.value>(e + 1).back_off);
          prefix[e + 1] = std::move(words += ' ');
        }
        if (value <= 0) text_ += '\n';
      }
      if (text_.size() > 1u << 16) flush(stream);
    });
    while (section < order_) text_ += "\n\\" + std::to_string(++section) + "-grams:\n";
    text_ += "\n\\end\\\n";
    flush(stream);
  }

 private:
  /// Calls f for each context of n - 1 words, n from 1 to the order.
  template <class F>
  void each_context(F&& f) const {
    image_.with_widths([&](auto narrow, auto coded) {
      for (std::uint32_t n = 1; n <= order_; ++n) {
        auto const first = n == 1 ? 0 : image_.level(n - 2) + 1, last = n == 1 ? 1 : image_.level(n - 1) + 1;
        for (auto c = first; c < last; ++c) f(narrow, coded, n, c);
      }
    });
  }
  /// Whether a reader finds the entry, of n words, by itself, since longer ones begin with it. A file with back-off weights above 0 implies
  /// probabilities above 1, which ARPA cannot list.
  template <bool Narrow, bool Coded>
  bool implied(std::uint32_t n, std::uint32_t context, std::uint32_t entry) const {
    if (n == order_) return false;
    auto const own = image_.context<Coded>(entry + 1);
    if (own.first == own.last || own.back_off != 0) return false;
    auto const word = image_.last_word<Narrow>(entry);
    double sum = 0;
    for (auto c = context; c != 0;) {
      auto const known = image_.context<Coded>(c);
      auto const found = c == context ? NGramImage::none : image_.find<Narrow>(known.first, known.last, word);
      if (found != NGramImage::none)
        return static_cast<float>(sum + static_cast<double>(image_.value<Coded>(found))) == image_.value<Coded>(entry);
      sum += static_cast<double>(known.back_off), c = known.shorter;
    }
    return static_cast<float>(sum + static_cast<double>(image_.unigram(word))) == image_.value<Coded>(entry);
  }
  /// Writes a logarithm to base 10, with as few digits as are read as the same float.
  template <class = void>
  void put(float natural) {
    char digits[32];
    auto const exact = static_cast<double>(natural) / std::numbers::ln10;
    auto* end = std::to_chars(digits, digits + sizeof digits, natural == 0 ? 0.0f : static_cast<float>(exact)).ptr;
    double read = 0;
    std::from_chars(digits, end, read);
    if (arpa_natural(read) != natural)
      end = std::to_chars(digits, digits + sizeof digits, exact, std::chars_format::general, 10).ptr;
    text_.append(digits, end);
  }
  template <class = void>
  void flush(std::ostream& stream) {
    stream.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  NGramImage const& image_;
  std::uint32_t order_;
  std::vector<std::uint32_t> left_out_;  // [order]
  std::string text_;
};

}  // namespace detail

/// Writes a model in ARPA format, of which read_arpa() makes the same table again, bit for bit if it is not quantised. N-grams that are
/// only implied by longer ones are written too, but for those of a probability above 1.
/// \throws std::invalid_argument  before anything is written, for what ARPA cannot hold: a word that is empty, has white space in it or
///     is `<UNK>`, an n-gram of a probability above 1, a number beyond 1e36
/// \throws std::runtime_error  if writing to the stream fails
template <class = void>
void write_arpa(NGramTable const& table, std::ostream& stream) {
  detail::ArpaWriter(table.image()).write(stream);
  stream.flush();
  if (!stream) throw std::runtime_error("arpa: cannot be written");
}

}  // namespace sluice::inline v0
