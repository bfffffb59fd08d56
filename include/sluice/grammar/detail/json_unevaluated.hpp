// SPDX-License-Identifier: Apache-2.0
/// \file
/// unevaluatedProperties and unevaluatedItems.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/json_ways.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// What other keywords evaluate depends on which schemas hold, so each case is a way of its own.
class JsonUnevaluated : public JsonWays {
 protected:
  using JsonWays::JsonWays;

  SLUICE_LAZY Ways unevaluated(Part const& part, Place const& at, std::uint32_t type, bool negated) {
    auto const items = part.word == Word::other_items;
    if (items != (type == array)) return negated ? Ways{} : Ways{{}};
    items_ = items;
    Ways out;
    for (auto& mark : marks(*at.of, at.scope, at, true, 0)) {
      if (!mark.all) {
        Atom rest{.kind = items ? (negated ? Atom::some_item : Atom::each_item) : (negated ? Atom::some : Atom::each),
                  .values = {within(*part.value, negated, at)},
                  .path = at.path,
                  .source = part.value};
        if (items) {
          rest.from = mark.first, rest.until = -1;
          if (!mark.fitting.empty()) rest.values = {fitting(mark, *part.value, at, negated)};
        } else {
          std::sort(mark.names.listed.begin(), mark.names.listed.end());
          mark.names.others = true;
          rest.names = std::make_shared<Names const>(std::move(mark.names));
        }
        mark.way.push_back(std::move(rest));
      } else if (negated) continue;
      out.push_back(std::move(mark.way));
    }
    return out;
  }

 private:
  /// A case: what holds in it, and what has been evaluated then.
  struct Mark {
    Way way{};
    Names names{};
    bool all = false;
    std::int64_t first = 0;                   // items
    std::vector<JsonValue const*> fitting{};  // items that fit one of these
    bool nothing() const {
      return !all && names.listed.empty() && names.patterns.empty() && first == 0 && fitting.empty();
    }
  };
  using Marks = std::vector<Mark>;

  static Mark joined(Mark a, Mark const& b) {
    a.way.insert(a.way.end(), b.way.begin(), b.way.end());
    a.names.listed.insert(a.names.listed.end(), b.names.listed.begin(), b.names.listed.end());
    a.names.patterns.insert(a.names.patterns.end(), b.names.patterns.begin(), b.names.patterns.end());
    a.all = a.all || b.all;
    a.first = (std::max)(a.first, b.first);
    a.fitting.insert(a.fitting.end(), b.fitting.begin(), b.fitting.end());
    return a;
  }
  SLUICE_LAZY Marks product(Marks const& a, Marks const& b, Place const& at) const {
    if (a.size() * b.size() > 300)
      unsupported(*at.of->source, "unevaluatedProperties or unevaluatedItems beside that many cases is not supported");
    Marks out;
    for (auto const& x : a)
      for (auto const& y : b) out.push_back(joined(x, y));
    return out;
  }

  SLUICE_LAZY Marks marks(JsonValue const& value, std::int32_t scope, Place const& at, int depth) {
    if (value.is(Kind::boolean)) return {{}};
    if (depth > 30) unsupported(value, "unevaluatedProperties or unevaluatedItems beside references that deep");
    auto const& of = schema(value);
    return marks(of, enter(scope, of), at, false, depth);
  }
  SLUICE_LAZY Marks marks(Schema const& of, std::int32_t scope, Place const& at, bool top, int depth) {
    Marks out{{}};
    auto const sub = [&](JsonValue const& one) { return marks(one, scope, at, depth + 1); };
    auto const lit = [&](JsonValue const& one, bool no) {
      return Mark{.way = {{.one = {&one, no, scope}, .path = at.path, .source = &one}}};
    };
    auto const silent = [](Marks const& some) {
      return std::all_of(some.begin(), some.end(), [](Mark const& m) { return m.nothing(); });
    };
    for (auto const& part : of.parts) {
      auto const& value = *part.value;
      switch (part.word) {
        case Word::ref:
        case Word::dynamic_ref:
        case Word::recursive_ref: out = product(out, sub(target(of, part, scope)), at); break;
        case Word::all_of:
          for (auto const& one : list(value)) out = product(out, sub(one), at);
          break;
        case Word::any_of:
        case Word::one_of:
          for (auto const& one : list(value)) {
            auto its = sub(one);
            if (silent(its)) continue;
            its = product({lit(one, false)}, its, at);
            its.push_back(lit(one, true));
            out = product(out, its, at);
          }
          break;
        case Word::condition: {
          auto const *then = own(of, "then"), *otherwise = own(of, "else");
          auto yes = sub(value), no = Marks{{}};
          if (then != nullptr) yes = product(yes, sub(*then), at);
          if (otherwise != nullptr) no = sub(*otherwise);
          if (silent(yes) && silent(no)) break;
          yes = product({lit(value, false)}, yes, at);
          no = product({lit(value, true)}, no, at);
          yes.insert(yes.end(), no.begin(), no.end());
          out = product(out, yes, at);
          break;
        }
        case Word::dependencies:
          for (auto const& [name, one] : map(value)) {
            if (items_ || one.is(Kind::array)) continue;
            auto its = product({Mark{.way = {present(name, at)}}}, sub(one), at);
            its.push_back({.way = {absent(name, at)}});
            out = product(out, its, at);
          }
          break;
        case Word::properties:
          if (items_) break;
          for (auto& one : out) {
            list_names(of, one.names);
            one.all = one.all || own(of, "additionalProperties") != nullptr;
          }
          break;
        case Word::items: {
          if (!items_) break;
          auto const [first, rest] = items(of);
          for (auto& one : out) {
            if (first != nullptr) one.first = (std::max)(one.first, static_cast<std::int64_t>(first->items.size()));
            one.all = one.all || rest != nullptr;
          }
          break;
        }
        case Word::contains:
          if (items_ && draft(of) >= 2020)
            for (auto& one : out) one.fitting.push_back(&value);
          break;
        case Word::other_properties:
          for (auto& one : out) one.all = one.all || (!top && !items_);
          break;
        case Word::other_items:
          for (auto& one : out) one.all = one.all || (!top && items_);
          break;
        default: break;
      }
    }
    return out;
  }

  /// The items behind the first that no keyword evaluates fit `rest`, and the others fit what evaluates them.
  SLUICE_LAZY Literal fitting(Mark const& mark, JsonValue const& rest, Place const& at, bool negated) {
    JsonValue schema, choices;
    schema.kind = Kind::object, choices.kind = Kind::array, schema.place = rest.place;
    for (auto const* const one : mark.fitting) choices.items.push_back(*one);
    choices.items.push_back(rest);
    schema.members.emplace_back("anyOf", std::move(choices));
    return {&keep(std::move(schema), *at.of), negated, at.scope};
  }

  bool items_ = false;
};

}  // namespace sluice::inline v0::detail
