// SPDX-License-Identifier: Apache-2.0
/// \file
/// The decoders behind Decoders, for the files that each compile one search.
#pragma once

#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/statistics.hpp>
#include <sluice/schedule/batched.hpp>

#include <translate/decoders.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

namespace translate {

/// N models that share their weights, a decoder over each.
template <sluice::Search S, class Schedule>
class Workers final : public Decoders {
 public:
  Workers(std::size_t count, Models& models, S const& search, Schedule const& schedule) {
    for (std::size_t i = 0; i < count; ++i)
      workers_.push_back(std::make_unique<Worker>(models.make(), search, schedule, models.output()));
  }

  std::vector<sluice::Result> decode(std::vector<Sentence>& sentences, std::size_t portion,
                                     Progress& progress) override {
    Job job{.sentences = sentences, .portion = portion, .progress = progress};
    job.order.resize(sentences.size());
    std::iota(job.order.begin(), job.order.end(), std::size_t{0});
    // The longest first: whoever comes last has little to do.
    std::ranges::stable_sort(job.order, std::greater{}, [&](std::size_t i) { return sentences[i].source.size(); });
    job.results.resize(sentences.size());

    auto const portions = (sentences.size() + portion - 1) / portion;
    auto const busy = std::min(workers_.size(), portions);
    std::vector<std::exception_ptr> problems(busy);
    auto const work = [&](std::size_t i) {
      try {
        workers_[i]->work(job);
      } catch (...) {
        problems[i] = std::current_exception();
        job.next = sentences.size();  // the others need not go on
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < busy; ++i) threads.emplace_back(work, i);
      if (busy > 0) work(0);
    }
    for (auto const& problem : problems)
      if (problem != nullptr) std::rethrow_exception(problem);
    return std::move(job.results);
  }

  sluice::Statistics statistics() const override {
    sluice::Statistics sum;
    for (auto const& worker : workers_) sum += worker->decoder.statistics();
    return sum;
  }

 private:
  struct Job {
    std::vector<Sentence>& sentences;
    std::size_t portion;
    Progress& progress;
    std::vector<std::size_t> order{};       // in which sentences are taken
    std::atomic<std::size_t> next{0};       // place in `order`
    std::vector<sluice::Result> results{};  // each written by one worker
  };

  struct Worker {
    Worker(Model own, S const& search, Schedule const& schedule, Output output)
        : model(std::move(own)), decoder(model, search, schedule, std::move(output)) {}

    void work(Job& job) {
      std::vector<std::size_t> taken;
      auto const first = submitted;
      auto const take = [&] {
        while (decoder.waiting() == 0) {
          auto const begin = job.next.fetch_add(job.portion);
          if (begin >= job.order.size()) return;
          auto const end = std::min(begin + job.portion, job.order.size());
          for (auto i = begin; i < end; ++i, ++submitted) {
            taken.push_back(job.order[i]);
            auto& sentence = job.sentences[job.order[i]];
            decoder.submit(
                {.source = std::move(sentence.source), .prefix = std::move(sentence.prefix), .seed = sentence.seed});
          }
        }
      };
      sluice::Result result;
      auto const collect = [&] {
        std::size_t count = 0;
        for (; decoder.poll(result); ++count)
          job.results[taken[static_cast<std::size_t>(result.id - first)]] = std::move(result);
        job.progress.add(count);
        return count;
      };
      for (take(); decoder.waiting() + decoder.running() > 0; take()) {
        try {
          decoder.step();
        } catch (...) {
          // A step that failed has ended sentences, and their results say why. Anything else is ours to report.
          if (collect() == 0) throw;
        }
        collect();
      }
      collect();  // requests that were refused at once
    }

    Model model;
    sluice::Decoder<Model, S, Schedule, Output> decoder;
    std::uint64_t submitted = 0;
  };

  std::vector<std::unique_ptr<Worker>> workers_;
};

/// Decoders for one search; a new schedule is another case.
template <sluice::Search S>
std::unique_ptr<Decoders> make_workers(Options const& options, Models& models, S const& search) {
  switch (options.schedule) {
    case ScheduleName::batched: break;
  }
  return std::make_unique<Workers<S, sluice::Batched>>(options.threads, models, search,
                                                       sluice::Batched{.size = options.batch});
}

}  // namespace translate
