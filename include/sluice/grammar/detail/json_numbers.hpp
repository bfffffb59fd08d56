// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sets of numbers as automata over their texts.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/regex_automaton.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Which texts of numbers are looked at. Whether a number is a multiple of another is not regular over all texts
/// (1500e-2), so where that is asked, numbers with an exponent have one digit other than 0; where bounds are asked, they
/// have one digit before the point.
enum class NumberTexts : std::uint8_t { all, bounded, multiples };

/// Each set is decided by the value, however it is written.
class JsonNumbers {
 public:
  /// \param exponent  the largest that is written
  SLUICE_LAZY explicit JsonNumbers(NumberTexts texts, std::int64_t exponent = usual_exponent)
      : texts_(texts), usual_(exponent == usual_exponent) {
    all_ = texts == NumberTexts::all ? finite() : usual_ ? usual(texts) : texts_of(texts, exponent);
  }
  static constexpr std::int64_t usual_exponent = 307;

  /// All texts whose exponent is such that they are finite doubles, if not of very many digits.
  SLUICE_LAZY static TextAutomaton const& finite() {
    static TextAutomaton const all =
        set("-?(?:(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE](?:[+-]?0*[0-9]{1,2}|-" + at_most(307) +
            "))?|[0-9](?:\\.[0-9]+)?[eE]\\+?" + at_most(307) + "|" + largest() + "[eE]\\+?0*308)");
    return all;
  }
  /// Integers among these, without those that need their digits counted, such as 1500e-2.
  SLUICE_LAZY static TextAutomaton const& integers() {
    static TextAutomaton const all =
        set(R"(-?(?:(?:0|[1-9][0-9]*)(?:\.0+)?(?:[eE]\+?0*[0-9]{1,2})?|[0-9](?:\.0+)?[eE]\+?)" + at_most(307) + ")");
    return all;
  }
  /// Without exponents, and without zeros at the end of a fraction: 5, not 5.0.
  SLUICE_LAZY static TextAutomaton const& plain() {
    static TextAutomaton const all = set("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]*[1-9])?");
    return all;
  }
  /// Those with at most so many digits before the point, and behind it. \param before  -1: any number
  SLUICE_LAZY static TextAutomaton digits(std::int32_t before, std::int32_t behind) {
    return set("-?[0-9]" + (before < 0 ? "+" : "{1," + std::to_string(before) + "}") + "(?:\\.[0-9]{1," +
               std::to_string(behind) + "})?(?:[eE][+-]?[0-9]+)?");
  }
  /// Whole numbers so large that a set with one of them is taken for one without end.
  SLUICE_LAZY static TextAutomaton const& endless() {
    static TextAutomaton const all = set("-?[0-9]{40,}");
    return all;
  }
  TextAutomaton const& all() const { return all_; }
  /// \param below, equal, above  which numbers are taken, beside `bound`
  /// \throws std::length_error
  SLUICE_LAZY TextAutomaton beside(JsonNumber const& bound, bool below, bool equal, bool above) const {
    auto const size = static_cast<std::int64_t>(bound.digits.size());
    if (size > 1000) throw std::length_error("a number of more than 1000 digits");
    // `beyond`: further from 0 than the bound; the near ones are on its other side.
    auto const pick = [&](TextAutomaton const& beyond, TextAutomaton const& same, bool want_far, bool want_near) {
      if (!want_near) return want_far && equal ? beyond | same : want_far ? beyond : equal ? same : TextAutomaton{};
      auto out = all_;
      if (!want_far) out = out - beyond;
      if (!equal) out = out - same;
      return out;
    };
    if (size == 0) {
      if (!usual_) return pick(negative(all_), zeros(all_), below, above);
      if (!below && above) {  // as most bounds are
        auto const at_least_0 = [&](NumberTexts texts) -> std::pair<TextAutomaton, TextAutomaton> {
          return {usual(texts) - negative(usual(texts)), usual(texts) - negative(usual(texts)) - zeros(usual(texts))};
        };
        static std::pair<TextAutomaton, TextAutomaton> const of[] = {
            at_least_0(NumberTexts::all), at_least_0(NumberTexts::bounded), at_least_0(NumberTexts::multiples)};
        auto const& [least, more] = of[static_cast<std::size_t>(texts_)];
        return equal ? least : more;
      }
      return pick(negative(all_), zeros(all_), below, above);
    }
    std::string const sign = bound.negative ? "-" : "";
    auto const far_wanted = bound.negative ? below : above, near_wanted = bound.negative ? above : below;
    auto same = equal != near_wanted ? all_ & set(sign + "(?:" + equal_to(bound) + ")") : TextAutomaton{};
    if (equal && !below && !above) return same;
    auto const beyond = all_ & (set(sign + "(?:" + greater(bound) + ")") | greater_digits(bound));
    return pick(beyond, same, far_wanted, near_wanted);
  }
  /// Multiples of a positive number.
  /// \throws std::length_error
  SLUICE_LAZY TextAutomaton multiples(JsonNumber const& of) const {
    if (of.digits.size() > 5 || of.exponent > 400 || of.exponent < -400)
      throw std::length_error("a divisor of more than 5 digits, or far from 1");
    if (usual_ && texts_ == NumberTexts::multiples && of.digits == "1" && of.exponent == 0) {
      static TextAutomaton const once = JsonNumbers(NumberTexts::multiples).multiples_of(of);
      return once;
    }
    return multiples_of(of);
  }
  /// Written without point and exponent.
  SLUICE_LAZY TextAutomaton digits_only() const { return set("-?(?:0|[1-9][0-9]*)"); }

  /// The digits before the point, and behind it; false: with very many zeros, which nobody writes.
  SLUICE_LAZY static bool point(JsonNumber const& x, std::string& whole, std::string& rest) {
    auto digits = x.digits;
    auto const size = static_cast<std::int64_t>(digits.size()), at = size + x.exponent;
    if (at > 1100 || at < -1100) return false;
    if (at > size) digits.append(static_cast<std::size_t>(at - size), '0');
    if (at < 0) digits.insert(0, static_cast<std::size_t>(-at), '0');
    auto const split = static_cast<std::size_t>(std::max<std::int64_t>(at, 0));
    whole = split == 0 ? "0" : digits.substr(0, split);
    rest = digits.substr(split);
    return true;
  }

 private:
  SLUICE_LAZY static TextAutomaton texts_of(NumberTexts texts, std::int64_t exponent) {
    auto const power = "[eE][+-]?" + at_most(exponent), most = std::string("[eE]\\+?0*308");
    std::string const plain = "-?(?:(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?|0(?:\\.0+)?" + power + "|";
    auto const finite = exponent == usual_exponent;  // and up to the largest double
    if (texts == NumberTexts::multiples)
      return set(plain + "[1-9](?:\\.0+)?" + power + (finite ? "|1(?:\\.0+)?" + most : "") + ")");
    return set(plain + "[1-9](?:\\.[0-9]+)?" + power + (finite ? "|" + largest() + most : "") + ")");
  }
  /// Made once.
  SLUICE_LAZY static TextAutomaton const& usual(NumberTexts texts) {
    static TextAutomaton const bounded = texts_of(NumberTexts::bounded, usual_exponent),
                               multiples = texts_of(NumberTexts::multiples, usual_exponent);
    return texts == NumberTexts::all ? finite() : texts == NumberTexts::bounded ? bounded : multiples;
  }
  /// What a finite double with the exponent 308 begins with.
  static std::string largest() { return "1(?:\\.(?:[0-6][0-9]*|7|7[0-8][0-9]*|79|79[0-6][0-9]*|7976931348623157))?"; }
  SLUICE_LAZY static TextAutomaton zeros(TextAutomaton const& all) { return all & set("-?0(?:\\.0+)?(?:[eE].*)?"); }
  /// Less than 0.
  SLUICE_LAZY static TextAutomaton negative(TextAutomaton const& all) { return (all & set("-.*")) - zeros(all); }
  SLUICE_LAZY TextAutomaton multiples_of(JsonNumber const& of) const {
    auto const divisor = std::stol(of.digits);
    std::string powers = "-?(?:0(?:\\.0+)?[eE].*";
    for (auto digit = 1; digit < 10; ++digit) {
      auto x = digit % divisor;
      std::int64_t least = of.exponent;
      for (auto i = 0; x != 0 && i < 64; ++i) x = x * 10 % divisor, ++least;
      if (x == 0) powers += "|" + std::to_string(digit) + "(?:\\.0+)?[eE]" + exponent_from(least);
    }
    return all_ & (remainders(divisor, of.exponent) | set(powers + ")"));
  }
  SLUICE_LAZY static TextAutomaton set(std::string const& pattern) {
    return RegexAutomaton::of(Regex::tree("number", pattern, GrammarLimits{}), false);
  }
  static std::string range(int first, int last) {
    return "[" + std::to_string(first) + "-" + std::to_string(last) + "]";
  }

  // ---- whole numbers that are not negative, with leading zeros ----

  SLUICE_LAZY static std::string at_most(std::int64_t n) {
    auto const digits = std::to_string(n);
    auto const size = digits.size();
    std::string out = "0*(?:" + digits;
    for (std::size_t i = 0; i < size; ++i)
      if (digits[i] > '0')
        out += "|" + digits.substr(0, i) + range(0, digits[i] - '1') + "[0-9]{" + std::to_string(size - i - 1) + "}";
    return out + (size > 1 ? "|[0-9]{1," + std::to_string(size - 1) + "})" : ")");
  }
  SLUICE_LAZY static std::string at_least(std::int64_t n) {
    auto const digits = std::to_string(n);
    auto const size = digits.size();
    std::string out = "0*(?:" + digits + "|[1-9][0-9]{" + std::to_string(size) + ",}";
    for (std::size_t i = 0; i < size; ++i)
      if (digits[i] < '9')
        out +=
            "|" + digits.substr(0, i) + range(digits[i] - '0' + 1, 9) + "[0-9]{" + std::to_string(size - i - 1) + "}";
    return out + ")";
  }
  /// Exponents of at least n.
  SLUICE_LAZY static std::string exponent_from(std::int64_t n) {
    if (n > 0) return "\\+?" + at_least(n);
    return "(?:\\+?[0-9]+|-" + at_most(-n) + ")";
  }
  SLUICE_LAZY static std::string exponent_of(std::int64_t n) {
    if (n == 0) return "[+-]?0+";
    return n > 0 ? "\\+?0*" + std::to_string(n) : "-0*" + std::to_string(-n);
  }

  // ---- sizes ----

  static std::string behind_point(std::string const& digits) {
    return digits.empty() ? "(?:\\.0+)?" : "\\." + digits + "0*";
  }
  /// Digits behind the point that make a number greater than one with these digits.
  SLUICE_LAZY static std::string greater_behind_point(std::string const& digits) {
    std::string out = "\\.(?:" + digits + "0*[1-9][0-9]*";
    for (std::size_t i = 0; i < digits.size(); ++i)
      if (digits[i] < '9') out += "|" + digits.substr(0, i) + range(digits[i] - '0' + 1, 9) + "[0-9]*";
    return out + ")";
  }

  SLUICE_LAZY static std::string equal_to(JsonNumber const& x) {
    std::string whole, rest;
    auto const power = x.exponent + static_cast<std::int64_t>(x.digits.size()) - 1;
    auto out = x.digits.substr(0, 1) + behind_point(x.digits.substr(1)) + "[eE]" + exponent_of(power);
    if (point(x, whole, rest)) out += "|" + whole + behind_point(rest);
    return out;
  }
  /// Greater sizes, with an exponent.
  SLUICE_LAZY static std::string greater(JsonNumber const& x) {
    auto const any = std::string("(?:\\.[0-9]+)?");
    auto const power = x.exponent + static_cast<std::int64_t>(x.digits.size()) - 1;
    auto out = "[1-9]" + any + "[eE]" + exponent_from(power + 1) + "|(?:" + x.digits.substr(0, 1) +
               greater_behind_point(x.digits.substr(1));
    if (x.digits[0] < '9') out += "|" + range(x.digits[0] - '0' + 1, 9) + any;
    out += ")[eE]" + exponent_of(power);
    return out;
  }
  /// Those without: with the sign of x, further from 0.
  SLUICE_LAZY static TextAutomaton greater_digits(JsonNumber const& x) {
    std::string whole, rest;
    if (!point(x, whole, rest)) {
      if (x.exponent > 0) throw std::length_error("a bound of more than 1000 digits");
      return set("-?[0-9.]*[1-9][0-9.]*");
    }
    // Digits so far: i of them, less than the bound's, equal or greater; or more than the bound has.
    auto const size = static_cast<std::int32_t>(whole.size()), places = static_cast<std::int32_t>(rest.size());
    auto const before = [&](std::int32_t order, std::int32_t i) { return 2 + (order * (size + 1)) + i; };
    auto const more = before(3, 0), begun = more + 1, behind = begun + 1, equal = behind + 1;
    TextAutomaton out;
    out.states.resize(static_cast<std::size_t>(equal) + static_cast<std::size_t>(places) + 1);
    auto const edge = [&](std::int32_t from, char first, char last, std::int32_t to) {
      if (first > last) return;
      auto const byte = [](char c) { return static_cast<char32_t>(static_cast<unsigned char>(c)); };
      TextAutomaton::join(out.states[static_cast<std::size_t>(from)].edges, {byte(first), byte(last), to});
    };
    auto const compare = [&](std::int32_t from, char digit, char least, std::int32_t low, std::int32_t same,
                             std::int32_t high) {
      edge(from, least, static_cast<char>(digit - 1), low);
      if (digit >= least) edge(from, digit, digit, same);
      edge(from, (std::max)(least, static_cast<char>(digit + 1)), '9', high);
    };
    auto const first = x.negative ? 1 : 0;
    if (x.negative) edge(0, '-', '-', 1);
    // A number that begins with 0 has no more digits before the point; others are not less than 1.
    compare(first, whole[0], size == 1 ? '0' : '1', before(0, 1), before(1, 1), before(2, 1));
    for (std::int32_t order = 0; order < 3; ++order)
      for (std::int32_t i = 1; i <= size; ++i) {
        auto const here = before(order, i);
        if (i == size && (order == 2 || order == 1)) edge(here, '.', '.', order == 2 ? begun : equal);
        if (i == size) edge(here, '0', '9', more);
        else if (order == 1)
          compare(here, whole[static_cast<std::size_t>(i)], '0', before(0, i + 1), before(1, i + 1), before(2, i + 1));
        else edge(here, '0', '9', before(order, i + 1));
      }
    edge(more, '.', '.', begun), edge(more, '0', '9', more);
    edge(begun, '0', '9', behind), edge(behind, '0', '9', behind);
    for (std::int32_t i = 0; i < places; ++i) {
      auto const digit = rest[static_cast<std::size_t>(i)];
      edge(equal + i, digit, digit, equal + i + 1), edge(equal + i, static_cast<char>(digit + 1), '9', behind);
    }
    edge(equal + places, '0', '0', equal + places), edge(equal + places, '1', '9', behind);
    for (auto const one : {before(2, size), more, behind}) out.states[static_cast<std::size_t>(one)].accepts = true;
    return std::move(out).trimmed().minimal();
  }

  /// Numbers without exponent that are multiples of divisor * 10^exponent.
  SLUICE_LAZY static TextAutomaton remainders(std::int64_t divisor, std::int64_t exponent) {
    struct State {
      bool behind_point = false, digit = false, sign = false;
      std::int64_t rest = 0;                           // of the digits, without `zeros` zeros at their end
      std::int64_t zeros = 0;                          // behind the point: the number of digits
      auto operator<=>(State const&) const = default;  // NOLINT(modernize-use-nullptr)
    };
    auto const wanted = std::max<std::int64_t>(exponent, 0), places = std::max<std::int64_t>(-exponent, 0);
    auto const shifted = [&](std::int64_t x, std::int64_t by) {
      for (; by > 0; --by) x = x * 10 % divisor;
      return x;
    };
    std::map<State, std::int32_t> numbers;
    std::vector<State> states;
    auto const number = [&](State const& s) {
      auto const [it, fresh] = numbers.try_emplace(s, static_cast<std::int32_t>(states.size()));
      if (fresh) states.push_back(s), TextAutomaton::check(states.size());
      return it->second;
    };
    number({.zeros = wanted});
    TextAutomaton out;
    for (std::size_t i = 0; i < states.size(); ++i) {
      auto const s = states[i];
      TextAutomaton::State made;
      if (!s.digit && !s.sign) made.edges.push_back({'-', '-', number({.sign = true, .zeros = wanted})});
      if (s.digit && !s.behind_point) {
        auto const fits = s.zeros >= wanted;
        if (fits) made.edges.push_back({'.', '.', number({true, false, true, s.rest, 0})});
      }
      for (std::int32_t d = 0; d < 10; ++d) {
        auto next = s;
        next.digit = true, next.sign = true;
        if (!s.behind_point) {
          if (d == 0 && s.zeros < wanted) ++next.zeros;
          else if (d == 0) next.rest = s.rest * 10 % divisor;
          else next.rest = (shifted(s.rest, s.zeros + 1) + d) % divisor, next.zeros = 0;
        } else if (s.zeros < places) next.rest = (s.rest * 10 + d) % divisor, ++next.zeros;
        else if (d > 0) continue;
        auto const code = static_cast<char32_t>('0' + d);
        TextAutomaton::join(made.edges, {code, code, number(next)});
      }
      made.accepts = s.digit && (s.behind_point ? shifted(s.rest, places - s.zeros) == 0
                                                : s.zeros >= wanted && shifted(s.rest, places) == 0);
      out.states.push_back(std::move(made));
    }
    return std::move(out).trimmed().minimal();
  }

  NumberTexts texts_;
  bool usual_;  // the largest exponent
  TextAutomaton all_;
};

}  // namespace sluice::inline v0::detail
