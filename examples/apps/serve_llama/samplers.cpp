// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <serve_llama/continuation_settings.hpp>
#include <sstream>
#include <stdexcept>

namespace serve {

void read_samplers(Fields& fields, ContinuationSettings& settings) {
  auto const number = [&](char const* name, float& to, double low, double high) {
    std::ostringstream wanted;
    wanted << "a number in " << low << " to " << high;
    auto const found = fields.number(
        name, [&](double x) { return x >= low && x <= high; }, wanted.str());
    if (found) to = static_cast<float>(*found);
  };
  auto const integer = [&](char const* name, std::int32_t& to, std::int64_t low, std::int64_t high) {
    if (auto const found = fields.integer(name, low, high)) to = static_cast<std::int32_t>(*found);
  };
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  auto& sample = settings.sample;
  sample.temperature = static_cast<float>(settings.samples() ? settings.wants.temperature.value_or(1) : 1);
  sample.top_p = static_cast<float>(settings.wants.top_p.value_or(1));
  integer("top_k", sample.top_k, 0, many), integer("min_keep", sample.min_keep, 0, many);
  number("min_p", sample.min_p, 0, 1), number("typical_p", sample.typical, 0, 1);
  number("top_n_sigma", sample.top_n_sigma, 0, 100);
  number("xtc_probability", sample.xtc.probability, 0, 1), number("xtc_threshold", sample.xtc.threshold, 0, 1);
  number("dynatemp_range", sample.dynamic_temperature.range, 0, 100);
  number("dynatemp_exponent", sample.dynamic_temperature.exponent, 0, 100);
  number("adaptive_target", sample.adaptive_p.target, -1, 1), number("adaptive_decay", sample.adaptive_p.decay, 0, 1);
  std::int32_t mirostat = 0;
  sluice::Mirostat wanted{.tau = 5};
  integer("mirostat", mirostat, 0, 2), number("mirostat_tau", wanted.tau, 0, 100);
  number("mirostat_eta", wanted.eta, 0, 100);
  if (mirostat == 1) throw BadField("mirostat", "mirostat: 1 is not supported, only 0 and 2");
  if (mirostat == 2) sample.mirostat = wanted;

  auto& penalties = settings.penalties;
  number("repeat_penalty", penalties.repetition, 0, 100), integer("repeat_last_n", penalties.window, -1, many);
  number("frequency_penalty", penalties.frequency, -2, 2), number("presence_penalty", penalties.presence, -2, 2);
  auto& dry = settings.dry;
  number("dry_multiplier", dry.multiplier, 0, 1000), number("dry_base", dry.base, 1, 1000);
  integer("dry_allowed_length", dry.allowed_length, 0, many);
  integer("dry_penalty_last_n", dry.window, -1, many);

  try {
    sample.check(), penalties.check(), dry.check();
  } catch (std::invalid_argument const& error) {
    throw BadField("", error.what());
  }
}

}  // namespace serve
