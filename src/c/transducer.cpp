// SPDX-License-Identifier: Apache-2.0
// Transducers of the C interface; a separate file, compiled beside sluice.cpp. A search is one type, whatever its rules and language
// model: what it costs is next to nothing beside a network.

#include <sluice/c/sluice.h>
#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>

#include "frames.hpp"
#include "handles.hpp"
#include "options.hpp"
#include "passing.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::c {

/// A table of C functions as a network. A non-zero return value is thrown as an exception.
class TableOfParts {
 public:
  using Source = void const*;

  explicit TableOfParts(sluice_transducer_functions const& functions) : functions_(functions) {
    require(functions.frames != nullptr, "frames", "null", "must be a function");
    require(functions.start != nullptr, "start", "null", "must be a function");
    require(functions.predict != nullptr, "predict", "null", "must be a function");
    require(functions.join != nullptr, "join", "null", "must be a function");
    require(functions.log_probs == 0 || functions.log_probs == 1, "log_probs", functions.log_probs, "must be 0 or 1");
    require(functions.duration_count == 0 || functions.durations != nullptr, "durations", "null",
            "must be as many as it says");
    require(functions.blank_count == 0 || (functions.blanks != nullptr && functions.blank_frames != nullptr), "blanks",
            "null", "must be as many as it says");
    tokens_.labels = functions.labels, tokens_.blank = functions.blank, tokens_.label_frames = functions.label_frames;
    tokens_.durations.assign(functions.durations, functions.durations + functions.duration_count);
    for (std::size_t i = 0; i < functions.blank_count; ++i)
      tokens_.big_blanks.push_back({functions.blanks[i], functions.blank_frames[i]});
    tokens_.check();
  }

  TransducerTokens const& tokens() const { return tokens_; }
  std::int32_t frames(Source const& source) const { return functions_.frames(functions_.user, source); }
  void start(std::span<Source const* const> sources, std::span<std::int32_t const> utterances) {
    sources_.clear();
    for (auto const* const source : sources) sources_.push_back(*source);
    demand(functions_.start(functions_.user, sources_.size(), sources_.data(), utterances.data()), "start");
  }
  void predict(std::span<PredictorRow const> rows) {
    predictions_.clear();
    for (auto const& row : rows) predictions_.push_back({row.from, row.to, row.label});
    demand(functions_.predict(functions_.user, rows.size(), predictions_.data()), "predict");
  }
  Scores<float> join(std::span<JoinerRow const> rows) {
    joins_.clear();
    for (auto const& row : rows) joins_.push_back({row.utterance, row.frame, row.state});
    float const* first = nullptr;
    std::size_t stride = 0;
    demand(functions_.join(functions_.user, rows.size(), joins_.data(), &first, &stride), "join");
    auto const columns = std::ptrdiff_t{tokens_.labels} + std::ssize(tokens_.durations);
    if (first == nullptr || stride < static_cast<std::size_t>(columns))
      throw std::runtime_error("the model's join gave " +
                               (first == nullptr ? "no scores" : "lines " + std::to_string(stride) + " apart") +
                               ", of " + std::to_string(columns) + " numbers");
    return scores(first, std::ssize(rows), columns, functions_.log_probs != 0 ? Kind::log_probs : Kind::logits,
                  static_cast<std::ptrdiff_t>(stride));
  }
  void release(std::span<std::int32_t const> utterances) {
    if (functions_.release != nullptr) functions_.release(functions_.user, utterances.size(), utterances.data());
  }

 private:
  static void demand(int answer, char const* function) {
    if (answer != 0)
      throw std::runtime_error("the model's " + std::string(function) + " returned " + std::to_string(answer));
  }

  sluice_transducer_functions functions_;
  TransducerTokens tokens_{};
  std::vector<void const*> sources_{};
  std::vector<sluice_predictor_row> predictions_{};
  std::vector<sluice_joiner_row> joins_{};
};

using RuledBeam = TransducerBeam<TextRules, AnyNGrams>;
using RuledGreedy = TransducerGreedy<TextRules, AnyNGrams>;

}  // namespace sluice::c

struct sluice_transducer {
  sluice::Transducer<sluice::c::TableOfParts> model;
  void (*destroy)(void*) = nullptr;
  void* user = nullptr;
};

namespace {

std::variant<sluice::c::RuledBeam, sluice::c::RuledGreedy> transducer_search(sluice::c::SearchOptions const& options) {
  if (auto const* const beam = std::get_if<sluice::TransducerBeam<>>(&options.plain)) {
    sluice::c::RuledBeam made;
    made.width = beam->width, made.n_best = beam->n_best, made.candidates = beam->candidates;
    made.most_symbols = beam->most_symbols, made.most_labels = beam->most_labels;
    made.threshold = beam->threshold, made.within = beam->within, made.order = beam->order;
    made.endpoint = beam->endpoint, made.penalty = beam->penalty;
    return made;
  }
  auto const* const greedy = std::get_if<sluice::TransducerGreedy<>>(&options.plain);
  sluice::require(greedy != nullptr, "search", "of another kind", "must be of kind transducer or transducer_greedy");
  sluice::c::RuledGreedy made;
  made.most_symbols = greedy->most_symbols, made.most_labels = greedy->most_labels;
  made.candidates = greedy->candidates, made.endpoint = greedy->endpoint;
  return made;
}

}  // namespace

extern "C" {

sluice_status sluice_transducer_create(sluice_transducer_functions const* functions, sluice_transducer** transducer) {
  using namespace sluice::c;
  return guarded([&] {
    auto const table = taken(not_null(functions, "functions"));
    auto& made = not_null(transducer, "transducer");
    made = new sluice_transducer{sluice::Transducer<TableOfParts>(TableOfParts(table)), table.destroy, table.user};
    return SLUICE_OK;
  });
}
void sluice_transducer_free(sluice_transducer* transducer) {
  if (transducer != nullptr && transducer->destroy != nullptr) transducer->destroy(transducer->user);
  delete transducer;
}

sluice_status sluice_transducer_decode(sluice_transducer* transducer, sluice_search const* search,
                                       sluice_ctc const* texts, void const* const* sources, size_t count, size_t batch,
                                       sluice_frames_results** results) {
  using namespace sluice::c;
  return guarded([&] {
    auto& its = not_null(transducer, "transducer");
    auto& out = not_null(results, "results");
    sluice::require(sources != nullptr || count == 0, "sources", "null", "must be as many as it says");
    auto const& tokens = its.model.tokens();
    sluice_ctc const none{.labels = tokens.labels, .blank = tokens.blank};
    auto const& known = texts == nullptr ? none : *texts;
    sluice::require(known.labels == tokens.labels, "texts", std::to_string(known.labels) + " labels",
                    "must be of the network's, " + std::to_string(tokens.labels));
    sluice::require(known.blank == tokens.blank, "texts", "blank " + std::to_string(known.blank),
                    "must be the network's, " + std::to_string(tokens.blank));
    auto const& options = not_null(search, "search").options;
    auto made = std::make_unique<sluice_frames_results>();
    std::visit(
        [&](auto one) {
          auto trivial = false;
          one.rule = text_rules(options, known, trivial), one.language_model = known.language;
          one.adapt(its.model), one.check();
          made->results = sluice::decode(its.model, std::vector<void const*>(sources, sources + count), one,
                                         sluice::Streaming{.size = batch == 0 ? 32 : batch, .refill_below = 1});
        },
        transducer_search(options));
    made->views.resize(count), made->list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) made->list.push_back(known.view(made->results[i], made->views[i]));
    out = made.release();
    return SLUICE_OK;
  });
}

}  // extern "C"
