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

/// An utterance: of a source, from one of its frames on.
struct Utterance {
  void const* source = nullptr;
  std::int32_t first = 0;
  std::int32_t length = 0;  // frames that have come since
  bool comes = false;       // frames come while it is decoded; else the source knows its length
  bool over = false;
};

/// A table of C functions as a network. A non-zero return value is thrown as an exception.
class TableOfParts {
 public:
  using Source = Utterance;

  explicit TableOfParts(sluice_transducer_functions const& functions)
      : functions_(functions), utterances_(std::make_shared<NumberPool>()), states_(std::make_shared<NumberPool>()) {
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

  /// The same network for another decoder: utterances and states have numbers that no other has.
  TableOfParts another() const { return TableOfParts(functions_, tokens_, utterances_.all(), states_.all()); }

  TransducerTokens const& tokens() const { return tokens_; }
  /// Of the source, or so many as have come.
  std::int32_t frames(void const* source) const { return functions_.frames(functions_.user, source); }
  std::int32_t frames(Source const& source) const { return frames(source.source); }
  SourceGrowth growth(Source const& source) const {
    return source.comes ? SourceGrowth{source.length, source.over} : SourceGrowth{frames(source), true};
  }
  void append(Source& source, std::int32_t length, bool last) const { source.length = length, source.over = last; }
  void start(std::span<Source const* const> sources, std::span<std::int32_t const> utterances) {
    sources_.clear(), numbers_.clear();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const own = static_cast<std::size_t>(utterances[i]);
      if (own >= first_.size()) first_.resize(own + 1);
      first_[own] = sources[i]->first;
      sources_.push_back(sources[i]->source), numbers_.push_back(utterances_(utterances[i]));
    }
    demand(functions_.start(functions_.user, sources_.size(), sources_.data(), numbers_.data()), "start");
  }
  void predict(std::span<PredictorRow const> rows) {
    predictions_.clear();
    for (auto const& row : rows) predictions_.push_back({states_(row.from), states_(row.to), row.label});
    demand(functions_.predict(functions_.user, rows.size(), predictions_.data()), "predict");
  }
  Scores<float> join(std::span<JoinerRow const> rows) {
    joins_.clear();
    for (auto const& row : rows)
      joins_.push_back({utterances_(row.utterance), first_[static_cast<std::size_t>(row.utterance)] + row.frame,
                        states_(row.state)});
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
    numbers_.clear();
    for (auto const utterance : utterances) numbers_.push_back(utterances_(utterance));
    if (functions_.release != nullptr) functions_.release(functions_.user, numbers_.size(), numbers_.data());
  }

 private:
  TableOfParts(sluice_transducer_functions const& functions, TransducerTokens tokens,
               std::shared_ptr<NumberPool> utterances, std::shared_ptr<NumberPool> states)
      : functions_(functions),
        tokens_(std::move(tokens)),
        utterances_(std::move(utterances)),
        states_(std::move(states)) {}

  static void demand(int answer, char const* function) {
    if (answer != 0)
      throw std::runtime_error("the model's " + std::string(function) + " returned " + std::to_string(answer));
  }

  sluice_transducer_functions functions_;
  TransducerTokens tokens_{};
  SharedNumbers utterances_, states_;
  std::vector<std::int32_t> first_{};  // [utterance]
  std::vector<void const*> sources_{};
  std::vector<std::int32_t> numbers_{};
  std::vector<sluice_predictor_row> predictions_{};
  std::vector<sluice_joiner_row> joins_{};
};

template <class L>
using BeamWith = TransducerBeam<TextRules, L>;
template <class L>
using GreedyWith = TransducerGreedy<TextRules, L>;
using AnyTransducerSearch =
    std::variant<BeamWith<AnyNGrams>, GreedyWith<AnyNGrams>, BeamWith<FusionWeights>, GreedyWith<FusionWeights>>;

}  // namespace sluice::c

struct sluice_transducer {
  sluice::Transducer<sluice::c::TableOfParts> model;
  void (*destroy)(void*) = nullptr;
  void* user = nullptr;
};

namespace {

using namespace sluice::c;
using sluice::Transducer;

template <class L>
AnyTransducerSearch search_with(L const& language, SearchOptions const& options, sluice_ctc const& texts) {
  auto trivial = false;
  if (auto const* const beam = std::get_if<sluice::TransducerBeam<>>(&options.plain)) {
    BeamWith<L> made;
    made.width = beam->width, made.n_best = beam->n_best, made.candidates = beam->candidates;
    made.most_symbols = beam->most_symbols, made.most_labels = beam->most_labels;
    made.threshold = beam->threshold, made.within = beam->within, made.order = beam->order;
    made.endpoint = beam->endpoint, made.penalty = beam->penalty;
    made.rule = text_rules(options, texts, trivial), made.language_model = language;
    return made;
  }
  auto const* const greedy = std::get_if<sluice::TransducerGreedy<>>(&options.plain);
  sluice::require(greedy != nullptr, "search", "of another kind", "must be of kind transducer or transducer_greedy");
  GreedyWith<L> made;
  made.most_symbols = greedy->most_symbols, made.most_labels = greedy->most_labels;
  made.candidates = greedy->candidates, made.endpoint = greedy->endpoint;
  made.rule = text_rules(options, texts, trivial), made.language_model = language;
  return made;
}

AnyTransducerSearch transducer_search(sluice_search const* search, sluice_ctc const& texts) {
  auto const& options = not_null(search, "search").options;
  return texts.model != nullptr ? search_with(texts.weights, options, texts)
                                : search_with(texts.language, options, texts);
}

/// What is known of texts: at least their labels.
sluice_ctc const& known_texts(sluice_ctc const* texts, sluice_ctc& none, sluice::TransducerTokens const& tokens) {
  none.labels = tokens.labels, none.blank = tokens.blank;
  auto const& known = texts == nullptr ? none : *texts;
  sluice::require(known.labels == tokens.labels, "texts", std::to_string(known.labels) + " labels",
                  "must be of the network's, " + std::to_string(tokens.labels));
  sluice::require(known.blank == tokens.blank, "texts", "blank " + std::to_string(known.blank),
                  "must be the network's, " + std::to_string(tokens.blank));
  return known;
}

template <class S>
class TransducerStreamOf final : public StreamOf<Transducer<TableOfParts>, S> {
  using Base = StreamOf<Transducer<TableOfParts>, S>;

 public:
  TransducerStreamOf(sluice_ctc const& texts, std::unique_ptr<sluice_ctc> none, TableOfParts parts, S search,
                     void const* source)
      : Base(texts, Transducer<TableOfParts>(std::move(parts)), std::move(search)),
        none_(std::move(none)),
        source_(source) {
    this->begin({.source = source_, .comes = true});
  }
  void append(sluice::MatrixView<float const> const& frames, bool last) override {
    sluice::require(frames.rows == 0, "frames", frames.rows,
                    "must be null: a transducer's network has its frames, and says how many have come");
    sluice::require(!this->over, "last", last, "nothing may come after the last frame");
    auto const come = this->frames().network().frames(source_);
    sluice::require(come >= come_, "frames(source)", come, "must not be less than before, " + std::to_string(come_));
    come_ = come, this->over = last;
    if (!this->ended) this->decode(come_ - first_, last);
  }
  bool next() override {
    if (this->over && come_ - first_ <= this->found.frames) return false;
    first_ += this->found.frames;
    this->begin_next({.source = source_, .first = first_, .comes = true});
    return true;
  }

 private:
  std::unique_ptr<sluice_ctc> none_;  // of a stream without texts
  void const* source_;
  std::int32_t come_ = 0;   // frames of the source
  std::int32_t first_ = 0;  // of the utterance
};

}  // namespace

extern "C" {

sluice_status sluice_transducer_create(sluice_transducer_functions const* functions, sluice_transducer** transducer) {
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
  return guarded([&] {
    auto& its = not_null(transducer, "transducer");
    auto& out = not_null(results, "results");
    sluice::require(sources != nullptr || count == 0, "sources", "null", "must be as many as it says");
    sluice_ctc none;
    auto const& known = known_texts(texts, none, its.model.tokens());
    auto made = std::make_unique<sluice_frames_results>();
    std::vector<Utterance> utterances;
    utterances.reserve(count);
    for (std::size_t i = 0; i < count; ++i) utterances.push_back({.source = sources[i]});
    std::visit(
        [&]<class S>(S one) {
          auto const decode = [&](auto& model) {
            one.adapt(model), one.check();
            made->results = sluice::decode(model, utterances, one,
                                           sluice::Streaming{.size = batch == 0 ? 32 : batch, .refill_below = 1});
          };
          if constexpr (InRows<S>) {
            ModelOf<Transducer<TableOfParts>, S> both(Transducer(its.model.network().another()), known);
            decode(both.model());
          } else {
            decode(its.model);
          }
        },
        transducer_search(search, known));
    made->views.resize(count), made->list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) made->list.push_back(known.view(made->results[i], made->views[i]));
    out = made.release();
    return SLUICE_OK;
  });
}

sluice_status sluice_transducer_stream(sluice_transducer* transducer, sluice_search const* search,
                                       sluice_ctc const* texts, void const* source, sluice_ctc_stream** stream) {
  return guarded([&] {
    auto& its = not_null(transducer, "transducer");
    auto& made = not_null(stream, "stream");
    auto none = std::make_unique<sluice_ctc>();
    auto const& known = known_texts(texts, *none, its.model.tokens());
    std::visit(
        [&]<class S>(S one) {
          one.adapt(its.model), one.check();
          made =
              new TransducerStreamOf<S>(known, std::move(none), its.model.network().another(), std::move(one), source);
        },
        transducer_search(search, known));
    return SLUICE_OK;
  });
}

}  // extern "C"
