// SPDX-License-Identifier: Apache-2.0
/// \file
/// Boosted phrases in a request.
#pragma once

#include <text/bias.hpp>
#include <text/json.hpp>

#include <cmath>
#include <cstddef>
#include <http/fields.hpp>
#include <string>
#include <vector>

namespace serve {

inline constexpr std::size_t most_biased = 10'000;  ///< phrases of a request

/// The fields `bias`, a list of {"phrase": text, "boost": nats}, or {"phrase": text, "per_token": nats}, and `bias_once`.
struct BiasField {
  std::vector<text::BiasTerm> terms{};
  bool once = false;

  BiasField() = default;
  /// \throws BadField  for invalid ones
  explicit BiasField(Fields& fields) {
    auto const flag = fields.flag("bias_once");
    auto const* const list = fields.find("bias");
    if (list == nullptr && flag) throw BadField("bias_once", "bias_once has no effect without bias");
    if (list == nullptr) return;
    once = flag.value_or(false);
    if (!list->is_array()) Fields::refuse("bias", *list, "a list of objects");
    if (list->size() > most_biased)
      throw BadField("bias",
                     "bias has " + std::to_string(list->size()) + " phrases, more than " + std::to_string(most_biased));
    for (auto const& one : *list) add(one, "bias[" + std::to_string(terms.size()) + "]");
  }

 private:
  void add(Json const& one, std::string const& name) {
    if (!one.is_object()) Fields::refuse(name, one, "an object with phrase, and boost or per_token");
    auto const phrase = one.find("phrase");
    if (phrase == one.end()) throw BadField(name, name + " has no phrase");
    if (!phrase->is_string()) Fields::refuse(name + ".phrase", *phrase, "a string");
    auto boost = 1.0f;
    auto per_token = true, given = false;
    for (auto const& [key, value] : one.items()) {
      if (key == "phrase") continue;
      auto const member = name + "." + text::shortened(key);
      if (key != "boost" && key != "per_token") throw BadField(member, member + " is not a known field");
      if (given) throw BadField(name, name + " has both boost and per_token");
      if (!value.is_number() || !std::isfinite(value.get<float>())) Fields::refuse(member, value, "a number");
      boost = value.get<float>(), per_token = key == "per_token", given = true;
    }
    try {
      terms.push_back(text::bias_term(phrase->get<std::string>(), boost, per_token, name));
    } catch (text::InputError const& error) {
      throw BadField(name, error.what());
    }
  }
};

}  // namespace serve
