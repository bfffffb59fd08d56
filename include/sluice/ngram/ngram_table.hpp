// SPDX-License-Identifier: Apache-2.0
/// \file
/// NGramTable: a back-off language model of n-grams.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/ngram_check.hpp>
#include <sluice/ngram/detail/ngram_format.hpp>
#include <sluice/ngram/detail/ngram_image.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::inline v0 {

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
  template <class = void>
  static NGramTable open(std::string const& path) {
    auto kept = detail::map_file(path);
    try {
      return from_kept(std::move(kept));
    } catch (std::runtime_error const& problem) {
      throw std::runtime_error(path + ": " + problem.what());
    }
  }
  /// Copies bytes as returned by bytes().
  /// \throws std::runtime_error  naming what is wrong, and where
  template <class = void>
  static NGramTable from_bytes(std::span<std::byte const> bytes) {
    return from_kept(detail::copy_bytes(bytes));
  }
  /// Uses bytes without copying them.
  template <class = void>
  static NGramTable from_kept(detail::KeptBytes kept) {
    NGramTable made(std::move(kept));
    detail::check_ngrams(made.data_->image);
    return made;
  }

  /// The number of words of the longest n-grams.
  template <class = void>
  std::int32_t order() const {
    return static_cast<std::int32_t>(image().head().order);
  }
  /// The number of words, with `<s>`, `</s>` and `<unk>`.
  template <class = void>
  std::int32_t size() const {
    return static_cast<std::int32_t>(image().head().words);
  }
  /// The number of n-grams of so many words, 1 to order(), with those that are only there because longer ones begin with them.
  /// \throws std::invalid_argument  for another number
  template <class = void>
  std::int64_t count(std::int32_t words) const {
    require(words >= 1 && words <= order(), "words", words, "must be from 1 to the order, " + std::to_string(order()));
    auto const n = static_cast<std::uint32_t>(words);
    return std::int64_t{image().level(n)} - std::int64_t{image().level(n - 1)};
  }
  /// Whether probabilities are codes of 8 bits (see quantise()).
  template <class = void>
  bool quantised() const {
    return image().head().quantised != 0;
  }

  template <class = void>
  Word begin() const {  ///< `<s>`
    return static_cast<Word>(image().head().begin);
  }
  template <class = void>
  Word end() const {  ///< `</s>`
    return static_cast<Word>(image().head().end);
  }
  template <class = void>
  Word unknown() const {  ///< `<unk>`
    return static_cast<Word>(image().head().unknown);
  }
  /// The spelling of a word; valid as long as any copy lives.
  /// \throws std::invalid_argument  if there is no such word
  template <class = void>
  std::string_view spelling(Word word) const {
    require(word >= 0 && word < size(), "word", word, "the table has " + std::to_string(size()));
    return image().spelling(static_cast<std::uint32_t>(word));
  }
  /// The word that is spelt so. O(log words).
  template <class = void>
  std::optional<Word> find(std::string_view spelling) const {
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
  template <class = void>
  Word word(std::string_view spelling) const {
    return find(spelling).value_or(unknown());
  }

  /// The state after `<s>`.
  template <class = void>
  NGramState start() const {
    NGramState state;
    advance(state, begin());
    return state;
  }
  /// log p(word | state); then the state is that after the word. A word that the table has not counts as `<unk>`. O(order) searches.
  template <class = void>
  float advance(NGramState& state, Word word) const {
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
  template <class = void>
  double log_prob(std::span<Word const> words) const {
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
  template <class = void>
  float unigram(Word word) const {
    return image().unigram(static_cast<std::uint32_t>(word));
  }

  /// The contents of its file.
  template <class = void>
  std::span<std::byte const> bytes() const {
    return image().bytes();
  }
  /// Writes bytes() to a binary stream.
  /// \throws std::runtime_error  if writing to the stream fails
  template <class = void>
  void write(std::ostream& stream) const {
    auto const all = bytes();
    stream.write(reinterpret_cast<char const*>(all.data()), static_cast<std::streamsize>(all.size()));
    stream.flush();
    if (!stream) throw std::runtime_error("n-grams: cannot be written");
  }
  /// For what else reads the table (quantise, write_arpa).
  detail::NGramImage const& image() const { return data_->image; }

 private:
  struct Data {
    template <class = void>
    explicit Data(detail::KeptBytes bytes) : kept(std::move(bytes)), image(kept.bytes) {}
    detail::KeptBytes kept;
    detail::NGramImage image;
  };

  template <class = void>
  explicit NGramTable(detail::KeptBytes kept) : data_(std::make_shared<Data>(std::move(kept))) {}

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

}  // namespace sluice::inline v0
