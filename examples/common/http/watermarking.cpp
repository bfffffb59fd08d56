// SPDX-License-Identifier: Apache-2.0
#include <text/command_line.hpp>

#include <http/watermarking.hpp>
#include <map>

namespace serve {

namespace {

std::map<std::string, Watermarking::Policy> const policies{{"always", Watermarking::Policy::always},
                                                           {"default", Watermarking::Policy::by_default},
                                                           {"requested", Watermarking::Policy::requested}};

}  // namespace

sluice::Watermark Watermarking::of(Fields& fields) const {
  auto const wanted = fields.flag("watermark");
  if (!watermark.on()) {
    if (wanted.value_or(false)) throw BadField("watermark", "watermark is true, but this server has no key");
    return {};
  }
  if (policy == Policy::always && !wanted.value_or(true))
    throw BadField("watermark", "watermark is false, but this server marks all that it generates");
  return wanted.value_or(policy != Policy::requested) ? watermark : sluice::Watermark{};
}

void Watermarking::refuse(std::string const& field, std::string const& why) const {
  throw BadField(field, why + ", so it cannot carry the watermark " + name(watermark.scheme) +
                            (policy == Policy::by_default ? " (watermark: false asks for none)" : ""));
}

void Watermarking::check_samples(std::string const& field, std::int32_t count) const {
  if (count > 1 && watermark.scheme == sluice::WatermarkScheme::gumbel && watermark.second == 0)
    throw BadField(field, field + " asks for " + std::to_string(count) +
                              " samples, which would all be the same: the key of the watermark gumbel draws them");
}

WatermarkingFlags::WatermarkingFlags(CLI::App& app, Watermarking& watermarking) : watermarking_(watermarking) {
  auto const add = [&](char const* name, auto& value, char const* type, char const* what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  options_ = flags_.add_by<CLI::Option>(
      add, [](auto const& names) { return text::one_of(names); },
      [](auto low, auto high) { return text::whole(low, high); });
  options_.push_back(add("--watermark-policy", policy_, "NAME",
                         "which outputs are marked: always; default: unless a request declines; or requested (always)")
                         ->check(text::one_of(policies)));
}

void WatermarkingFlags::finish() {
  flags_.check_effects(options_);
  watermarking_.watermark = flags_.read(), watermarking_.policy = policies.at(policy_);
}

}  // namespace serve
