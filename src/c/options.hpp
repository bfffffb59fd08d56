// SPDX-License-Identifier: Apache-2.0
/// \file
/// The searches of the C interface, and their options by name.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/frame_stream.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/length.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/watermark/watermark.hpp>

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::c {

using Beam = ConstrainedBeamSearch<Phrases>;  // without phrases it is BeamSearch

/// The outputs that match a grammar, as a potential; without a grammar there is none: all outputs count, those cut at the maximum
/// length included.
struct GrammarPotential : Indicator<Structure> {
  double log_final(State const& state, bool finished) const {
    return state.masks == nullptr ? 0 : Indicator<Structure>::log_final(state, finished);
  }
};
using Particles = ParticleSample<GrammarPotential>;
using AnySearch = std::variant<Greedy, Beam, DiverseBeamSearch, Sample, StochasticBeam, Blockwise<>, Particles>;

/// A processor of the caller's.
struct Callback {
  static constexpr std::string_view name = "sluice_process";
  struct State {};
  sluice_process function = nullptr;
  void* user = nullptr;

  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  void process(State, Output const& output, std::span<float> scores) const {
    auto const told = function(user, output.tokens.data(), output.tokens.size(), scores.data(), scores.size());
    if (told != 0) throw std::runtime_error("the processor returned " + std::to_string(told));
  }
};

/// Stopping criteria of the caller's.
struct Criteria {
  static constexpr std::string_view name = "sluice_over";
  struct One {
    sluice_over function = nullptr;
    void* user = nullptr;
  };
  struct State {};
  std::vector<One> all;
  std::int32_t first = 0, minimum = 0;  // first: the index of its first stop

  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  std::int32_t stop(State, Output const& output) const {
    if (static_cast<std::int64_t>(output.tokens.size()) < minimum) return -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const told = all[i].function(all[i].user, output.tokens.data(), output.tokens.size());
      if (told != 0 && told != 1) throw std::runtime_error("the stopping criterion returned " + std::to_string(told));
      if (told == 1) return first + static_cast<std::int32_t>(i);
    }
    return -1;
  }
};

/// A search, and what its processors are made of.
struct SearchOptions {
  std::variant<Greedy, BeamSearch, DiverseBeamSearch, Sample, StochasticBeam, Blockwise<>, Particles, CtcBeamSearch<>,
               TransducerBeam<>, TransducerGreedy<>>
      plain;
  std::vector<Phrase> demanded{}, forbidden{};
  Penalties penalties{};
  NoRepeatNgram no_repeat_ngram{};
  Structure structure{};
  InCatalogue items{};
  Bias bias{};
  std::vector<Callback> callbacks{};
  std::vector<Criteria::One> criteria{};
  std::vector<Phrase> stop_tokens{};
  std::vector<std::string> stop_strings{};
  std::int32_t stop_minimum = 0;
  Watermark watermark{};

  bool of_frames() const {
    return std::holds_alternative<CtcBeamSearch<>>(plain) || std::holds_alternative<TransducerBeam<>>(plain) ||
           std::holds_alternative<TransducerGreedy<>>(plain);
  }

  /// \throws std::invalid_argument  for marks that this kind of search cannot make
  void mark(Watermark const& with) {
    if (std::holds_alternative<Sample>(plain)) with.check();
    else GreenList{with}.check();
    watermark = with;
  }

  /// \param bytes  of the model's tokens; none: they are not known
  StopSequences stops(TokenBytes const& bytes) const {
    require(stop_strings.empty() || !bytes.empty(), "model", "without bytes",
            "needs sluice_model_set_bytes before its outputs stop at strings");
    return StopSequences({stop_tokens, stop_strings, bytes, stop_minimum});
  }

  AnySearch search() const {
    require(!of_frames(), "search", "over frames", "is for sluice_ctc_decode, or sluice_transducer_decode");
    if (auto const* const particles = std::get_if<Particles>(&plain)) {
      auto conditioned = *particles;
      conditioned.potential = {{structure}};
      return conditioned;
    }
    if (auto const* const sample = std::get_if<Sample>(&plain)) {
      auto marked = *sample;
      marked.watermark = watermark;
      return marked;
    }
    if (auto const* const greedy = std::get_if<Greedy>(&plain)) return *greedy;
    if (auto const* const groups = std::get_if<DiverseBeamSearch>(&plain)) {
      auto each = *groups;
      each.search.n_best = each.search.width;
      return each;
    }
    if (auto const* const drawing = std::get_if<StochasticBeam>(&plain)) return *drawing;
    if (auto const* const blocks = std::get_if<Blockwise<>>(&plain)) return *blocks;
    return Beam{.beam = std::get<BeamSearch>(plain), .constraints = Phrases(demanded)};
  }

  LogitsProcessorList processors(TokenBytes const& bytes) const {
    // Particles are weighted by the grammar, all others masked. Sampling marks by itself, all others by a processor.
    auto const marks = !std::holds_alternative<Sample>(plain) && watermark.on();
    LogitsProcessorList all;
    if (!forbidden.empty()) all.push_back(Forbidden(forbidden));
    all.push_back(penalties);
    if (no_repeat_ngram.n != 0) all.push_back(no_repeat_ngram);
    if (!std::holds_alternative<Particles>(plain)) all.push_back(structure);
    all.push_back(items), all.push_back(bias);
    if (marks) all.push_back(GreenList{watermark});
    for (auto const& one : callbacks) all.push_back(one);
    if (!stop_tokens.empty() || !stop_strings.empty()) all.push_back(stops(bytes));
    if (!criteria.empty())
      all.push_back(
          Criteria{criteria, static_cast<std::int32_t>(stop_tokens.size() + stop_strings.size()), stop_minimum});
    return all;
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
  /// One of the names from 0 to `last`.
  template <class E>
  void operator()(std::string_view name, E& member, E last) {
    if (name != name_) return;
    auto const value = whole();
    if (value < 0 || value > static_cast<std::int32_t>(last))
      require(false, name_, value_, "must be a number from 0 to " + std::to_string(static_cast<std::int32_t>(last)));
    member = static_cast<E>(value), found_ = true;
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
  to("penalty", penalty.kind, LengthPenalty::Kind::gnmt), to("alpha", penalty.alpha), to("beta", penalty.beta);
  to("word_penalty", penalty.word_penalty);
}
inline void set(Pruning& pruning, Setter& to) {
  to("absolute_threshold", pruning.absolute_threshold), to("relative_threshold", pruning.relative_threshold);
  to("relative_local_threshold", pruning.relative_local_threshold), to("max_per_parent", pruning.max_per_parent);
  to("below_finished", pruning.below_finished);
}
inline void set(EarlyStopping& early_stopping, Setter& to) {
  to("early_stopping", early_stopping.rule, EarlyStopping::Rule::never_early);
  to("patience", early_stopping.patience), to("ended_first", early_stopping.ended_first);
}
inline void set(Penalties& penalties, Setter& to) {
  to("repetition_penalty", penalties.repetition), to("frequency_penalty", penalties.frequency);
  to("presence_penalty", penalties.presence), to("penalty_window", penalties.window);
  to("penalty_prompt", penalties.prompt);
}
inline void set(NoRepeatNgram& no_repeat_ngram, Setter& to) { to("no_repeat_ngram", no_repeat_ngram.n); }
inline void set(Greedy& greedy, Setter& to) {
  set(greedy.length, to), set(greedy.penalty, to);
  to("scores", greedy.scores), to("stage", greedy.stage, Stage::after_softmax);
}
inline void set(BeamSearch& beam, Setter& to) {
  set(beam.length, to), set(beam.penalty, to);
  set(beam.pruning, to), set(beam.early_stopping, to);
  to("width", beam.width), to("n_best", beam.n_best);
  to("finished", beam.finished, FinishedHypotheses::leave_first);
  to("at_maximum", beam.at_maximum, AtMaximum::drop);
  to("surplus", beam.surplus), to("prefix_scored", beam.prefix_scored), to("guard_prefix", beam.guard_prefix);
  to("one_end", beam.one_end), to("candidates", beam.candidates), to("sibling_penalty", beam.sibling_penalty);
  to("stop_at_once", beam.stop_at_once), to("stage", beam.stage, Stage::after_softmax);
}
inline void set(DiverseBeamSearch& diverse, Setter& to) {
  set(diverse.search, to);
  to("groups", diverse.groups), to("diversity_penalty", diverse.penalty), to("n_best", diverse.n_best);
  to("padding", diverse.padding);
}
inline void set(Sample& sample, Setter& to) {
  set(sample.length, to);
  to("temperature", sample.temperature), to("top_k", sample.top_k), to("top_p", sample.top_p);
  to("min_p", sample.min_p), to("typical", sample.typical), to("top_n_sigma", sample.top_n_sigma);
  to("min_keep", sample.min_keep), to("samples", sample.samples), to("distinct", sample.distinct);
}
inline void set(StochasticBeam& beam, Setter& to) {
  set(beam.length, to);
  to("width", beam.width), to("temperature", beam.temperature);
}
inline void set(ParticleSample<GrammarPotential>& sample, Setter& to) {
  set(sample.length, to);
  to("particles", sample.particles), to("proposal", sample.proposal, Proposal::product);
  to("resample_below", sample.resample_below), to("tries", sample.tries), to("looks", sample.looks);
  to("temperature", sample.temperature), to("distinct", sample.distinct);
}
inline void set(Endpoint& endpoint, Setter& to) {
  to("silence", endpoint.silence), to("nothing", endpoint.nothing), to("longest", endpoint.longest);
}
inline void set(CtcBeamSearch<>& ctc, Setter& to) {
  set(ctc.endpoint, to);
  to("width", ctc.width), to("n_best", ctc.n_best), to("top_tokens", ctc.top_tokens);
  to("token_floor", ctc.token_floor), to("threshold", ctc.threshold), to("skip_blank", ctc.skip_blank);
  to("block", ctc.block), to("viterbi", ctc.viterbi);
}
inline void set(TransducerBeam<>& beam, Setter& to) {
  set(beam.endpoint, to), set(beam.penalty, to);
  to("width", beam.width), to("n_best", beam.n_best), to("candidates", beam.candidates);
  to("most_symbols", beam.most_symbols), to("most_labels", beam.most_labels);
  to("threshold", beam.threshold), to("within", beam.within), to("order", beam.order, TransducerOrder::alignment);
}
inline void set(TransducerGreedy<>& greedy, Setter& to) {
  set(greedy.endpoint, to);
  to("most_symbols", greedy.most_symbols), to("most_labels", greedy.most_labels), to("candidates", greedy.candidates);
}
inline void set(Watermark& watermark, Setter& to) {
  to("prf", watermark.prf, WatermarkPrf::hugging_face), to("width", watermark.width);
  to("second", watermark.second), to("gamma", watermark.gamma), to("delta", watermark.delta);
  to("depth", watermark.depth);
}
inline void set(Blockwise<>& blocks, Setter& to) {
  set(blocks.length, to);
  to("block", blocks.block), to("adaptive", blocks.adaptive), to("cost", blocks.cost);
  to("branches", blocks.branches), to("nodes", blocks.nodes);
}

}  // namespace sluice::c
