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
  SLUICE_LAZY std::uint32_t find(std::string_view spelling) const {
    auto const found = numbers_.find(spelling);
    return found == numbers_.end() ? none : found->second;
  }
  /// The word's number, and whether it is new.
  SLUICE_LAZY std::pair<std::uint32_t, bool> add(std::string_view spelling) {
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

/// The largest back-off weight, and the least logarithm of a probability, that a file may have, to base 10: sums of 16 do not overflow.
constexpr double arpa_most = 1e36;
/// The natural logarithm that stands for one to base 10.
inline float arpa_natural(double value) { return static_cast<float>(value * std::numbers::ln10 + 0.0); }  // -0 is 0

/// Reads one file. Every error names the line.
class ArpaReader {
 public:
  explicit ArpaReader(std::istream& stream) : stream_(stream) {}

  /// \param unknown  log10 p of `<unk>`, if the file has none
  SLUICE_LAZY void read(std::optional<double> unknown) {
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
  /// The next line without white space at its ends.
  SLUICE_LAZY bool next() {
    if (!std::getline(stream_, line_)) {
      if (stream_.bad()) throw std::runtime_error("arpa: cannot be read after line " + std::to_string(number_));
      return false;
    }
    ++number_;
    line_.erase(line_.find_last_not_of(" \t\r") + 1);
    line_.erase(0, line_.find_first_not_of(" \t\r"));
    return true;
  }
  /// The next line that is not empty.
  SLUICE_LAZY void need(char const* what) {
    do
      if (!next()) fail(std::string("the file ends before ") + what + ": it is cut off");
    while (line_.empty());
  }
  template <class Number>
  static bool parse(std::string_view text, Number& number) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }
  /// A number that a double has; one that is nearer to 0 than any is 0.
  static bool parse(std::string_view text, double& number) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end != text.data() + text.size()) return false;
    if (error == std::errc::result_out_of_range && text.find("e-") < text.size()) number = 0;
    else if (error != std::errc()) return false;
    return std::isfinite(number);
  }

  /// The first line says what is no ARPA, though the rest may look like it.
  SLUICE_LAZY void refuse_others() const {
    constexpr std::pair<std::string_view, char const*> others[]{
        {"\x1F\x8B", "the file is compressed by gzip: decompress it"},
        {"\xFF\xFE", "the file is UTF-16: must be UTF-8"},
        {"\xFE\xFF", "the file is UTF-16: must be UTF-8"},
        {"mmap lm ", "the file is a binary one of KenLM: must be ARPA"},
        {"blmt", "the file is a binary one of IRSTLM: compile-lm --text=yes makes ARPA of it"},
        {"Qblmt", "the file is a binary one of IRSTLM: compile-lm --text=yes makes ARPA of it"},
        {"iARPA", "the file is of IRSTLM's intermediate format: compile-lm --text=yes makes ARPA of it"},
        {"qARPA", "the file is of IRSTLM's quantised format: compile-lm --text=yes makes ARPA of it"}};
    for (auto const& [begin, what] : others)
      if (line_.compare(0, begin.size(), begin) == 0) fail(what);
  }

  SLUICE_LAZY void header() {
    need("\\data\\");
    if (line_.compare(0, 3, "\xEF\xBB\xBF") == 0) line_.erase(0, 3);  // a byte order mark
    refuse_others();
    while (line_ != "\\data\\") need("\\data\\");
    need("the counts");
    constexpr std::string_view blank = " \t";
    while (line_.compare(0, 5, "ngram") == 0 && line_.find_first_of(blank) == 5) {
      std::string_view const text = std::string_view(line_).substr(5);
      auto const equals = text.find('=');
      std::uint32_t n = 0, count = 0;
      auto const trim = [&](std::string_view part) {
        part.remove_prefix((std::min)(part.find_first_not_of(blank), part.size()));
        return part.substr(0, part.find_last_not_of(blank) + 1);
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
  }

  SLUICE_LAZY void section(std::size_t n) {
    auto const name = "\\" + std::to_string(n + 1) + "-grams:";
    auto const longest = n + 1 == announced_.size();
    if (line_ != name) fail("'" + line_ + "' where " + name + " was to be");
    auto const begin = number_;
    lines_.clear();
    NGramList list{.length = static_cast<std::uint32_t>(n + 1)};
    auto const room = (std::min)(announced_[n], std::uint32_t{1} << 20);  // the count may be anything
    list.words.reserve(room * (n + 1)), list.values.reserve(room);
    for (need("\\end\\"); line_.front() != '\\'; need("\\end\\")) {
      if (list.size() == announced_[n])
        fail(name + " has more than the " + std::to_string(announced_[n]) + " n-grams that were announced");
      if (lines_.empty() || number_ - lines_.back().second != list.size() - lines_.back().first)
        lines_.emplace_back(list.size(), number_);
      entry(list, n + 1, longest);
    }
    if (list.size() < announced_[n])
      fail_at(list.size() == 0 ? begin + 1 : line_of(list.size() - 1) + 1,
              name + " has " + std::to_string(list.size()) + " n-grams, " + std::to_string(announced_[n]) +
                  " were announced");
    if (n == 0) {
      for (auto const* const word : {"<s>", "</s>"})
        if (words_.find(word) == WordNumbers::none) fail_at(begin, name + " lacks " + word);
    } else {
      auto const order = sorted_ngrams(list);
      for (std::size_t i = 1; i < order.size(); ++i)
        if (std::equal(list.at(order[i]), list.at(order[i]) + n + 1, list.at(order[i - 1])))
          fail_at(line_of((std::max)(order[i], order[i - 1])),
                  "this n-gram is there already, in line " +
                      std::to_string(line_of((std::min)(order[i], order[i - 1]))));
    }
    lists_.push_back(std::move(list));
  }
  /// The line of an n-gram of the section that was read last.
  SLUICE_LAZY std::uint64_t line_of(std::size_t ngram) const {
    auto const after = std::upper_bound(lines_.begin(), lines_.end(), ngram,
                                        [](std::size_t i, auto const& entry) { return i < entry.first; });
    auto const& [first, line] = *(after - 1);
    return line + (ngram - first);
  }

  SLUICE_LAZY void entry(NGramList& list, std::size_t n, bool longest) {
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
    if (!parse(fields_[0], value) || value > 0 || value < -arpa_most)
      fail("'" + std::string(fields_[0]) + "' is no logarithm of a probability" +
           (std::isfinite(value) && value < 0 ? ": below -1e36" : ""));
    if (fields_.size() == n + 2) {
      if (!parse(fields_[n + 1], back_off) || std::abs(back_off) > arpa_most)
        fail("'" + std::string(fields_[n + 1]) + "' is no back-off weight" +
             (std::isfinite(back_off) && back_off != 0 ? ": must be from -1e36 to 1e36" : ""));
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
    list.values.push_back(arpa_natural(value));
    if (!longest) list.back_offs.push_back(arpa_natural(back_off));
  }

  SLUICE_LAZY void add_unknown(std::optional<double> unknown) {
    if (words_.find("<unk>") != WordNumbers::none) return;
    if (!unknown)
      throw std::runtime_error("arpa: \\1-grams: has no <unk>: say how probable a word is that is not there "
                               "(ArpaOptions::unknown)");
    lists_[0].words.push_back(words_.add("<unk>").first);
    lists_[0].values.push_back(arpa_natural(*unknown));
    if (lists_.size() > 1) lists_[0].back_offs.push_back(0);
  }

  std::istream& stream_;
  std::string line_;
  std::uint64_t number_ = 0;
  std::vector<std::uint32_t> announced_;
  std::vector<NGramList> lists_;
  WordNumbers words_;
  std::vector<std::string_view> fields_;
  std::vector<std::pair<std::size_t, std::uint64_t>>
      lines_;  // n-grams of a section that follow empty lines, with their lines
};

}  // namespace sluice::inline v0::detail
