// SPDX-License-Identifier: Apache-2.0
/// \file
/// NGramTable: a back-off language model of n-grams; as text, read_arpa() and write_arpa(); with codes of 8 bits, quantise().
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/arpa_reader.hpp>
#include <sluice/ngram/detail/ngram_check.hpp>
#include <sluice/ngram/detail/ngram_format.hpp>
#include <sluice/ngram/detail/ngram_image.hpp>
#include <sluice/ngram/detail/ngram_lists.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <istream>
#include <memory>
#include <numbers>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {
struct NGramMaker;
}

/// The number of a word of an NGramTable, from 0.
using Word = std::int32_t;

/// The words that an NGramTable still knows of a sequence: those that may change what follows. Two sequences that end in the same
/// state have the same future.
struct NGramState {
  std::uint32_t context = 0;
  friend bool operator==(NGramState, NGramState) = default;
};

/// A back-off model of n-grams (Katz 1987): log p(w | context) is listed, or it is the context's back-off weight plus
/// log p(w | the context without its first word). All logarithms are natural. Read from ARPA (read_arpa), trained (NGramTrainer),
/// or a mapped file.
///
/// A trie in one block of memory (format: ngram_format.hpp): what may follow a context is one range, sorted by word, so that a
/// whole line of scores costs no search. A state is the number of the longest context that matters.
///
/// Copies are cheap, share the memory, and may be used from any number of threads.
class NGramTable {
 public:
  /// Maps a file, so processes share its memory. Checks all of it once: O(its bytes). The file must not be changed while it is
  /// open; replace it by renaming.
  /// \throws std::runtime_error  naming the file, what is wrong, and where
  SLUICE_LAZY static NGramTable open(std::string const& path) {
    auto kept = detail::map_file(path);
    try {
      return from_kept(std::move(kept));
    } catch (std::runtime_error const& problem) {
      throw std::runtime_error(path + ": " + problem.what());
    }
  }
  /// Copies bytes as returned by bytes().
  /// \throws std::runtime_error  naming what is wrong, and where
  SLUICE_LAZY static NGramTable from_bytes(std::span<std::byte const> bytes) {
    return from_kept(detail::copy_bytes(bytes));
  }

  /// The number of words of the longest n-grams.
  SLUICE_LAZY std::int32_t order() const { return static_cast<std::int32_t>(image().head().order); }
  /// The number of words, with `<s>`, `</s>` and `<unk>`.
  SLUICE_LAZY std::int32_t size() const { return static_cast<std::int32_t>(image().head().words); }
  /// The number of n-grams of so many words, 1 to order(), with those that are only there because longer ones begin with them.
  /// \throws std::invalid_argument  for another number
  SLUICE_LAZY std::int64_t count(std::int32_t words) const {
    require(words >= 1 && words <= order(), "words", words, "must be from 1 to the order, " + std::to_string(order()));
    auto const n = static_cast<std::uint32_t>(words);
    return std::int64_t{image().level(n)} - std::int64_t{image().level(n - 1)};
  }
  /// Whether probabilities are codes of 8 bits (see quantise()).
  SLUICE_LAZY bool quantised() const { return image().head().quantised != 0; }

  SLUICE_LAZY Word begin() const {  ///< `<s>`
    return static_cast<Word>(image().head().begin);
  }
  SLUICE_LAZY Word end() const {  ///< `</s>`
    return static_cast<Word>(image().head().end);
  }
  SLUICE_LAZY Word unknown() const {  ///< `<unk>`
    return static_cast<Word>(image().head().unknown);
  }
  /// The spelling of a word; valid as long as any copy lives.
  /// \throws std::invalid_argument  if there is no such word
  SLUICE_LAZY std::string_view spelling(Word word) const {
    require(word >= 0 && word < size(), "word", word, "the table has " + std::to_string(size()));
    return image().spelling(static_cast<std::uint32_t>(word));
  }
  /// The word that is spelt so. O(log words).
  SLUICE_LAZY std::optional<Word> find(std::string_view spelling) const {
    std::uint32_t first = 0, last = image().head().words;
    while (first < last) {
      auto const middle = first + (last - first) / 2;
      if (image().spelling(image().sorted(middle)) < spelling) first = middle + 1;
      else last = middle;
    }
    if (first == image().head().words || image().spelling(image().sorted(first)) != spelling) return std::nullopt;
    return static_cast<Word>(image().sorted(first));
  }
  /// The same, or `<unk>`.
  SLUICE_LAZY Word word(std::string_view spelling) const { return find(spelling).value_or(unknown()); }

  /// The state after `<s>`.
  SLUICE_LAZY NGramState start() const {
    NGramState state;
    advance(state, begin());
    return state;
  }
  /// log p(word | state); then the state is that after the word. A word that the table has not counts as `<unk>`. O(order) searches.
  SLUICE_LAZY float advance(NGramState& state, Word word) const {
    auto const& image = this->image();
    auto const w =
        static_cast<std::uint32_t>(word) < image.head().words ? static_cast<std::uint32_t>(word) : image.head().unknown;
    return image.with_widths([&](auto narrow, auto coded) {
      float back_off = 0;
      for (auto context = state.context; context != 0;) {
        auto const known = image.template context<coded.value>(context);
        image.template expect<coded.value>(known.shorter);
        auto const entry = image.template find<narrow.value>(known.first, known.last, w);
        if (entry != detail::NGramImage::none) {
          state.context = after<coded.value>(entry);
          return back_off + image.template value<coded.value>(entry);
        }
        back_off += known.back_off;
        context = known.shorter;
      }
      state.context = after<coded.value>(w);
      return back_off + image.unigram(w);
    });
  }
  /// log p of a sentence without `<s>` and `</s>`: of its words and its end.
  SLUICE_LAZY double log_prob(std::span<Word const> words) const {
    auto state = start();
    double sum = 0;
    for (auto const word : words) sum += static_cast<double>(advance(state, word));
    return sum + static_cast<double>(advance(state, end()));
  }

  /// All of log p(. | state): calls base(x), then put(word, y) for every listed continuation, in any number, the one that counts
  /// last. log p of a word that was not put is its unigram(word) + x. O(continuations of the contexts that end the state's).
  template <class Base, class Put>
  void line(NGramState state, Base&& base, Put&& put) const {
    auto const& image = this->image();
    image.with_widths([&](auto narrow, auto coded) {
      struct Link {
        std::uint32_t first = 0, last = 0;
        float back_off = 0;
      };
      Link chain[detail::ngram_longest];
      std::size_t links = 0;
      float back_off = 0;
      for (auto context = state.context; context != 0;) {
        auto const known = image.template context<coded.value>(context);
        chain[links++] = {known.first, known.last, back_off};
        back_off += known.back_off;
        context = known.shorter;
      }
      base(back_off);
      while (links-- > 0) {
        auto const& link = chain[links];
        for (auto e = link.first; e < link.last; ++e)
          put(static_cast<Word>(image.template last_word<narrow.value>(e)),
              link.back_off + image.template value<coded.value>(e));
      }
    });
  }
  /// log p of a word on its own.
  /// \param word  in [0, size())
  SLUICE_LAZY float unigram(Word word) const { return image().unigram(static_cast<std::uint32_t>(word)); }

  /// The contents of its file.
  SLUICE_LAZY std::span<std::byte const> bytes() const { return image().bytes(); }
  /// Writes bytes() to a binary stream.
  /// \throws std::runtime_error  if writing to the stream fails
  SLUICE_LAZY void write(std::ostream& stream) const {
    auto const all = bytes();
    stream.write(reinterpret_cast<char const*>(all.data()), static_cast<std::streamsize>(all.size()));
    stream.flush();
    if (!stream) throw std::runtime_error("n-grams: cannot be written");
  }
  /// For what else reads the table (quantise, write_arpa).
  detail::NGramImage const& image() const { return data_->image; }

 private:
  struct Data {
    SLUICE_LAZY explicit Data(detail::KeptBytes bytes) : kept(std::move(bytes)), image(kept.bytes) {}
    detail::KeptBytes kept;
    detail::NGramImage image;
  };

  friend struct detail::NGramMaker;
  SLUICE_LAZY explicit NGramTable(detail::KeptBytes kept) : data_(std::make_shared<Data>(std::move(kept))) {}
  /// Uses bytes without copying them.
  SLUICE_LAZY static NGramTable from_kept(detail::KeptBytes kept) {
    NGramTable made(std::move(kept));
    detail::check_ngrams(made.data_->image);
    return made;
  }

  /// The context that is left after an entry.
  template <bool Coded>
  std::uint32_t after(std::uint32_t entry) const {
    auto const& image = this->image();
    if (entry + 1 >= image.head().contexts) return image.template left_after<Coded>(entry);
    auto const known = image.template context<Coded>(entry + 1);
    return known.first < known.last || known.back_off != 0 ? entry + 1 : known.shorter;
  }

  std::shared_ptr<Data const> data_;
};

namespace detail {

/// Makes tables of what a builder built.
struct NGramMaker {
  SLUICE_LAZY static NGramTable make(KeptBytes kept) { return NGramTable::from_kept(std::move(kept)); }
};

}  // namespace detail

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
SLUICE_LAZY NGramTable read_arpa(std::istream& stream, ArpaOptions const& options = {}) {
  if (options.unknown)
    require(std::isfinite(*options.unknown) && *options.unknown <= 0, "unknown", *options.unknown,
            "must be a number <= 0");
  require(options.unknown.value_or(0) >= -detail::arpa_most, "unknown", options.unknown.value_or(0),
          "must be at least -1e36");
  detail::ArpaReader reader(stream);
  reader.read(options.unknown);
  detail::NGramImageBuilder builder(reader.words().spellings(), reader.lists(), reader.head());
  return detail::NGramMaker::make(builder.take());
}

namespace detail {

/// Why ARPA cannot hold a word; null: it can.
SLUICE_LAZY char const* no_arpa_word(std::string_view word) {
  if (word.empty()) return "is empty: no field of ARPA is";
  if (word.find_first_of(std::string_view(" \t\r\n\0", 5)) != std::string_view::npos)
    return "has white space or a zero byte in it, which would end it";
  return word == "<UNK>" ? "would be read as <unk>" : nullptr;
}

/// What write_arpa() writes of an image.
class ArpaWriter {
 public:
  /// \throws std::invalid_argument  for what would not be read again
  SLUICE_LAZY explicit ArpaWriter(NGramImage const& image) : image_(image), order_(image.head().order) {
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

  SLUICE_LAZY void write(std::ostream& stream) {
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
  SLUICE_LAZY void put(float natural) {
    char digits[32];
    auto const exact = static_cast<double>(natural) / std::numbers::ln10;
    auto* end = std::to_chars(digits, digits + sizeof digits, natural == 0 ? 0.0f : static_cast<float>(exact)).ptr;
    double read = 0;
    std::from_chars(digits, end, read);
    if (arpa_natural(read) != natural)
      end = std::to_chars(digits, digits + sizeof digits, exact, std::chars_format::general, 10).ptr;
    text_.append(digits, end);
  }
  SLUICE_LAZY void flush(std::ostream& stream) {
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
SLUICE_LAZY void write_arpa(NGramTable const& table, std::ostream& stream) {
  detail::ArpaWriter(table.image()).write(stream);
  stream.flush();
  if (!stream) throw std::runtime_error("arpa: cannot be written");
}

namespace detail {

/// Up to 256 numbers that stand for others: each for equally many, as their mean; or the others themselves, if they are few (the
/// binning of Federico and Bertoldi 2006, "How Many Bits Are Needed to Store Probabilities").
class Codebook {
 public:
  /// \param zero  0 has a code of its own, the first
  SLUICE_LAZY Codebook(std::vector<float> values, bool zero) : zero_(zero) {
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
  SLUICE_LAZY std::uint8_t code(float value) const {
    if (zero_ && value == 0) return 0;
    auto const above = std::lower_bound(centres_.begin(), centres_.end(), value);
    auto best = above == centres_.end() ? above - 1 : above;
    if (best != centres_.begin() && value - *(best - 1) < *best - value) --best;
    return static_cast<std::uint8_t>((best - centres_.begin()) + (zero_ ? 1 : 0));
  }
  /// What the codes stand for.
  SLUICE_LAZY std::array<float, 256> values() const {
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
SLUICE_LAZY NGramTable quantise(NGramTable const& table) {
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
  return detail::NGramMaker::make({std::move(keeper), all});
}

}  // namespace sluice::inline v0
