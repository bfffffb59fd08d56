// SPDX-License-Identifier: Apache-2.0
/// \file
/// The decoders behind Decoders, for the files that each compile one search.
#pragma once

#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>

#include <translate/decoders.hpp>
#include <translate/exchange.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>
#include <translate/schedule.hpp>
#include <translate/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace translate {

/// All sentences share the decoder's search.
struct OneSearch {
  template <class S>
  std::optional<S> operator()(S const&, Sentence const&) const {
    return std::nullopt;
  }
};

/// N models that share their weights, a decoder over each.
/// \tparam Own  called with the search and a sentence: the search of that sentence, nothing: the same
template <sluice::Search S, class Own>
class Workers final : public Decoders {
 public:
  Workers(Options const& options, Models& models, S const& search, sluice::LogitsProcessorList const& processors,
          Own const& own) {
    auto const schedule = Schedule::named(options);
    sluice::Intake const intake{.window = options.window.value_or(0), .encode_ahead = options.encode_ahead};
    for (std::size_t i = 0; i < options.threads; ++i)
      workers_.push_back(std::make_unique<Worker>(models, search, processors, schedule, intake, options, own));
  }

  void run(Exchange& exchange) override {
    std::vector<std::exception_ptr> problems(workers_.size());
    auto const work = [&](std::size_t i) {
      try {
        workers_[i]->work(exchange);
      } catch (...) {
        problems[i] = std::current_exception();
        exchange.abandon();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < workers_.size(); ++i) threads.emplace_back(work, i);
      work(0);
    }
    for (auto const& problem : problems)
      if (problem != nullptr) std::rethrow_exception(problem);
  }

  sluice::Statistics statistics() const override {
    sluice::Statistics sum;
    for (auto const& worker : workers_) sum += worker->decoder.statistics();
    return sum;
  }
  sluice::ClusteredStatistics clusters() const override {
    sluice::ClusteredStatistics sum;
    for (auto const& worker : workers_) sum += worker->decoder.expander().clusters();
    return sum;
  }

 private:
  struct Worker {
    Worker(Models& models, S const& search, sluice::LogitsProcessorList its_processors, Schedule const& schedule,
           sluice::Intake const& intake, Options const& options, Own const& own_search)
        : shared(search),
          processors(std::move(its_processors)),
          own(own_search),
          model(models.make()),
          decoder(model, search, schedule, models.output(), {}, intake),
          portion(std::max(intake.window, options.batch)),
          enough(std::max(intake.encode_ahead, options.batch)),
          confidence{.alternatives = options.alternatives} {}

    void work(Exchange& exchange) {
      decoder.trace().file = exchange.trace();
      for (auto more = true; more || decoder.waiting() + decoder.running() > 0;) {
        while (more && decoder.waiting() < enough) {
          more = exchange.take(portion, decoder.waiting() + decoder.running() == 0, taken);
          if (taken.empty()) break;
          submit();
        }
        auto const answered = decoder.statistics().sentences;
        try {
          decoder.step();
        } catch (...) {
          // A step that failed has ended sentences, and their results say why. Anything else is ours to report.
          if (decoder.statistics().sentences == answered) throw;
        }
        collect(exchange);
      }
    }

    void submit() {
      for (auto& sentence : taken) {
        auto search = own(shared, sentence);
        auto const text = std::move(sentence.text);
        auto const pieces = std::move(sentence.pieces);
        auto const id = decoder.submit({.source = std::move(sentence.source),
                                        .prefix = std::move(sentence.prefix),
                                        .search = std::move(search),
                                        .processors = processors,
                                        .seed = sentence.seed,
                                        .confidence = confidence});
        places.emplace(id, sentence.place);
        if (decoder.trace().file != nullptr)
          decoder.trace().file->describe(id, "line " + std::to_string(sentence.place + 1) + ": " + text, pieces);
      }
      taken.clear();
    }

    void collect(Exchange& exchange) {
      for (sluice::Result result; decoder.poll(result); result = {}) {
        auto const place = places.extract(result.id).mapped();
        exchange.give(place, std::move(result));
      }
    }

    S shared;
    sluice::LogitsProcessorList processors;
    Own own;
    Model model;
    sluice::Decoder<Model, S, Schedule, Output, Trace> decoder;
    std::size_t portion;  // taken at once: whole windows, so that they are sorted as a whole
    std::size_t enough;   // waiting: a batch can be filled, the encoder has work
    sluice::Confidence confidence;
    std::vector<Sentence> taken{};
    std::unordered_map<std::uint64_t, std::size_t> places{};  // of those submitted, by id
  };

  std::vector<std::unique_ptr<Worker>> workers_;
};

/// Decoders for one search.
template <sluice::Search S, class Own = OneSearch>
std::unique_ptr<Decoders> make_workers(Options const& options, Models& models, S const& search,
                                       sluice::LogitsProcessorList const& processors, Own const& own = {}) {
  return std::make_unique<Workers<S, Own>>(options, models, search, processors, own);
}

}  // namespace translate
