// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads n-grams in ARPA format.
#pragma once

#include <sluice/language.hpp>

#include <sluice/ngram/detail/ngram_lists.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Finds words by their spelling.
class WordNumbers {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  template <class = void>
  std::uint32_t find(std::string_view spelling) const {
    auto const found = numbers_.find(spelling);
    return found == numbers_.end() ? none : found->second;
  }
  /// The word's number, and whether it is new.
  template <class = void>
  std::pair<std::uint32_t, bool> add(std::string_view spelling) {
    if (auto const known = find(spelling); known != none) return {known, false};
    auto const number = static_cast<std::uint32_t>(spellings_.size());
    spellings_.emplace_back(spelling);
    numbers_.emplace(spellings_.back(), number);
    return {number, true};
  }
  std::vector<std::string> const& spellings() const { return spellings_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<std::string> spellings_;
};

/// Reads one file. Every error names the line.
class ArpaReader {
 public:
  explicit ArpaReader(std::istream& stream) : stream_(stream) {}

  /// \param unknown  log10 p of `<unk>`, if the file has none
  template <class = void>
  void read(std::optional<double> unknown) {
    header();
    for (std::size_t n = 0; n < announced_.size(); ++n) section(n);
    if (line_ != "\\end\\") fail("'" + line_ + "' where \\end\\ was to be");
    add_unknown(unknown);
  }
  WordNumbers const& words() const { return words_; }
  std::vector<NGramList>& lists() { return lists_; }
  NGramHead head() const {
    return {.begin = words_.find("<s>"), .end = words_.find("</s>"), .unknown = words_.find("<unk>")};
  }

 private:
  [[noreturn]] void fail(std::string const& what) const { fail_at(number_, what); }
  [[noreturn]] static void fail_at(std::uint64_t line, std::string const& what) {
    throw std::runtime_error("arpa: line " + std::to_string(line) + ": " + what);
  }
  /// The next line without white space at its end.
  template <class = void>
  bool next() {
    if (!std::getline(stream_, line_)) {
      if (stream_.bad()) throw std::runtime_error("arpa: cannot be read after line " + std::to_string(number_));
      return false;
    }
    ++number_;
    line_.erase(line_.find_last_not_of(" \t\r") + 1);
    return true;
  }
  template <class = void>
  void need(char const* what) {
    if (!next()) fail(std::string("the file ends before ") + what + ": it is cut off");
  }
  template <class Number>
  static bool parse(std::string_view text, Number& number) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }

  template <class = void>
  void header() {
    do need("\\data\\");
    while (line_ != "\\data\\");
    for (need("the counts"); line_.empty();) need("the counts");
    while (line_.compare(0, 6, "ngram ") == 0) {
      std::string_view const text = std::string_view(line_).substr(6);
      auto const equals = text.find('=');
      std::uint32_t n = 0, count = 0;
      auto const trim = [](std::string_view part) {
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
        return part;
      };
      if (equals == std::string_view::npos || !parse(trim(text.substr(0, equals)), n) ||
          !parse(trim(text.substr(equals + 1)), count))
        fail("'" + line_ + "' is not 'ngram N=COUNT'");
      if (n != announced_.size() + 1)
        fail("counts n-grams of " + std::to_string(n) + " words where those of " +
             std::to_string(announced_.size() + 1) + " were to be");
      if (n > ngram_longest) fail("n-grams have at most " + std::to_string(ngram_longest) + " words");
      announced_.push_back(count);
      need("\\1-grams:");
    }
    if (announced_.empty()) fail("'" + line_ + "' where the counts were to be");
    while (line_.empty()) need("\\1-grams:");
  }

  template <class = void>
  void section(std::size_t n) {
    auto const name = "\\" + std::to_string(n + 1) + "-grams:";
    auto const longest = n + 1 == announced_.size();
    if (line_ != name) fail("'" + line_ + "' where " + name + " was to be");
    auto const begin = number_ + 1;
    NGramList list{.length = static_cast<std::uint32_t>(n + 1)};
    auto const room = (std::min)(announced_[n], std::uint32_t{1} << 20);  // the count may be anything
    list.words.reserve(room * (n + 1)), list.values.reserve(room);
    for (need("\\end\\"); !line_.empty() && line_.front() != '\\'; need("\\end\\")) {
      if (list.size() == announced_[n])
        fail(name + " has more than the " + std::to_string(announced_[n]) + " n-grams that were announced");
      entry(list, n + 1, longest);
    }
    if (list.size() < announced_[n])
      fail(name + " has " + std::to_string(list.size()) + " n-grams, " + std::to_string(announced_[n]) +
           " were announced");
    while (line_.empty()) need("\\end\\");
    if (n == 0) {
      for (auto const* const word : {"<s>", "</s>"})
        if (words_.find(word) == WordNumbers::none) fail_at(begin - 1, name + " lacks " + word);
    } else {
      auto const order = sorted_ngrams(list);
      for (std::size_t i = 1; i < order.size(); ++i)
        if (std::equal(list.at(order[i]), list.at(order[i]) + n + 1, list.at(order[i - 1])))
          fail_at(begin + (std::max)(order[i], order[i - 1]),
                  "this n-gram is there already, in line " +
                      std::to_string(begin + (std::min)(order[i], order[i - 1])));
    }
    lists_.push_back(std::move(list));
  }

  template <class = void>
  void entry(NGramList& list, std::size_t n, bool longest) {
    fields_.clear();
    std::string_view const text = line_;
    for (std::size_t at = 0; at < text.size();) {
      auto const end = (std::min)(text.find_first_of(" \t", at), text.size());
      if (end > at) fields_.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    if (fields_.size() != n + 1 && fields_.size() != n + 2)
      fail(std::to_string(fields_.size()) + " fields, where a probability, " + std::to_string(n) +
           (n == 1 ? " word" : " words") + " and perhaps a back-off weight were to be");
    double value = 0, back_off = 0;
    if (!parse(fields_[0], value) || !(value <= 0) || !std::isfinite(value))
      fail("'" + std::string(fields_[0]) + "' is no logarithm of a probability");
    if (fields_.size() == n + 2) {
      if (!parse(fields_[n + 1], back_off) || !std::isfinite(back_off))
        fail("'" + std::string(fields_[n + 1]) + "' is no back-off weight");
      if (longest && back_off != 0) fail("the longest n-grams have no back-off weight");
    }
    for (std::size_t i = 1; i <= n; ++i) {
      auto spelling = fields_[i];
      if (spelling == "<UNK>") spelling = "<unk>";
      if (n == 1) {
        auto const [word, fresh] = words_.add(spelling);
        if (!fresh) fail("the word '" + std::string(spelling) + "' is there already");
        list.words.push_back(word);
      } else {
        auto const word = words_.find(spelling);
        if (word == WordNumbers::none) fail("the word '" + std::string(spelling) + "' is not among the 1-grams");
        list.words.push_back(word);
      }
    }
    list.values.push_back(static_cast<float>(value * std::numbers::ln10));
    if (!longest) list.back_offs.push_back(static_cast<float>(back_off * std::numbers::ln10));
  }

  template <class = void>
  void add_unknown(std::optional<double> unknown) {
    if (words_.find("<unk>") != WordNumbers::none) return;
    if (!unknown)
      throw std::runtime_error("arpa: \\1-grams: has no <unk>: say how probable a word is that is not there "
                               "(ArpaOptions::unknown)");
    lists_[0].words.push_back(words_.add("<unk>").first);
    lists_[0].values.push_back(static_cast<float>(*unknown * std::numbers::ln10));
    if (lists_.size() > 1) lists_[0].back_offs.push_back(0);
  }

  std::istream& stream_;
  std::string line_;
  std::uint64_t number_ = 0;
  std::vector<std::uint32_t> announced_;
  std::vector<NGramList> lists_;
  WordNumbers words_;
  std::vector<std::string_view> fields_;
};

}  // namespace sluice::inline v0::detail
