// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rules for the numbers and strings that JSON schemas accept.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_regex_format.hpp>
#include <sluice/grammar/detail/json_sets.hpp>
#include <sluice/grammar/detail/json_texts.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/regex_automaton.hpp>
#include <sluice/grammar/detail/regex_tree.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Most schemas of strings are short lists of keywords, which need no automata: lengths and patterns are then written as
/// repetitions.
class JsonScalars : public JsonSets {
 public:
  using Id = Expressions::Id;

 protected:
  SLUICE_LAZY JsonScalars(std::string_view text, GrammarLimits const& limits, Expressions& out, JsonStyle const& style)
      : JsonSets(text, limits), out_(out), texts_(out, style) {}

  SLUICE_LAZY Id number_of(Literals const& all_of) {
    if (only_integers(all_of)) return texts_.number(true);
    auto const some = numbers(all_of);
    if (some == nullptr) return texts_.number(false);
    auto const [it, fresh] = number_rules_.try_emplace(some, -1);
    if (fresh) {
      it->second = out_.add_rule("number");
      auto const body = texts_.number(*some);
      out_.rules[at(it->second)].expression = body;
    }
    return out_.call(it->second);
  }

  SLUICE_LAZY Id string_of(Literals const& all_of) {
    std::vector<Flat> ways{{}};
    if (!flatten(all_of, ways)) return known_string(strings(all_of));
    std::vector<Id> choices;
    choices.reserve(ways.size());
    for (auto const& one : ways) choices.push_back(written(one, all_of));
    return out_.choice(choices);
  }

  /// Keywords for strings that must be obeyed together.
  struct Flat {
    std::set<std::string> patterns{};
    std::vector<JsonValue const*> all_patterns{}, formats{};
    std::vector<std::pair<Word, JsonValue const*>> values{};
    std::int64_t least = 0, most = -1;
    JsonValue const* length = nullptr;
    bool free() const { return all_patterns.empty() && formats.empty() && values.empty() && length == nullptr; }
  };
  /// As lists of keywords, one of which must be obeyed; false: more than that is said.
  SLUICE_LAZY bool flatten(Literals const& all_of, std::vector<Flat>& ways) {
    return std::all_of(all_of.begin(), all_of.end(), [&](Literal const& one) {
      if (!one.negated) return flatten(*one.schema, one.scope, ways, 0);
      return flatten_not(*one.schema, one.scope, ways, 0);
    });
  }

  Expressions& out_;
  JsonTexts texts_;

 private:
  /// Whether all that is said of numbers is that they are integers.
  SLUICE_LAZY bool only_integers(Literals const& all_of) {
    if (all_of.size() != 1 || all_of[0].negated || !all_of[0].schema->is(Kind::object)) return false;
    auto const& its = schema(*all_of[0].schema);
    auto found = false;
    for (auto const& [word, value, place] : its.parts) {
      if (word == Word::type) found = (types(*value) & number) == 0;
      else if (word < Word::properties || (word >= Word::least && word <= Word::multiple)) return false;
    }
    return found && (draft(its) != 4 || any_draft());
  }

  SLUICE_LAZY bool flatten_not(JsonValue const& value, std::int32_t scope, std::vector<Flat>& ways, int depth) {
    std::vector<Flat> its{{}};
    if (!flatten(value, scope, its, depth + 1)) return false;
    if (its.empty()) return true;
    if (!std::ranges::any_of(its, &Flat::free)) return false;
    ways.clear();
    return true;
  }
  SLUICE_LAZY bool flatten(JsonValue const& value, std::int32_t scope, std::vector<Flat>& ways, int depth) {
    if (depth > 100) return false;
    if (value.is(Kind::boolean)) {
      if (!value.truth) ways.clear();
      return true;
    }
    auto const& its = schema(value);
    scope = enter(scope, its);
    return std::ranges::all_of(its.parts, [&](Part const& part) { return flatten(its, part, scope, ways, depth); });
  }
  SLUICE_LAZY bool flatten(Schema const& its, Part const& part, std::int32_t scope, std::vector<Flat>& ways,
                           int depth) {
    auto const& value = *part.value;
    auto const sub = [&](JsonValue const& one) { return flatten(one, scope, ways, depth + 1); };
    switch (part.word) {
      case Word::ref:
      case Word::dynamic_ref:
      case Word::recursive_ref: return sub(target(its, part, scope));
      case Word::all_of: return std::ranges::all_of(list(value), sub);
      case Word::any_of:
      case Word::one_of: {
        std::vector<Flat> found;
        auto choices = 0;
        for (auto const& one : list(value)) {
          auto own = ways;
          if (!flatten(one, scope, own, depth + 1)) return false;
          if (own.empty()) continue;
          ++choices;
          if (part.word == Word::any_of && std::ranges::any_of(own, &Flat::free)) {
            ways = {{}};
            return true;
          }
          found.insert(found.end(), own.begin(), own.end());
        }
        if ((part.word == Word::one_of && choices > 1) || found.size() > 50) return false;
        ways = std::move(found);
        return true;
      }
      case Word::no: return flatten_not(value, scope, ways, depth);
      case Word::condition: {
        std::vector<Flat> its_own{{}};
        if (!flatten(value, scope, its_own, depth + 1)) return false;
        auto const always = std::ranges::any_of(its_own, &Flat::free);
        if (!always && !its_own.empty()) return false;
        auto const* const then = own(its, always ? "then" : "else");
        return then == nullptr || sub(*then);
      }
      case Word::type:
        if ((types(value) & string) == 0) ways.clear();
        return true;
      default: break;
    }
    for (auto& way : ways) {
      switch (part.word) {
        case Word::values:
        case Word::constant: way.values.emplace_back(part.word, &value); break;
        case Word::pattern:
          if (!value.is(Kind::string)) fail(value, "must be a string");
          if (way.patterns.insert(value.text).second) way.all_patterns.push_back(&value);
          break;
        case Word::format:
          if (((value.is(Kind::string) && value.text == "regex") || format(value) != nullptr) &&
              std::ranges::none_of(way.formats, [&](auto const* one) { return one->text == value.text; }))
            way.formats.push_back(&value);
          if (auto const n = most_characters(value); n >= 0 && (way.most < 0 || n < way.most)) way.most = n;
          break;
        case Word::least_length:
          if (auto const n = count(value); n > way.least) way.least = n, way.length = &value;
          break;
        case Word::most_length:
          if (auto const n = count(value); way.most < 0 || n < way.most) way.most = n, way.length = &value;
          break;
        default: break;
      }
    }
    return true;
  }

  SLUICE_LAZY Id known_string(Texts const& some) {
    if (some == nullptr) return texts_.string(0, -1);
    auto const [it, fresh] = string_rules_.try_emplace(some, -1);
    if (fresh) {
      it->second = out_.add_rule("string");
      auto const body = texts_.string(*some);
      out_.rules[at(it->second)].expression = body;
    }
    return out_.call(it->second);
  }

  SLUICE_LAZY Id written(Flat const& flat, Literals const& all_of) {
    if (flat.most >= 0 && flat.most < flat.least) return out_.nothing();
    if (!flat.values.empty()) {
      std::vector<std::u32string> words;
      auto const& [word, value] = flat.values[0];
      for (auto const& one : word == Word::constant ? std::span(value, 1) : std::span(value->items))
        if (one.is(Kind::string) && fits(all_of, one)) words.push_back(decoded(one.text));
      return texts_.string(TextAutomaton::words(std::move(words)));
    }
    auto const lengths = flat.least > 0 || flat.most >= 0;
    auto const size = flat.all_patterns.size() + flat.formats.size();
    if (size == 0)
      return texts_.string(repetition(flat.least, *all_of[0].schema),
                           flat.most < 0 ? -1 : repetition(flat.most, *all_of[0].schema));
    auto const key = key_of(flat);
    auto const known = flat_rules_.find(key);
    if (known != flat_rules_.end()) return out_.call(known->second);
    auto const rule = out_.add_rule("string");
    Id body = -1;
    if (size == 1 && !flat.all_patterns.empty()) body = repeated(*flat.all_patterns[0], flat);
    if (size == 1 && !lengths && flat.formats.size() == 1 && flat.formats[0]->text == "regex")
      body = json_regex_format(out_, texts_);
    if (body < 0) {
      std::int32_t most = -1;
      Texts some;
      auto const also = [&](Texts const& more) {
        if (more != nullptr) some = some == nullptr ? more : share(*some & *more);
      };
      auto const* const last = flat.length != nullptr      ? flat.length
                               : flat.all_patterns.empty() ? flat.formats.back()
                                                           : flat.all_patterns.back();
      try {
        for (auto const* const one : flat.all_patterns) also(pattern(*one));
        for (auto const* const one : flat.formats) also(format(*one));
        if (flat.least > 50'000) throw std::length_error("a length of more than 50000 characters beside them");
        if (lengths && some != nullptr) {
          auto const least = static_cast<std::int32_t>(flat.least);
          most = static_cast<std::int32_t>((std::min<std::int64_t>)(flat.most, 1 << 30));
          if (least > 0 && !(*some & TextAutomaton::lengths(0, least - 1)).empty())
            also(share(TextAutomaton::lengths(least, -1)));
          // Where there would be many states, characters are counted.
          auto const few = most <= 16 ? 512 : 128;
          if (most >= 0 && (static_cast<std::int64_t>(some->states.size()) * most <= few || some->fewest() > most))
            some = share(some->up_to(std::exchange(most, -1)));
        } else if (lengths)
          return texts_.string(repetition(flat.least, *last), flat.most < 0 ? -1 : repetition(flat.most, *last));
      } catch (std::length_error const& e) {
        unsupported(*last, "pattern, format and lengths of one string lead to " + std::string(e.what()));
      }
      body = some == nullptr ? texts_.string(0, most) : texts_.string(*some, most);
    }
    out_.rules[at(rule)].expression = body;
    flat_rules_.emplace(key, rule);
    return out_.call(rule);
  }
  SLUICE_LAZY static std::string key_of(Flat const& flat) {
    std::string key = std::to_string(flat.least) + " " + std::to_string(flat.most);
    for (auto const& one : flat.patterns) key += " p" + json_quoted(one);
    for (auto const* const one : flat.formats) key += " f" + json_quoted(one->text);
    return key;
  }
  SLUICE_LAZY std::int32_t repetition(std::int64_t n, JsonValue const& schema) const {
    if (n > limits().repetition)
      unsupported(schema, "a count of more than limits.repetition = " + std::to_string(limits().repetition));
    return static_cast<std::int32_t>(n);
  }

  /// A pattern as an expression, its one repetition bounded by the lengths; -1: it has no such form.
  SLUICE_LAZY Id repeated(JsonValue const& pattern, Flat const& flat) {
    auto tree = read_pattern(pattern, pattern.text);
    auto begins = false, ends = false;
    auto const whole = tree;
    if (!tree.take_anchors(begins, ends)) return -1;
    if (!begins && flat.least == 0 && flat.most < 0) {  // most of its states are met by any plain text
      try {
        auto const some = RegexAutomaton::of(whole, true, 1000);
        return some.full() ? texts_.string(0, -1) : texts_.string(some);
      } catch (std::length_error const&) {  // as a repetition, it is small
      }
    }
    auto const any = [&] { return tree.add({.kind = RegexTree::Kind::characters, .ranges = {{0, last_character}}}); };
    auto const rest = [&] { return tree.add({.kind = RegexTree::Kind::repeat, .parts = {any()}}); };
    std::vector<std::int32_t> parts;
    if (!begins) parts.push_back(rest());
    if (auto const& root = tree[tree.root]; root.kind == RegexTree::Kind::sequence)
      parts.insert(parts.end(), root.parts.begin(), root.parts.end());
    else parts.push_back(tree.root);
    if (!ends) parts.push_back(rest());
    if ((flat.least > 0 || flat.most >= 0) && !bounded(tree, parts, flat)) return -1;
    if (parts.empty()) return out_.text("\"\"");
    for (auto const& node : tree.nodes)
      if (node.kind == RegexTree::Kind::repeat) repetition((std::max)(node.minimum, node.maximum), pattern);
    tree.root = tree.add({.parts = std::move(parts)});
    auto const body =
        tree.write(out_, [&](std::vector<CharacterRange> const& ranges) { return texts_.characters(ranges); });
    return out_.sequence({out_.text("\""), body, out_.text("\"")});
  }
  SLUICE_LAZY static bool bounded(RegexTree& tree, std::vector<std::int32_t>& parts, Flat const& flat) {
    using Kind = RegexTree::Kind;
    std::int64_t fixed = 0;
    std::size_t variable = parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto const& node = tree[parts[i]];
      if (node.kind == Kind::characters) ++fixed;
      else if (node.kind == Kind::repeat && tree[node.parts[0]].kind == Kind::characters) {
        if (node.minimum == node.maximum) fixed += node.minimum;
        else if (variable < parts.size()) return false;
        else variable = i;
      } else return false;
    }
    auto node = variable < parts.size() ? tree[parts[variable]] : RegexTree::Node{.kind = Kind::repeat, .maximum = 0};
    auto const least = (std::max)(flat.least - fixed, std::int64_t{node.minimum});
    auto most = node.maximum < 0 ? std::int64_t{-1} : std::int64_t{node.maximum};
    if (flat.most >= 0) most = most < 0 ? flat.most - fixed : (std::min)(most, flat.most - fixed);
    constexpr std::int64_t large = 1 << 30;
    if (least > large || most > large) return false;
    if (flat.most >= 0 && flat.most < fixed) most = -2;
    if (most != -1 && most < least) {
      parts = {tree.add({.kind = Kind::choice})};  // nothing
      return true;
    }
    if (variable == parts.size()) return true;
    node.minimum = static_cast<std::int32_t>(least), node.maximum = static_cast<std::int32_t>(most);
    parts[variable] = tree.add(node);
    return true;
  }

  std::map<Texts, std::int32_t> number_rules_, string_rules_;
  std::map<std::string, std::int32_t> flat_rules_;
};

}  // namespace sluice::inline v0::detail
