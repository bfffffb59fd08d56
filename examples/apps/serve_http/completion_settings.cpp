// SPDX-License-Identifier: Apache-2.0
#include <text/json.hpp>

#include <algorithm>
#include <serve_http/settings.hpp>

namespace serve {

TranslationSettings completion_settings(Completion const& c, Fields& fields, Bounds const& bounds, Offer const& offer) {
  using translate::SearchName;
  if (c.echo) throw BadField("echo", "echo is not supported: the output is not in the language of the prompt");
  if (c.best_of && *c.best_of != c.choices)
    throw BadField("best_of", "best_of is not supported, unless it equals n: " + std::to_string(*c.best_of));
  if (auto const* const bias = fields.find("logit_bias"); bias != nullptr && *bias != Json::object())
    throw BadField("logit_bias", "logit_bias is not supported: " + text::shown(*bias));
  for (auto const* name : {"presence_penalty", "frequency_penalty"})
    if (auto const* const value = fields.find(name); value != nullptr && *value != 0)
      throw BadField(name, std::string(name) + " is not supported: " + text::shown(*value));
  TranslationSettings settings;
  auto& o = settings.search;
  o.candidates = c.choices;
  if (c.temperature ? *c.temperature > 0 : c.top_p || c.seed) {
    o.search = SearchName::sample;
    o.temperature = static_cast<float>(c.temperature.value_or(1)), o.top_p = static_cast<float>(c.top_p.value_or(1));
    o.seed = c.seed.value_or(1);
  } else if (c.temperature && c.choices == 1) {
    o.search = SearchName::greedy;
  } else {
    o.search = SearchName::beam, o.width = std::min(std::max(5, o.candidates), bounds.width);
  }
  o.max_length = c.max_tokens.value_or(std::min(o.max_length, bounds.length));
  settings.stop = c.stop;
  settings.scores = false;  // log-probabilities are computed afterwards, by Retold
  settings.told = c.logprobs.value_or(-1);
  read_offers(fields, settings, offer, "temperature", "n");
  return settings;
}

}  // namespace serve
