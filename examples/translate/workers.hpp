// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several decoders, each in a thread of its own.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/statistics.hpp>

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

/// N models that share their weights, a decoder over each. A result depends on its request alone.
template <sluice::Model M, sluice::Search S, class Schedule, class Expander>
class Workers {
 public:
  using Request = sluice::Request<typename M::Source, S>;

  /// \param make  returns a model, called `count` times
  /// \throws std::invalid_argument  for options of the search or the schedule that make no sense
  template <class Make>
  Workers(std::size_t count, Make make, S const& search, Schedule const& schedule, Expander const& expander) {
    for (std::size_t i = 0; i < count; ++i)
      workers_.push_back(std::make_unique<Worker>(make(), search, schedule, expander));
  }

  /// The results in the order of the requests, which are moved from.
  ///
  /// \param portion  requests that a worker takes at a time; of similar length, so that batches are even
  std::vector<sluice::Result> decode(std::vector<Request>& requests, std::size_t portion, Progress& progress) {
    Job job{.requests = requests, .portion = portion, .progress = progress};
    job.order.resize(requests.size());
    std::iota(job.order.begin(), job.order.end(), std::size_t{0});
    // The longest first: whoever comes last has little to do.
    std::ranges::stable_sort(job.order, std::greater{}, [&](std::size_t i) { return requests[i].source.size(); });
    job.results.resize(requests.size());

    auto const portions = (requests.size() + portion - 1) / portion;
    auto const busy = std::min(workers_.size(), portions);
    std::vector<std::exception_ptr> problems(busy);
    auto const work = [&](std::size_t i) {
      try {
        workers_[i]->work(job);
      } catch (...) {
        problems[i] = std::current_exception();
        job.next = requests.size();  // the others need not go on
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

  sluice::Statistics statistics() const {
    sluice::Statistics sum;
    for (auto const& worker : workers_) sum += worker->decoder.statistics();
    return sum;
  }

 private:
  struct Job {
    std::vector<Request>& requests;
    std::size_t portion;
    Progress& progress;
    std::vector<std::size_t> order{};       // in which requests are taken
    std::atomic<std::size_t> next{0};       // place in `order`
    std::vector<sluice::Result> results{};  // each written by one worker
  };

  struct Worker {
    Worker(M own, S const& search, Schedule const& schedule, Expander const& expander)
        : model(std::move(own)), decoder(model, search, schedule, expander) {}

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
            decoder.submit(std::move(job.requests[job.order[i]]));
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

    M model;
    sluice::Decoder<M, S, Schedule, Expander> decoder;
    std::uint64_t submitted = 0;
  };

  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace translate
