// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rules for arrays that JSON schemas accept.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_objects.hpp>
#include <sluice/grammar/detail/json_value.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

class JsonArrays : public JsonObjects {
 protected:
  using JsonObjects::JsonObjects;

  SLUICE_LAZY Id array_of(Literals const& all_of, std::int32_t nesting) {
    std::vector<Id> choices;
    for (auto& clause : expand(all_of, array)) {
      auto const* const unique = clause.unique;
      if (unique != nullptr && (clause.most < 0 || clause.most > 1)) {
        if (auto const one = distinct(clause, nesting + 1)) choices.push_back(*one);
        else unsupported(*unique, "uniqueItems is supported for items of few values, or that cannot be equal");
        continue;
      }
      choices.push_back(Arrays{*this, clause, *all_of[0].schema, nesting + 1}.all());
    }
    return out_.choice(choices);
  }

 private:
  /// From which item on all are alike.
  static std::int64_t begun(Clause const& clause) {
    std::int64_t out = 0;
    for (auto const& one : clause.each) out = (std::max)(out, one.until < 0 ? one.from : one.until);
    for (auto const& one : clause.some) out = (std::max)(out, one.from);
    return out;
  }

  struct Arrays {
    using State = std::tuple<std::int64_t, std::uint32_t, std::vector<std::int64_t>>;  // item, demands met, found
    JsonArrays& x;
    Clause const& clause;
    JsonValue const& source;
    std::int32_t nesting;
    std::int64_t same = 0, least = 0, most = -1;
    std::map<State, Id> rules{};

    SLUICE_LAZY Id all() {
      least = clause.least, most = clause.most, same = begun(clause);
      if (most >= 0) same = (std::min)(same, most);
      if (clause.some.empty() && clause.contains.empty()) return simple();
      if (clause.some.size() > 16) x.unsupported(source, "asks too much of items, which is not supported");
      auto const count = clause.contains.size();
      auto const body = from(0, 0, std::vector<std::int64_t>(count));
      auto const wanted =
          std::any_of(clause.contains.begin(), clause.contains.end(), [](Atom const& c) { return c.from > 0; });
      return x.texts_.within("[", body, "]", least == 0 && clause.some.empty() && !wanted);
    }
    SLUICE_LAZY Id simple() {
      auto& out = x.out_;
      if (most == 0) return least == 0 ? x.texts_.within("[", out.empty(), "]", false) : out.nothing();
      auto const tail = x.rule_of(item(clause, same), nesting);
      Id rest = out.empty();                                // from item `same` on
      auto const done = (std::max<std::int64_t>)(same, 1);  // the first has no comma
      auto const repeated = [&](std::int64_t from) {
        auto const more = out.sequence({x.texts_.comma(), tail});
        return out.repeat(more, x.repetition((std::max<std::int64_t>)(least - from, 0), source),
                          most < 0 ? -1 : x.repetition(most - from, source));
      };
      auto const free = !x.is_nothing(tail) && (most < 0 || most > same);
      if (!free && least > same) return out.nothing();
      if (free && same == 0) rest = out.sequence({tail, repeated(done)});
      else if (free) rest = repeated(same);
      for (auto i = same; i-- > 0;) {
        auto const value = x.rule_of(item(clause, i), nesting);
        if (x.is_nothing(value)) {
          if (i < least) return out.nothing();
          rest = out.empty();
          continue;
        }
        rest = i == 0 ? out.sequence({value, rest}) : out.sequence({x.texts_.comma(), value, rest});
        if (i >= least && i > 0) rest = out.optional(rest);
        if (i % 64 == 63) rest = x.new_rule("from item " + std::to_string(i), rest);  // limits nesting
      }
      if (out[rest].kind == Expressions::Kind::sequence && out.parts(rest).empty())
        return x.texts_.within("[", rest, "]", false);
      return x.texts_.within("[", rest, "]", least == 0);
    }

    /// With demands and counts of items that fit.
    SLUICE_LAZY Id from(std::int64_t i, std::uint32_t met, std::vector<std::int64_t> const& found) {
      auto const counted = most >= 0 || i < least || i < same || i == 0;
      auto const at = counted ? i : (std::max)({least, same, std::int64_t{1}});
      auto const [it, fresh] = rules.try_emplace({at, met, found}, -1);
      if (!fresh) return it->second;
      auto& out = x.out_;
      auto const rule = out.add_rule("items");
      auto const here = it->second = out.call(rule);
      if (rules.size() > 50'000 || (i > 5000 && rules.size() > 5000))
        x.unsupported(source, "contains, minItems and maxItems lead to too many cases");
      std::vector<Id> choices;
      auto complete = i >= least && met == (std::uint32_t{1} << clause.some.size()) - 1;
      for (std::size_t c = 0; c < found.size(); ++c) complete = complete && found[c] >= clause.contains[c].from;
      if (complete && i > 0) choices.push_back(out.empty());
      if (most < 0 || i < most) {
        auto const sets = std::uint32_t{1} << clause.contains.size();
        std::uint32_t open = 0;
        for (std::size_t s = 0; s < clause.some.size(); ++s)
          if (i >= clause.some[s].from) open |= std::uint32_t{1} << s;
        open &= ~met;
        for (std::uint32_t fit = 0; fit < sets; ++fit)
          for (auto meets = open;; meets = (meets - 1) & open) {
            one(i, met, found, fit, meets, choices);
            if (meets == 0) break;
          }
      }
      out.rules[JsonArrays::at(rule)].expression = out.choice(choices);
      return here;
    }
    /// The next item fits these schemas of `contains`, and not the others.
    SLUICE_LAZY void one(std::int64_t i, std::uint32_t met, std::vector<std::int64_t> found, std::uint32_t fit,
                         std::uint32_t meets, std::vector<Id>& choices) {
      auto values = item(clause, i);
      for (std::size_t c = 0; c < found.size(); ++c) {
        auto const& [kind, schema, names, name, none, low, high, path, from_where] = clause.contains[c];
        auto const in = (fit >> c & 1) != 0;
        if (high < 0 && found[c] >= low) {  // no longer of interest
          if (in) return;
          continue;
        }
        if (in && ++found[c] > (high < 0 ? low : high)) return;
        if (in) add(values, {schema});
        else if (high >= 0) add(values, {opposite(schema)});
      }
      for (std::size_t s = 0; s < clause.some.size(); ++s)
        if ((meets >> s & 1) != 0) add(values, clause.some[s].values);
      if (x.empty(values)) return;
      auto const value = x.rule_of(std::move(values), nesting);
      if (x.is_nothing(value)) return;
      auto const rest = from(i + 1, met | meets, found);
      choices.push_back(i == 0 ? x.out_.sequence({value, rest}) : x.out_.sequence({x.texts_.comma(), value, rest}));
    }
  };

  /// Items that are all different; nothing, where that is not regular or takes too many states.
  SLUICE_LAZY std::optional<Id> distinct(Clause& clause, std::int32_t nesting) {
    if (!clause.some.empty() || !clause.contains.empty()) return {};
    auto const same = begun(clause);
    if (same > 100) return {};
    std::vector<Literals> kinds;
    for (std::int64_t i = 0; i <= same; ++i) kinds.push_back(item(clause, i));
    // Items at different places that never are equal, and at most one of the rest.
    auto const end = clause.most < 0 ? same + 2 : clause.most;
    auto const last_free = empty(kinds.back());
    if (end <= same + 1 || last_free) {
      auto apart = true;
      auto const size = static_cast<std::size_t>((std::min)(end, last_free ? same : same + 1));
      for (std::size_t i = 0; apart && i < size; ++i)
        for (std::size_t k = 0; apart && k < i; ++k) {
          auto both = kinds[i];
          add(both, kinds[k]);
          apart = !both.empty() && empty(both);
        }
      if (apart) return Arrays{*this, clause, *clause.unique, nesting}.all();
    }
    std::map<std::string, std::pair<std::size_t, JsonValue const*>> values;
    std::vector<std::vector<std::size_t>> of;
    for (auto const& one : kinds) {
      of.emplace_back();
      if (!one.empty() && empty(one)) continue;
      auto const list = one.empty() ? std::nullopt : finite(one);
      if (!list) return {};
      for (auto const* const value : *list)
        of.back().push_back(values.try_emplace(json_key(*value), values.size(), value).first->second.first);
    }
    if (values.size() > 64 || subsets(values.size(), clause.most) > most_subsets) return {};
    std::vector<Id> texts(values.size());
    for (auto const& [key, one] : values) texts[one.first] = texts_.exactly(*one.second);
    std::map<std::pair<std::int64_t, std::uint64_t>, Id> rules;
    auto const from = [&](auto const& self, std::int64_t i, std::uint64_t used) -> Id {
      auto const [it, fresh] = rules.try_emplace({i, used}, -1);
      if (!fresh) return it->second;
      std::vector<Id> choices;
      if (i >= clause.least && i > 0) choices.push_back(out_.empty());
      if (clause.most < 0 || i < clause.most)
        for (auto const v : of[static_cast<std::size_t>((std::min)(i, same))]) {
          if ((used >> v & 1) != 0) continue;
          auto const rest = self(self, i + 1, used | std::uint64_t{1} << v);
          choices.push_back(i == 0 ? out_.sequence({texts[v], rest}) : out_.sequence({texts_.comma(), texts[v], rest}));
        }
      return rules[{i, used}] = new_rule("different items", out_.choice(choices));
    };
    return texts_.within("[", from(from, 0, 0), "]", clause.least == 0);
  }
  static constexpr std::int64_t most_subsets = 5000;
  /// How many sets of at most so many of `count` values there are, as far as they are not too many.
  static std::int64_t subsets(std::size_t count, std::int64_t most) {
    std::int64_t sum = 1, own = 1;
    for (std::int64_t k = 1; k <= static_cast<std::int64_t>(count) && (most < 0 || k <= most) && sum <= most_subsets;
         ++k)
      own = own * (static_cast<std::int64_t>(count) - k + 1) / k, sum += own;
    return sum;
  }
  /// All values that fit, if they are few.
  SLUICE_LAZY std::optional<std::vector<JsonValue const*>> finite(Literals const& all_of) {
    if (auto list = listed(all_of)) return list;
    auto const some = may_be(all_of);
    if ((some & ~(null | boolean | integer)) != 0) return {};
    std::vector<JsonValue const*> out;
    for (auto const& one : simple_)
      if (fits(all_of, one)) out.push_back(&one);
    if ((some & integer) == 0) return out;
    std::int64_t low = -large, high = large;
    for (auto const& one : all_of) find_bounds(one, low, high);
    if (high - low > 64) return {};
    for (auto n = low; n <= high; ++n) {
      auto& value = integers_[n];
      value.kind = Kind::number, value.text = std::to_string(n);
      if (fits(all_of, value)) out.push_back(&value);
    }
    return out;
  }
  /// Bounds of integers, as far as keywords show them at a glance.
  SLUICE_LAZY void find_bounds(Literal const& one, std::int64_t& low, std::int64_t& high) {
    if (one.negated || !one.schema->is(Kind::object)) return;
    auto const& its = schema(*one.schema);
    for (auto const& part : its.parts) {
      if (part.word == Word::ref) find_bounds_behind(target(its, part, one.scope), one.scope, low, high);
      if (!part.value->is(Kind::number)) continue;
      auto const x = JsonNumber::of(part.value->text);
      if (x.exponent > 6 || x.digits.size() > 6 || x.exponent < -6) continue;
      auto const bound = std::stod(part.value->text);
      if (part.word == Word::least || part.word == Word::above)
        low = (std::max)(low, static_cast<std::int64_t>(std::floor(bound)));
      if (part.word == Word::most || part.word == Word::below)
        high = (std::min)(high, static_cast<std::int64_t>(std::ceil(bound)));
    }
  }
  SLUICE_LAZY void find_bounds_behind(JsonValue const& value, std::int32_t scope, std::int64_t& low,
                                      std::int64_t& high) {
    if (++behind_refs_ > 50) return;
    find_bounds({&value, false, scope}, low, high);
    --behind_refs_;
  }
  static constexpr std::int64_t large = std::int64_t{1} << 40;

  int behind_refs_ = 0;
  std::map<std::int64_t, JsonValue> integers_;
  std::vector<JsonValue> simple_ = [] {
    std::vector<JsonValue> out(3);
    out[1].kind = out[2].kind = Kind::boolean;
    out[2].truth = true;
    return out;
  }();
};

}  // namespace sluice::inline v0::detail
