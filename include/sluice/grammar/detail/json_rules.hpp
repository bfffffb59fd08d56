// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules for what JSON schemas ask of a value.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_clauses.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Rules for conjunctions of schemas: each distinct one gets a rule, so schemas may be recursive.
class JsonRules : public JsonClauses {
 protected:
  using JsonClauses::JsonClauses;
  struct Waiting {
    std::int32_t rule;
    Literals all_of;
    std::int32_t nesting;
  };

  SLUICE_LAZY Id rule_of(Literals all_of, std::int32_t nesting) {
    std::erase_if(all_of, is_true);
    if (std::any_of(all_of.begin(), all_of.end(), is_false)) return out_.nothing();
    if (all_of.empty()) return texts_.any();
    auto const [it, fresh] = rules_.try_emplace(all_of, 0);
    if (fresh) {
      auto const& source = *all_of.front().schema;
      it->second = out_.add_rule("schema at byte " + std::to_string(source.place));
      waiting_.push_back({it->second, all_of, nesting});
      if (rules_.size() > 100'000) unsupported(source, "leads to more than 100000 combinations of schemas");
      if (nesting > 10'000) unsupported(source, "schemas lead too deep");
    }
    return out_.call(it->second);
  }
  SLUICE_LAZY Id new_rule(std::string name, Id body) {
    auto const rule = out_.add_rule(std::move(name));
    out_.rules[at(rule)].expression = body;
    return out_.call(rule);
  }
  bool is_nothing(Id id) const { return out_[id].kind == Expressions::Kind::nothing; }
  /// A count as far as repetitions can be written.
  SLUICE_LAZY std::int32_t repetition(std::int64_t n, JsonValue const& source) const {
    if (n > limits().repetition)
      unsupported(source, "a count of more than limits.repetition = " + std::to_string(limits().repetition));
    return static_cast<std::int32_t>(n);
  }

  std::map<Literals, std::int32_t> rules_;
  std::vector<Waiting> waiting_;
};

}  // namespace sluice::inline v0::detail
