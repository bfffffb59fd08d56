// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads regular expressions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/regex_automaton.hpp>
#include <sluice/grammar/detail/regex_classes.hpp>
#include <sluice/grammar/detail/regex_escapes.hpp>
#include <sluice/grammar/detail/regex_tree.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The part of RE2's syntax that determines which texts match: characters, `.`, classes with ranges, \d \w \s \D \W \S
/// (ASCII) and [:names:], groups of all kinds (capturing or named makes no difference here), |, * + ? {m} {m,} {m,n}
/// greedy or not, escapes \t \n \r \f \v \a \xHH \x{H...} \uHHHH \Q...\E, punctuation after a \, and ^ \A $ \z; and
/// what ECMA-262 has beyond it: (?=...) and (?!...). Characters are Unicode, in UTF-8. Rejected: flags other than i, s
/// and -s, \b, \B, \p, \C, back-references and looking behind.
class Regex {
 public:
  using Id = Expressions::Id;

  /// \param what    names the pattern in messages
  /// \param search  as in JSON schema: the pattern may match anywhere in the text, unless anchors say otherwise. `.`
  ///     and \s are then those of ECMA-262 (Unicode spaces and line ends), and there are no [:names:]
  SLUICE_LAZY static RegexTree tree(std::string_view what, std::string_view pattern, GrammarLimits const& limits,
                                    bool search = false) {
    return Regex(what, pattern, limits, search).whole();
  }
  /// The texts that match as a whole, in UTF-8.
  SLUICE_LAZY static Id parse(std::string_view what, std::string_view pattern, Expressions& out) {
    return write(what, tree(what, pattern, out.limits()), out);
  }
  SLUICE_LAZY static Id write(std::string_view what, RegexTree const& read, Expressions& out) {
    auto whole = read;
    if (auto begins = true, ends = true; whole.take_anchors(begins, ends))
      return whole.write(out, [&](std::vector<CharacterRange> const& ranges) { return out.characters(ranges); });
    try {
      return out.automaton(TextBytes::utf8(RegexAutomaton::of(read, false)));
    } catch (std::length_error const& e) {
      throw std::invalid_argument("sluice: " + std::string(what) + ": looking ahead, or an anchor within, leads to " +
                                  e.what());
    }
  }

 private:
  struct Flags {
    bool ignore_case = false, dot_lines = false;
  };
  using Kind = RegexTree::Kind;
  SLUICE_LAZY Regex(std::string_view what, std::string_view pattern, GrammarLimits const& limits, bool search)
      : in_(what, pattern, limits), search_(search) {}

  SLUICE_LAZY RegexTree whole() {
    tree_.root = alternatives(0, {});
    if (!in_.end()) in_.fail(in_.peek() == ')' ? ") without (" : "is not understood");
    return std::move(tree_);
  }
  SLUICE_LAZY Id one_of(std::vector<CharacterRange> ranges) {
    normalise(ranges);
    return tree_.add({.kind = Kind::characters, .ranges = std::move(ranges)});
  }

  SLUICE_LAZY Id alternatives(std::int32_t nesting, Flags flags) {
    std::vector<Id> choices;
    do choices.push_back(sequence(nesting, flags));
    while (in_.take("|"));
    return choices.size() == 1 ? choices[0] : tree_.add({.kind = Kind::choice, .parts = std::move(choices)});
  }

  SLUICE_LAZY Id sequence(std::int32_t nesting, Flags& flags) {
    std::vector<Id> parts;
    while (!in_.end() && in_.peek() != '|' && in_.peek() != ')') {
      if (in_.take("^") || in_.take("\\A")) {
        parts.push_back(tree_.add({.kind = Kind::begin}));
        continue;
      }
      if (in_.take("$") || in_.take("\\z")) {
        parts.push_back(tree_.add({.kind = Kind::end}));
        continue;
      }
      if (in_.take("\\Q")) {
        auto const before = parts.size();
        while (!in_.end() && !in_.take("\\E")) parts.push_back(one(in_.character(), flags));
        if (parts.size() > before) parts.back() = repeated(parts.back());
        continue;
      }
      auto const part = atom(nesting, flags);
      if (part) parts.push_back(repeated(*part));
    }
    return parts.size() == 1 ? parts[0] : tree_.add({.kind = Kind::sequence, .parts = std::move(parts)});
  }

  /// Returns nothing for a group that only sets flags.
  SLUICE_LAZY std::optional<Id> atom(std::int32_t nesting, Flags& flags) {
    auto const c = in_.peek();
    if (c == '(') return group(nesting, flags);
    if (c == '[') return characters(flags);
    if (c == '*' || c == '+' || c == '?') in_.fail("there is nothing to repeat");
    if (in_.take(".")) {
      if (flags.dot_lines) return one_of({{0, last_character}});
      std::vector<CharacterRange> ends{{'\n', '\n'}};
      if (search_) ends.insert(ends.end(), {{'\r', '\r'}, {0x2028, 0x2029}});
      return one_of(negated(ends));
    }
    if (c == '\\') {
      std::vector<CharacterRange> ranges;
      auto const single = read_escape(in_, search_, ranges);
      return single ? one(*single, flags) : one_of(ranges);
    }
    return one(in_.character(), flags);
  }

  SLUICE_LAZY std::optional<Id> group(std::int32_t nesting, Flags& flags) {
    if (nesting >= in_.limits().nesting)
      in_.fail("groups are nested deeper than limits.nesting = " + std::to_string(in_.limits().nesting));
    auto const place = in_.place();
    in_.skip();
    auto own = flags;
    if (in_.take("?")) {
      if (in_.take("P<") || (in_.at("<") && in_.peek(1) != '=' && in_.peek(1) != '!' && in_.take("<"))) {
        auto const name = in_.place();
        while (is_word(in_.peek())) in_.skip();
        if (in_.place() == name || !in_.take(">")) in_.fail("a group's name is missing");
      } else if (in_.at("=") || in_.at("!")) {
        auto const negative = in_.peek() == '!';
        in_.skip();
        auto const body = alternatives(nesting + 1, own);
        if (!in_.take(")")) in_.fail_at(place, "( without )");
        return tree_.add({.kind = Kind::look, .parts = {body}, .negative = negative});
      } else if (in_.at("<") || in_.at("P")) {
        in_.fail_at(place, "looking behind, and back-references, are not supported");
      } else {
        auto on = true;
        while (!in_.at(":") && !in_.at(")")) {
          if (in_.take("-")) on = false;
          else if (in_.take("i")) own.ignore_case = on;
          else if (in_.take("s")) own.dot_lines = on;
          else in_.fail_at(place, "a flag that is not supported");
        }
        if (in_.take(")")) {
          flags = own;
          return {};
        }
        in_.skip();
      }
    }
    auto const id = alternatives(nesting + 1, own);
    if (!in_.take(")")) in_.fail_at(place, "( without )");
    return id;
  }

  SLUICE_LAZY Id repeated(Id part) {
    for (auto first = true;; first = false) {
      auto const place = in_.place();
      std::int32_t minimum = 0, maximum = -1;
      if (in_.take("+")) minimum = 1;
      else if (in_.take("?")) maximum = 1;
      else if (in_.at("{") && counts()) {
        in_.skip();
        minimum = maximum = in_.count();
        if (in_.take(",")) maximum = in_.at_digit() ? in_.count() : -1;
        in_.skip();
        if (maximum >= 0 && maximum < minimum) in_.fail_at(place, "a repetition of less than its minimum");
      } else if (!in_.take("*")) return part;
      if (!first) in_.fail_at(place, "a repetition of a repetition");
      in_.take("?");  // laziness does not change what matches
      part = tree_.add({.kind = Kind::repeat, .parts = {part}, .minimum = minimum, .maximum = maximum});
    }
  }
  /// Whether {m}, {m,} or {m,n} follows; otherwise RE2 treats the brace as a literal.
  SLUICE_LAZY bool counts() const {
    std::size_t i = 1, digits = 0;
    auto const number = [&] {
      for (; in_.peek(i) >= '0' && in_.peek(i) <= '9'; ++i) ++digits;
    };
    number();
    if (digits == 0) return false;
    if (in_.peek(i) == ',') ++i, number();
    return in_.peek(i) == '}';
  }

  SLUICE_LAZY Id characters(Flags flags) {
    auto const place = in_.place();
    in_.skip();
    auto const negative = in_.take("^");
    std::vector<CharacterRange> ranges;
    for (auto first = !search_; first || !in_.at("]"); first = false) {  // ECMA-262: [] is empty
      if (in_.end()) in_.fail_at(place, "[ without ]");
      if (in_.at("[:") && !search_) {
        read_named_class(in_, ranges);
        continue;
      }
      auto const from = in_.place();
      auto const low = in_.peek() == '\\' ? read_escape(in_, search_, ranges) : in_.character();
      if (!low) continue;
      auto high = *low;
      if (in_.at("-") && in_.peek(1) != ']' && in_.peek(1) != '\0') {
        in_.skip();
        auto const last = in_.peek() == '\\' ? read_escape(in_, search_, ranges) : in_.character();
        if (!last || *last < *low) in_.fail_at(from, "a range whose last character comes before its first");
        high = *last;
      }
      ranges.push_back({*low, high});
    }
    in_.skip();
    if (flags.ignore_case) fold(ranges);
    normalise(ranges);
    return one_of(negative ? negated(ranges) : ranges);
  }

  SLUICE_LAZY Id one(char32_t c, Flags flags) {
    std::vector<CharacterRange> ranges{{c, c}};
    if (flags.ignore_case) fold(ranges);
    return one_of(std::move(ranges));
  }

  SourceReader in_;
  bool search_;
  RegexTree tree_;
};

}  // namespace sluice::inline v0::detail
