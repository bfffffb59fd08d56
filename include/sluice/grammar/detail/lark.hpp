// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grammars in Lark's syntax as rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_schema_rules.hpp>
#include <sluice/grammar/detail/lark_syntax.hpp>
#include <sluice/grammar/detail/left_recursion.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/regex_automaton.hpp>
#include <sluice/grammar/detail/regex_classes.hpp>
#include <sluice/grammar/detail/regex_tree.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Rules are context-free, and what is ignored may stand behind each text, regular expression, terminal and token in them.
/// Terminals are regular, and nothing is ignored within.
class Lark {
 public:
  using Id = Expressions::Id;
  /// Rules that are there already are grammars that others call as @name.
  /// \returns  a rule
  SLUICE_LAZY static std::int32_t parse(std::string_view text, JsonSchemaOptions const& schemas, Expressions& out) {
    return Lark(text, schemas, out).grammar();
  }

 private:
  using Kind = LarkGrammar::Kind;
  SLUICE_LAZY Lark(std::string_view text, JsonSchemaOptions const& schemas, Expressions& out)
      : in_("grammar", text, out.limits()),
        text_(text),
        schemas_(schemas),
        out_(out),
        given_(static_cast<std::int32_t>(out.rules.size())),
        g_(LarkReader::read(text, out.limits())),
        rules_(g_.definitions.size(), -1),
        open_(g_.definitions.size()),
        is_set_(g_.definitions.size(), -1) {}
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY std::int32_t grammar() {
    auto const start = g_.numbers.find("start");
    if (start == g_.numbers.end()) in_.fail_at(0, "there is no rule start");
    if (!g_.ignored.empty()) {
      std::vector<Id> choices;
      choices.reserve(g_.ignored.size());
      for (auto const one : g_.ignored) choices.push_back(terminal(one));
      ignored_ = out_.add_rule("%ignore");
      out_.rules.back().captured =
          std::ranges::any_of(g_.definitions, [](auto const& one) { return one.attributes.captured; });
      auto const all = out_.repeat(out_.choice(choices), 0, g_.ignore_once ? 1 : -1);
      out_.rules[at(ignored_)].expression = all;
    }
    auto root = rule(start->second);
    for (std::size_t done = 0; done < wanted_.size(); ++done) {  // NOLINT(modernize-loop-convert): grows
      auto const number = wanted_[done];
      auto const body = definition(number);
      out_.rules[at(rules_[at(number)])].expression = body;
    }
    if (g_.ignore_first && ignored_ >= 0) {
      auto const first = out_.sequence({out_.call(ignored_), out_.call(root)});
      root = out_.add_rule("start");
      out_.rules[at(root)].expression = first;
    }
    out_.source = text_;
    LeftRecursion::remove(out_);
    return root;
  }

  /// The rule of a definition, which is written later.
  SLUICE_LAZY std::int32_t rule(std::int32_t number) {
    if (rules_[at(number)] < 0) {
      rules_[at(number)] = out_.add_rule(g_.definitions[at(number)].name);
      auto const& own = g_.definitions[at(number)];
      auto const& how = own.attributes;
      auto& made = out_.rules.back();
      made.place = own.place, made.captured = how.captured;
      if (how.captured) made.capture = how.capture.empty() ? own.name : how.capture;
      if (how.captured && how.suffix >= 0) {
        auto const& end = g_[how.suffix];
        if (end.kind != Kind::text || !end.flags.empty())
          in_.fail_at(end.place,
                      "[capture, suffix]: a suffix that is left out of a capture is a text in quotation marks");
        made.capture_suffix = static_cast<std::int32_t>(end.text.size());
      }
      wanted_.push_back(number);
    }
    return rules_[at(number)];
  }
  SLUICE_LAZY Id definition(std::int32_t number) {
    auto const& own = g_.definitions[at(number)];
    if (own.attributes.regular()) return behind(within(own.place, [&] { return regular(own); }));
    return LarkGrammar::is_terminal(own.name) ? terminal(own.body) : expression(own.body);
  }
  SLUICE_LAZY std::int32_t named(LarkGrammar::Node const& node) const {
    auto const found = g_.numbers.find(node.text);
    if (found == g_.numbers.end()) in_.fail_at(node.place, node.text + " is not defined");
    return found->second;
  }

  // Within rules.
  SLUICE_LAZY Id behind(Id lexeme) { return ignored_ < 0 ? lexeme : out_.sequence({lexeme, out_.call(ignored_)}); }
  SLUICE_LAZY Id expression(std::int32_t id) {
    auto const& node = g_[id];
    std::vector<Id> parts;
    if (node.kind == Kind::sequence || node.kind == Kind::choice || node.kind == Kind::repeat)
      for (auto const part : node.parts) parts.push_back(expression(part));
    switch (node.kind) {
      case Kind::sequence: return out_.sequence(parts);
      case Kind::choice: return out_.choice(parts);
      case Kind::repeat: return out_.repeat(parts[0], node.minimum, node.maximum);
      case Kind::name: {
        auto const called = out_.call(rule(named(node)));
        return LarkGrammar::is_terminal(node.text) ? behind(called) : called;
      }
      case Kind::token: return behind(out_.token(node.token));
      case Kind::json: {
        Expressions own(out_.limits());
        auto const root = within(node.place, [&] { return JsonSchema::compile(node.text, schemas_, own, nullptr); });
        return behind(out_.call(out_.include(own) + root));
      }
      case Kind::grammar:
        for (std::int32_t r = 0; r < given_; ++r)
          if (out_.rules[at(r)].name == node.text) return behind(out_.call(r));
        in_.fail_at(node.place, "@" + node.text + ": no grammar of that name is given");
      case Kind::text:
        if (node.text.empty()) return out_.empty();
        [[fallthrough]];
      default: return behind(terminal(id));
    }
  }

  // Terminals.
  SLUICE_LAZY Id terminal(std::int32_t id) {
    if (is_set(id)) return lowered(automaton(id));
    RegexTree tree;
    tree.root = grow(id, tree);
    return within(g_[id].place, [&] { return Regex::write("a terminal", tree, out_); });
  }
  SLUICE_LAZY Id lowered(TextAutomaton const& texts) {
    return texts.empty() ? out_.nothing() : out_.automaton(TextBytes::utf8(texts));
  }
  /// Whether it is written as a set of texts.
  SLUICE_LAZY bool is_set(std::int32_t id) {
    auto const& node = g_[id];
    if (node.kind == Kind::both || node.kind == Kind::but || node.kind == Kind::parts) return true;
    if (node.kind == Kind::choice)
      return std::ranges::any_of(node.parts, [&](std::int32_t part) { return is_set(part); });
    if (node.kind != Kind::name) return false;
    auto& known = is_set_[at(named(node))];
    if (known < 0) known = opened(node, [&](std::int32_t body) { return is_set(body); }) ? 1 : 0;
    return known == 1;
  }
  SLUICE_LAZY TextAutomaton automaton(std::int32_t id) {
    auto const& node = g_[id];
    if (node.kind == Kind::but) return TextAutomaton::anything() - automaton(node.parts[0]);
    if (node.kind == Kind::name) {
      auto const number = named(node);
      auto const known = sets_.find(number);
      if (known != sets_.end()) return known->second;
      return sets_[number] = opened(node, [&](std::int32_t body) { return automaton(body); });
    }
    if (node.kind == Kind::both || node.kind == Kind::choice) {
      auto out = automaton(node.parts[0]);
      for (std::size_t i = 1; i < node.parts.size(); ++i)
        out = within(node.place, [&] {
          auto const next = automaton(node.parts[i]);
          return node.kind == Kind::both ? out & next : out | next;
        });
      return out;
    }
    RegexTree tree;
    tree.root = grow(id, tree);
    return of(tree, node.place);
  }
  SLUICE_LAZY TextAutomaton of(RegexTree const& tree, std::size_t place) {
    return within(place, [&] { return RegexAutomaton::of(tree, false); });
  }
  /// A rule with attributes.
  SLUICE_LAZY Id regular(LarkGrammar::Definition const& own) {
    auto const& [lazy, suffix, stop, max_tokens, max_characters, captured, capture] = own.attributes;
    auto const end = suffix < 0 ? stop : suffix;
    TextAutomaton texts;
    if (end < 0) texts = automaton(own.body);
    else {
      RegexTree tree;
      auto const body = grow(own.body, tree);
      tree.root = tree.add({.kind = RegexTree::Kind::sequence, .parts = {body, grow(end, tree)}});
      texts = of(tree, own.place);
    }
    if (lazy || end >= 0) texts = first_ends(std::move(texts));
    if (stop >= 0) {
      auto const stops = automaton(stop);
      if (!stops.empty() && stops.states[0].accepts)
        in_.fail_at(g_[stop].place, "stop may be empty: leave it out; an output ends where the grammar does");
      texts = texts.without_end(stops) & automaton(own.body);
    }
    if (texts.empty()) return out_.nothing();
    if (max_tokens < 0) return out_.automaton(TextBytes::utf8(texts, max_characters));
    auto bytes = TextBytes::in_tokens(texts, max_tokens, max_characters,
                                      own.name + "[max_tokens=" + std::to_string(max_tokens) + "]");
    return bytes.states.empty() ? out_.nothing() : out_.automaton(std::move(bytes));
  }
  /// Texts up to the first place where one ends.
  SLUICE_LAZY static TextAutomaton first_ends(TextAutomaton texts) {
    for (auto& state : texts.states)
      if (state.accepts) state.edges.clear();
    return std::move(texts).trimmed().combined(TextAutomaton::anything(), std::logical_and{});
  }
  /// Calls take() with the body of a terminal, which must not contain itself.
  template <class Take>
  auto opened(LarkGrammar::Node const& node, Take const& take) {
    auto const number = named(node);
    auto const& own = g_.definitions[at(number)];
    if (!LarkGrammar::is_terminal(own.name))
      in_.fail_at(node.place, own.name + " is a rule: a terminal has none within");
    if (open_[at(number)] != 0) in_.fail_at(node.place, own.name + " contains itself, which a terminal must not");
    if (depth_ >= out_.limits().nesting)
      in_.fail_at(node.place,
                  "terminals are nested deeper than limits.nesting = " + std::to_string(out_.limits().nesting));
    open_[at(number)] = 1, ++depth_;
    auto out = take(own.body);
    open_[at(number)] = 0, --depth_;
    return out;
  }

  SLUICE_LAZY std::int32_t grow(std::int32_t id, RegexTree& tree) {
    using Tree = RegexTree::Kind;
    auto const& node = g_[id];
    if (tree.nodes.size() > at(out_.limits().size))
      in_.fail_at(node.place, "more places than limits.size = " + std::to_string(out_.limits().size));
    auto const characters = [&](std::vector<CharacterRange> ranges, bool both_cases) {
      if (both_cases) fold(ranges);
      normalise(ranges);
      return tree.add({.kind = Tree::characters, .ranges = std::move(ranges)});
    };
    auto const text = [&](std::string_view its, bool both_cases) {
      std::vector<std::int32_t> parts;
      for (auto const c : decoded(its)) parts.push_back(characters({{c, c}}, both_cases));
      return tree.add({.kind = Tree::sequence, .parts = std::move(parts)});
    };
    std::vector<std::int32_t> parts;
    switch (node.kind) {
      case Kind::text: return text(node.text, !node.flags.empty());
      case Kind::range: return characters({{node.first, node.last}}, false);
      case Kind::name: return opened(node, [&](std::int32_t body) { return grow(body, tree); });
      case Kind::regex: return graft(node, tree);
      case Kind::sequence:
      case Kind::choice:
        for (auto const part : node.parts) parts.push_back(grow(part, tree));
        return tree.add({.kind = node.kind == Kind::choice ? Tree::choice : Tree::sequence, .parts = std::move(parts)});
      case Kind::repeat:
        parts.push_back(grow(node.parts[0], tree));
        return tree.add(
            {.kind = Tree::repeat, .parts = std::move(parts), .minimum = node.minimum, .maximum = node.maximum});
      case Kind::parts: {
        auto rest = tree.add({.kind = Tree::sequence});
        std::vector<std::int32_t> ends{rest};
        for (auto i = node.chunks.size(); i-- > 0;) {
          auto const all = tree.add({.kind = Tree::sequence, .parts = {text(node.chunks[i], false), rest}});
          rest = tree.add({.kind = Tree::repeat, .parts = {all}, .minimum = 0, .maximum = 1});
          ends.push_back(rest);
        }
        return tree.add({.kind = Tree::choice, .parts = std::move(ends)});
      }
      case Kind::token: in_.fail_at(node.place, node.token.written + ": a terminal has no tokens within");
      case Kind::json: in_.fail_at(node.place, "%json: a terminal has none within");
      case Kind::grammar: in_.fail_at(node.place, "@" + node.text + ": a terminal has no grammars within");
      case Kind::both:
      case Kind::but: break;
    }
    in_.fail_at(node.place,
                "& and ~ are supported at the top of terminals and their alternatives, not within a sequence or a "
                "repetition");
  }
  SLUICE_LAZY std::int32_t graft(LarkGrammar::Node const& node, RegexTree& tree) {
    auto const pattern = node.flags.empty() ? node.text : "(?" + node.flags + ")" + node.text;
    auto own = within(node.place, [&] { return Regex::tree("/" + node.text + "/", pattern, out_.limits()); });
    auto whole = own;
    if (auto begins = true, ends = true; whole.take_anchors(begins, ends)) own = std::move(whole);
    auto const before = static_cast<std::int32_t>(tree.nodes.size());
    for (auto& one : own.nodes) {
      for (auto& part : one.parts) part += before;
      tree.add(std::move(one));
    }
    return own.root + before;
  }

  /// Says where in the grammar something is wrong.
  template <class F>
  auto within(std::size_t place, F const& f) const {
    constexpr std::string_view ours = "sluice: ";
    try {
      return f();
    } catch (std::invalid_argument const& e) {
      std::string_view why = e.what();
      if (why.starts_with("sluice: grammar, line")) throw;
      if (why.starts_with(ours)) why.remove_prefix(ours.size());
      in_.fail_at(place, std::string(why));
    } catch (std::length_error const& e) {
      in_.fail_at(place, e.what());
    }
  }

  SourceReader in_;
  std::string_view text_;
  JsonSchemaOptions const& schemas_;
  Expressions& out_;
  std::int32_t given_;  // rules
  LarkGrammar g_;
  std::vector<std::int32_t> rules_;  // [definition]
  std::vector<std::uint8_t> open_;   // [definition]: it is being read
  std::vector<std::int8_t> is_set_;  // [definition]; -1: not known yet
  std::unordered_map<std::int32_t, TextAutomaton> sets_{};
  std::int32_t depth_ = 0;
  std::vector<std::int32_t> wanted_{};
  std::int32_t ignored_ = -1;  // a rule
};

}  // namespace sluice::inline v0::detail
