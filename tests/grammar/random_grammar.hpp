// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random grammars as text, and a recogniser that shares no code with the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::test {

/// An expression over small letters and rules r0, r1, ...; r0 is the root.
struct Part {
  enum Kind { literal, letters, sequence, choice, repeat, rule } kind = literal;
  std::string text{};  // literal; of letters: all that match
  std::vector<Part> parts{};
  int minimum = 0, maximum = -1, number = 0;
};

/// Finds where texts of a part that begin at one position of `text` may end. Tries everything until nothing new is
/// found, so rules without any text may be left-recursive.
class Recogniser {
 public:
  Recogniser(std::vector<Part> const& rules, std::string_view text) : rules_(rules), text_(text) {}
  bool matches() {
    do {
      changed_ = false, seen_.clear();
      rule(0, 0);
    } while (changed_);
    return known_[{0, 0}].contains(text_.size());
  }

 private:
  using Ends = std::set<std::size_t>;
  Ends rule(int number, std::size_t from) {
    auto const key = std::pair(number, from);
    if (!seen_.insert(key).second) return known_[key];
    auto ends = of(rules_[static_cast<std::size_t>(number)], from);
    auto& known = known_[key];
    if (ends != known) known = std::move(ends), changed_ = true;
    return known;
  }
  Ends of(Part const& part, std::size_t from) {
    switch (part.kind) {
      case Part::literal: return text_.substr(from).starts_with(part.text) ? Ends{from + part.text.size()} : Ends{};
      case Part::letters:
        return from < text_.size() && part.text.find(text_[from]) != std::string::npos ? Ends{from + 1} : Ends{};
      case Part::sequence: {
        Ends ends{from};
        for (auto const& one : part.parts) ends = after(one, ends);
        return ends;
      }
      case Part::choice: {
        Ends ends;
        for (auto const& one : part.parts) ends.merge(of(one, from));
        return ends;
      }
      case Part::repeat: {
        Ends ends{from}, all;
        for (int i = 0; i < part.minimum; ++i) ends = after(part.parts[0], ends);
        all = ends;
        for (int i = part.minimum; part.maximum < 0 || i < part.maximum; ++i) {
          auto next = after(part.parts[0], ends);
          auto const before = all.size();
          all.insert(next.begin(), next.end());
          ends = std::move(next);
          if (all.size() == before && part.maximum < 0) break;
        }
        return all;
      }
      case Part::rule: return rule(part.number, from);
    }
    return {};
  }
  Ends after(Part const& part, Ends const& from) {
    Ends ends;
    for (auto const place : from) ends.merge(of(part, place));
    return ends;
  }

  std::vector<Part> const& rules_;
  std::string_view text_;
  std::map<std::pair<int, std::size_t>, Ends> known_;
  std::set<std::pair<int, std::size_t>> seen_;  // in this pass
  bool changed_ = false;
};

inline bool recognises(std::vector<Part> const& rules, std::string_view text) {
  return Recogniser(rules, text).matches();
}

/// Draws grammars of a few rules over the given letters.
class RandomGrammar {
 public:
  RandomGrammar(std::mt19937_64& random, std::string letters) : random_(random), letters_(std::move(letters)) {}

  std::vector<Part> rules() {
    count_ = draw(1, 4);
    std::vector<Part> out;
    for (int r = 0; r < count_; ++r) out.push_back(part(3));
    return out;
  }

  /// \param calls  whether rules may be called
  Part part(int depth, bool calls = true) {
    auto const kind = depth == 0 ? draw(0, calls ? 2 : 1) : draw(0, calls ? 8 : 7);
    if (kind == 0) return {.kind = Part::literal, .text = letters(draw(0, 6) == 0 ? 0 : draw(1, 3))};
    if (kind == 1) return {.kind = Part::letters, .text = some()};
    if (kind == 2 && depth == 0) return {.kind = Part::rule, .number = draw(0, count_ - 1)};
    if (kind <= 4) return {.kind = Part::sequence, .parts = several(depth, draw(2, 3), calls)};
    if (kind <= 6) return {.kind = Part::choice, .parts = several(depth, draw(2, 3), calls)};
    if (kind == 7) {
      auto const minimum = draw(0, 2);
      auto const maximum = draw(0, 2) == 0 ? -1 : minimum + draw(0, 2);
      return {.kind = Part::repeat, .parts = several(depth, 1, calls), .minimum = minimum, .maximum = maximum};
    }
    return {.kind = Part::rule, .number = draw(0, count_ - 1)};
  }

  int draw(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

 private:
  std::vector<Part> several(int depth, int count, bool calls) {
    std::vector<Part> out;
    for (int i = 0; i < count; ++i) out.push_back(part(depth - 1, calls));
    return out;
  }
  std::string letters(int count) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += letters_[static_cast<std::size_t>(draw(0, static_cast<int>(letters_.size()) - 1))];
    return out;
  }
  std::string some() {
    std::string out;
    for (auto const c : letters_)
      if (draw(0, 1) == 0) out += c;
    return out.empty() ? letters_.substr(0, 1) : out;
  }

  std::mt19937_64& random_;
  std::string letters_;
  int count_ = 1;
};

inline std::string gbnf(Part const& part) {
  std::string out;
  switch (part.kind) {
    case Part::literal: return '"' + part.text + '"';
    case Part::letters: return '[' + part.text + ']';
    case Part::rule: return part.number == 0 ? "root" : "r" + std::to_string(part.number);
    case Part::sequence:
      for (auto const& one : part.parts) out += gbnf(one) + " ";
      return "(" + out + ")";
    case Part::choice:
      for (auto const& one : part.parts) out += (out.empty() ? "" : " | ") + gbnf(one);
      return "(" + out + ")";
    case Part::repeat: {
      auto const body = gbnf(part.parts[0]);
      if (part.maximum < 0 && part.minimum == 0) return body + "*";
      if (part.maximum < 0 && part.minimum == 1) return body + "+";
      if (part.minimum == 0 && part.maximum == 1) return body + "?";
      auto const minimum = std::to_string(part.minimum);
      if (part.maximum < 0) return body + "{" + minimum + ",}";
      return part.maximum == part.minimum ? body + "{" + minimum + "}"
                                          : body + "{" + minimum + "," + std::to_string(part.maximum) + "}";
    }
  }
  return out;
}
inline std::string gbnf(std::vector<Part> const& rules) {
  std::string out;
  for (std::size_t r = 0; r < rules.size(); ++r)
    out += (r == 0 ? "root" : "r" + std::to_string(r)) + " ::= " + gbnf(rules[r]) + "\n";
  return out;
}

}  // namespace sluice::test
