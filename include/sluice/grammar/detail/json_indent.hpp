// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines of JSON that are indented by how deep they lie.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Copies rules for each depth at which they are used, since a grammar cannot count brackets to repeat as many blanks on
/// each line. Values that lie deeper than `deepest` have no text.
class JsonIndent {
 public:
  using Id = Expressions::Id;
  static constexpr std::int32_t deepest = 24;

  /// \param line    the expression that stands for a new line
  /// \param deeper  [expression]: whether its lines lie one deeper than those around it
  SLUICE_LAZY JsonIndent(Expressions const& from, Id line, std::vector<std::uint8_t> deeper, std::int32_t width,
                         Expressions& out)
      : from_(from), line_(line), deeper_(std::move(deeper)), width_(width), out_(out) {
    deeper_.resize(at(from.size()));
    find_dependent();
  }
  /// The rule for the outermost value.
  SLUICE_LAZY std::int32_t copied(std::int32_t root) {
    auto const out = rule_of(root, 0);
    for (std::size_t i = 0; i < open_.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const [rule, depth, made] = open_[i];
      auto const body = copy(from_.rules[at(rule)].expression, depth);
      out_.rules[at(made)].expression = body;
    }
    return out;
  }

 private:
  using Kind = Expressions::Kind;
  struct Open {
    std::int32_t rule, depth, made;
  };
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  /// Finds the expressions whose texts depend on how deep they are.
  SLUICE_LAZY void find_dependent() {
    auto const count = at(from_.size());
    Users parents(count), callers(from_.rules.size()), rules(count);
    std::vector<Id> open;
    dependent_.assign(count, 0);
    auto const visit = [&](Id id) {
      if (std::exchange(dependent_[at(id)], std::uint8_t{1}) == 0) open.push_back(id);
    };
    for (Id id = 0; id < from_.size(); ++id) {
      if (from_[id].kind == Kind::call) callers.add(from_[id].rule, id);
      for (auto const part : from_.parts(id)) parents.add(part, id);
    }
    for (std::size_t r = 0; r < from_.rules.size(); ++r)
      if (from_.rules[r].expression >= 0) rules.add(from_.rules[r].expression, static_cast<std::int32_t>(r));
    parents.sort(), callers.sort(), rules.sort();
    if (line_ >= 0) visit(line_);
    while (!open.empty()) {
      auto const id = open.back();
      open.pop_back();
      parents.for_each(id, visit);
      rules.for_each(id, [&](std::int32_t rule) { callers.for_each(rule, visit); });
    }
  }

  SLUICE_LAZY std::int32_t rule_of(std::int32_t rule, std::int32_t depth) {
    auto const& own = from_.rules[at(rule)];
    auto const expression = own.expression;
    if (expression >= 0 && dependent_[at(expression)] == 0) depth = 0;
    auto const [it, fresh] = rules_.try_emplace({rule, depth}, -1);
    if (fresh) {
      it->second = out_.add_rule(own.name);
      out_.rules[at(it->second)].place = own.place;
      if (expression >= 0) open_.push_back({rule, depth, it->second});
    }
    return it->second;
  }
  SLUICE_LAZY Id copy(Id id, std::int32_t depth) {
    if (dependent_[at(id)] == 0) depth = 0;
    if (auto const known = made_.find({id, depth}); known != made_.end()) return known->second;
    auto const made = make(id, depth);
    return made_[{id, depth}] = made;
  }
  SLUICE_LAZY Id make(Id id, std::int32_t depth) {
    if (id == line_) return out_.text("\n" + std::string(at(width_ * depth), ' '));
    if (deeper_[at(id)] != 0 && ++depth > deepest) return out_.nothing();
    auto const e = from_[id];
    std::vector<Id> parts;
    parts.reserve(at(e.count));
    for (auto const part : from_.parts(id)) parts.push_back(copy(part, depth));
    switch (e.kind) {
      case Kind::nothing: return out_.nothing();
      case Kind::bytes: return out_.byte(e.range.first, e.range.last);
      case Kind::sequence: return out_.sequence(parts);
      case Kind::choice: return out_.choice(parts);
      case Kind::repeat: return out_.repeat(parts[0], e.minimum, e.maximum);
      case Kind::call: return out_.call(rule_of(e.rule, depth));
      case Kind::automaton: return out_.automaton(from_.automaton_of(e));
      case Kind::token: return out_.token(from_.terminals()[at(e.rule)]);
    }
    return id;
  }

  Expressions const& from_;
  Id line_;
  std::vector<std::uint8_t> deeper_, dependent_;  // [expression]
  std::int32_t width_;
  Expressions& out_;
  std::map<std::pair<Id, std::int32_t>, Id> made_;                       // [expression, depth]
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> rules_;  // [rule, depth]
  std::vector<Open> open_;
};

}  // namespace sluice::inline v0::detail
