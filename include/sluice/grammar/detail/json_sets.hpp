// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers and strings that JSON schemas accept, as sets.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_numbers.hpp>
#include <sluice/grammar/detail/json_validator.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A schema is a formula over sets of texts: allOf intersects, anyOf unites, `not` complements.
class JsonSets : public JsonValidator {
 public:
  using JsonValidator::JsonValidator;

 protected:
  /// The strings that fit. \throws Unsupported
  SLUICE_LAZY Texts strings(Literals const& all_of) { return conjunction(all_of, strings_); }
  /// The numbers that fit. Null: all.
  SLUICE_LAZY Texts numbers(Literals const& all_of) {
    for (auto asked = std::pair(NumberTexts::all, JsonNumbers::usual_exponent);; asked = wanted_) {
      auto& of = numbers_[asked];
      if (of.numbers == nullptr) of.numbers = std::make_unique<JsonNumbers>(asked.first, asked.second);
      asked_ = wanted_ = asked;
      auto found = conjunction(all_of, of);
      if (wanted_ == asked) return found;
    }
  }

 private:
  struct Target {
    std::unique_ptr<JsonNumbers> numbers{};  // null: strings
    std::map<std::pair<JsonValue const*, std::int32_t>, Texts> known{};
    std::map<std::string, Texts> leaves{};
    std::map<std::pair<Texts, std::pair<Texts, char>>, Texts> combined{};
  };
  static Texts none() {
    static Texts const nothing = std::make_shared<TextAutomaton const>();
    return nothing;
  }
  SLUICE_LAZY static Texts combine(Texts const& a, Texts const& b, char how, Target& of) {
    if (how == '&' && (a == nullptr || b == nullptr)) return a == nullptr ? b : a;
    if (how == '|' && (a == nullptr || b == nullptr)) return nullptr;
    if (how == '-' && b == nullptr) return none();
    auto const [it, fresh] = of.combined.try_emplace({a, {b, how}});
    if (!fresh) return it->second;
    auto const universe = [&] { return of.numbers == nullptr ? TextAutomaton::anything() : of.numbers->all(); };
    auto made = how == '&' ? *a & *b : how == '|' ? *a | *b : (a == nullptr ? universe() : *a) - *b;
    return it->second = share(std::move(made));
  }
  SLUICE_LAZY Texts conjunction(Literals const& all_of, Target& of) {
    Texts out;
    for (auto const& one : all_of) {
      negative_ = one.negated;
      out = combine(out, set_of(*one.schema, one.scope, of), one.negated ? '-' : '&', of);
    }
    negative_ = false;
    return out;
  }

  SLUICE_LAZY Texts set_of(JsonValue const& schema, std::int32_t scope, Target& of) {
    if (schema.is(Kind::boolean)) return schema.truth ? nullptr : none();
    auto const& its = this->schema(schema);
    scope = enter(scope, its);
    auto const key = std::pair(&schema, scope);
    if (auto const it = of.known.find(key); it != of.known.end()) return it->second;
    auto const open = std::find_if(open_.begin(), open_.end(), [&](auto const& one) { return one.first == key; });
    if (open != open_.end()) {
      if (open->second != negative_) unsupported(schema, "refers to itself under `not`, which is not supported");
      reached_ = (std::min)(reached_, static_cast<std::size_t>(open - open_.begin()));
      return nullptr;  // says nothing
    }
    if (open_.size() > 500) unsupported(schema, "references lead too deep, which is not supported");
    auto const before = std::exchange(reached_, std::size_t(-1));
    open_.emplace_back(key, negative_);
    try {
      Texts out;
      for (auto const& part : its.parts) {
        if (out != nullptr && out->empty()) break;
        try {
          out = combine(out, obeying(its, part, scope, of), '&', of);
        } catch (std::length_error const& e) {
          unsupported(*part.value, "the combination of keywords leads to " + std::string(e.what()));
        }
      }
      open_.pop_back();
      // It is known unless it refers back to what is still open.
      if (reached_ >= open_.size() && wanted_ == asked_) of.known[key] = out;
      reached_ = (std::min)(before, reached_);
      return out;
    } catch (...) {
      open_.pop_back();
      throw;
    }
  }

  SLUICE_LAZY Texts obeying(Schema const& its, Part const& part, std::int32_t scope, Target& of) {
    auto const& value = *part.value;
    auto const sub = [&](JsonValue const& one) { return set_of(one, scope, of); };
    auto const under = [&](JsonValue const& one) {  // what may be complemented
      auto const before = std::exchange(negative_, !negative_);
      auto out = sub(one);
      negative_ = before;
      return out;
    };
    Texts out;
    switch (part.word) {
      case Word::ref:
      case Word::dynamic_ref:
      case Word::recursive_ref: return sub(target(its, part, scope));
      case Word::all_of:
        for (auto const& one : list(value)) out = combine(out, sub(one), '&', of);
        return out;
      case Word::any_of:
        out = none();
        for (auto const& one : list(value)) out = combine(out, sub(one), '|', of);
        return out;
      case Word::one_of: {
        out = none();
        Texts none_yet;
        for (auto const& one : list(value)) {
          auto const its_own = under(one);
          auto const first = combine(none_yet, its_own, '&', of);
          out = combine(combine(out, its_own, '-', of), first, '|', of);
          none_yet = combine(none_yet, its_own, '-', of);
        }
        return out;
      }
      case Word::no: return combine(nullptr, under(value), '-', of);
      case Word::condition: {
        auto const *then = own(its, "then"), *otherwise = own(its, "else");
        if (then == nullptr && otherwise == nullptr) return out;
        auto const when = under(value);
        return combine(combine(when, then == nullptr ? nullptr : sub(*then), '&', of),
                       combine(otherwise == nullptr ? nullptr : sub(*otherwise), when, '-', of), '|', of);
      }
      case Word::type: {
        auto const some = types(value);
        if (of.numbers == nullptr) return (some & string) != 0 ? nullptr : none();
        if ((some & number) != 0) return nullptr;
        return (some & integer) != 0 ? integers(its, of) : none();
      }
      case Word::values: return values(value.items, of);
      case Word::constant: return values({&value, 1}, of);
      default: break;
    }
    return of.numbers == nullptr ? string_leaf(part) : number_leaf(its, part, of);
  }
  SLUICE_LAZY Texts values(std::span<JsonValue const> some, Target& of) {
    if (of.numbers == nullptr) {
      std::vector<std::u32string> words;
      for (auto const& one : some)
        if (one.is(Kind::string)) words.push_back(decoded(one.text));
      return share(TextAutomaton::words(std::move(words)));
    }
    auto out = none();
    for (auto const& one : some)
      if (one.is(Kind::number)) out = combine(out, beside(one, false, true, false, of), '|', of);
    return out;
  }

  SLUICE_LAZY Texts string_leaf(Part const& part) {
    auto const& value = *part.value;
    switch (part.word) {
      case Word::pattern: return pattern(value);
      case Word::format: {
        auto out = format(value);
        if (auto const most = most_characters(value); out != nullptr && most >= 0)
          out = share(*out & TextAutomaton::lengths(0, most));
        return out;
      }
      case Word::least_length:
      case Word::most_length: {
        auto const n = count(value);
        auto const least = part.word == Word::least_length;
        if (least && n == 0) return nullptr;
        if (n > std::int64_t{50'000}) throw std::length_error("a length of more than 50000 characters beside them");
        auto const size = static_cast<std::int32_t>(n);
        return share(least ? TextAutomaton::lengths(size, -1) : TextAutomaton::lengths(0, size));
      }
      default: return nullptr;
    }
  }

  // ---- numbers ----

  /// Asks for texts of which the leaf can be decided; false: look again.
  bool need(NumberTexts texts, std::int64_t exponent) {
    wanted_ = {(std::max)(wanted_.first, texts), (std::max)(wanted_.second, exponent)};
    return wanted_ == asked_;
  }
  SLUICE_LAZY Texts beside(JsonValue const& value, bool below, bool equal, bool above, Target& of) {
    auto const bound = number_in(value);
    auto const power = bound.exponent + static_cast<std::int64_t>(bound.digits.size());
    if (!bound.digits.empty()) {
      if (std::abs(power) > 100'000) throw std::length_error("an exponent of more than 100000");
      if (!need(NumberTexts::bounded, std::abs(power) + 1)) return nullptr;
    }
    auto const key = std::string(below ? "<" : "") + (equal ? "=" : "") + (above ? ">" : "") + json_key(value);
    return leaf(key, of, [&] { return of.numbers->beside(bound, below, equal, above); });
  }
  template <class Make>
  Texts leaf(std::string const& key, Target& of, Make const& make) {
    auto const [it, fresh] = of.leaves.try_emplace(key);
    if (fresh) {
      try {
        it->second = std::make_shared<TextAutomaton const>(make());
      } catch (...) {
        of.leaves.erase(key);
        throw;
      }
    }
    return it->second;
  }
  SLUICE_LAZY Texts integers(Schema const& its, Target& of) {
    if (draft(its) == 4 && !any_draft()) return leaf("digits", of, [&] { return of.numbers->digits_only(); });
    if (!need(NumberTexts::multiples, 0)) return nullptr;
    return leaf("integers", of, [&] { return of.numbers->multiples(JsonNumber::of("1")); });
  }
  SLUICE_LAZY Texts number_leaf(Schema const& its, Part const& part, Target& of) {
    auto const& value = *part.value;
    auto const excluded = [&](char const* name) {
      auto const* const flag = own(its, name);
      return flag != nullptr && flag->is(Kind::boolean) && flag->truth;
    };
    switch (part.word) {
      case Word::least: return beside(value, false, !excluded("exclusiveMinimum"), true, of);
      case Word::most: return beside(value, true, !excluded("exclusiveMaximum"), false, of);
      case Word::above: return value.is(Kind::boolean) ? nullptr : beside(value, false, false, true, of);
      case Word::below: return value.is(Kind::boolean) ? nullptr : beside(value, true, false, false, of);
      case Word::multiple: {
        auto const by = number_in(value);
        if (by.negative || by.digits.empty()) fail(value, "must be more than 0");
        if (!need(NumberTexts::multiples, 0)) return nullptr;
        return leaf("*" + json_key(value), of, [&] { return of.numbers->multiples(by); });
      }
      default: return nullptr;
    }
  }

  Target strings_;
  std::map<std::pair<NumberTexts, std::int64_t>, Target> numbers_;
  std::pair<NumberTexts, std::int64_t> asked_, wanted_;  // texts of numbers, by kind and largest exponent
  std::vector<std::pair<std::pair<JsonValue const*, std::int32_t>, bool>> open_;
  std::size_t reached_ = std::size_t(-1);  // the first of open_ that was referred to
  bool negative_ = false;
};

}  // namespace sluice::inline v0::detail
