// SPDX-License-Identifier: Apache-2.0
/// \file
/// The searches of the C interface, and their options by name.
#pragma once

#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/blockwise/blockwise.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/phrase.hpp>
#include <sluice/search/constraint/constrained_beam_search.hpp>
#include <sluice/search/constraint/phrases.hpp>
#include <sluice/search/greedy/greedy.hpp>
#include <sluice/search/rule/forbidden.hpp>
#include <sluice/search/rule/rule.hpp>
#include <sluice/search/rule/ruled.hpp>
#include <sluice/search/sample/sample.hpp>
#include <sluice/search/sample/stochastic_beam.hpp>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::c {

using Law = Rules<Forbidden, Structure, InCatalogue>;
using GreedySearch = Ruled<Greedy, Law>;
using Beam = Ruled<ConstrainedBeamSearch<Phrases>, Law>;  // without phrases it is BeamSearch
using Sampling = Ruled<Sample, Law>;
using Drawing = Ruled<StochasticBeam, Law>;
using Blocks = Ruled<Blockwise<>, Law>;
using AnySearch = std::variant<GreedySearch, Beam, Sampling, Drawing, Blocks>;

/// A search before its phrases, grammar and catalogue are applied, and these.
struct SearchOptions {
  std::variant<Greedy, BeamSearch, Sample, StochasticBeam, Blockwise<>> plain;
  std::vector<Phrase> demanded{}, forbidden{};
  Structure structure{};
  InCatalogue items{};

  AnySearch make() const {
    Law const rule(Forbidden(forbidden), structure, items);
    if (auto const* const greedy = std::get_if<Greedy>(&plain)) return GreedySearch(*greedy, rule);
    if (auto const* const sample = std::get_if<Sample>(&plain)) return Sampling(*sample, rule);
    if (auto const* const drawing = std::get_if<StochasticBeam>(&plain)) return Drawing(*drawing, rule);
    if (auto const* const blocks = std::get_if<Blockwise<>>(&plain)) return Blocks(*blocks, rule);
    return Beam({.beam = std::get<BeamSearch>(plain), .constraints = Phrases(demanded)}, rule);
  }
};

/// Assigns `value` to the member called `name`, if it is among these.
class Setter {
 public:
  Setter(std::string_view name, double value) : name_(name), value_(value) {}
  bool found() const { return found_; }

  void operator()(std::string_view name, double& member) {
    if (name == name_) member = value_, found_ = true;
  }
  void operator()(std::string_view name, float& member) {
    if (name == name_) member = static_cast<float>(value_), found_ = true;
  }
  void operator()(std::string_view name, std::int32_t& member) {
    if (name == name_) member = whole(), found_ = true;
  }
  void operator()(std::string_view name, bool& member) {
    if (name != name_) return;
    require(value_ == 0 || value_ == 1, name_, value_, "must be 0 or 1");
    member = value_ == 1, found_ = true;
  }
  void operator()(std::string_view name, LengthPenalty::Kind& member) {
    if (name != name_) return;
    require(value_ == 0 || value_ == 1 || value_ == 2, name_, value_, "must be 0 (none), 1 (average) or 2 (gnmt)");
    member = static_cast<LengthPenalty::Kind>(whole()), found_ = true;
  }

 private:
  std::int32_t whole() const {
    require(value_ == std::floor(value_) && std::abs(value_) < 2147483648.0, name_, value_, "must be a whole number");
    return static_cast<std::int32_t>(value_);
  }
  std::string_view name_;
  double value_;
  bool found_ = false;
};

inline void set(LengthLimits& length, Setter& to) {
  to("min_length", length.min), to("max_length", length.max), to("extra", length.extra);
  to("min_factor", length.min_factor), to("max_factor", length.max_factor);
}
inline void set(LengthPenalty& penalty, Setter& to) {
  to("penalty", penalty.kind), to("alpha", penalty.alpha), to("beta", penalty.beta);
  to("word_penalty", penalty.word_penalty);
}
inline void set(Greedy& greedy, Setter& to) { set(greedy.length, to), set(greedy.penalty, to); }
inline void set(BeamSearch& beam, Setter& to) {
  set(beam.length, to), set(beam.penalty, to);
  to("width", beam.width), to("n_best", beam.n_best), to("patience", beam.early_stopping.patience);
}
inline void set(Sample& sample, Setter& to) {
  set(sample.length, to);
  to("temperature", sample.temperature), to("top_k", sample.top_k), to("top_p", sample.top_p);
  to("min_p", sample.min_p), to("typical", sample.typical), to("samples", sample.samples);
  to("distinct", sample.distinct);
}
inline void set(StochasticBeam& beam, Setter& to) {
  set(beam.length, to);
  to("width", beam.width), to("temperature", beam.temperature);
}
inline void set(Blockwise<>& blocks, Setter& to) {
  set(blocks.length, to);
  to("block", blocks.block), to("adaptive", blocks.adaptive), to("cost", blocks.cost);
  to("branches", blocks.branches), to("nodes", blocks.nodes);
}

}  // namespace sluice::c
