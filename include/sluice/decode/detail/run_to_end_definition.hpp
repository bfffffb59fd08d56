// SPDX-License-Identifier: Apache-2.0
/// \file
/// run_to_end(), and results in input order.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/loop_handle.hpp>
#include <sluice/decode/detail/run_to_end.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace sluice::inline v0::detail {

/// Holds back each result until all results before it have come.
class InOrder {
 public:
  /// Hands out this result, and those that waited for it; or keeps it.
  template <class F>
  void add(Result&& result, F const& hand_out) {
    auto const at = cast<std::size_t>(result.id - first_);
    if (held_.size() <= at) held_.resize(at + 1);
    held_[at] = {std::move(result), true};
    while (!held_.empty() && held_.front().here) {
      auto next = std::move(held_.front().result);
      held_.pop_front(), ++first_;
      hand_out(std::move(next));
    }
  }

 private:
  struct Held {
    Result result{};
    bool here = false;
  };
  Queue<Held> held_;
  std::uint64_t first_ = 0;  // id of the first
};

template <class Void>
void run_to_end(LoopHandle& loop, ResultOrder order, std::function<void(Result&&)> const& sink) {
  InOrder held_back;
  auto const hand_out = [&](Result&& result) {
    if (order == ResultOrder::ended) return sink(std::move(result));
    held_back.add(std::move(result), sink);
  };
  auto const collect = [&] {
    auto some = false;
    for (Result result; loop.poll(result); some = true, result = {}) hand_out(std::move(result));
    return some;
  };
  for (auto more = true; more;) {
    std::exception_ptr problem;
    try {
      more = loop.step();
    } catch (...) {
      problem = std::current_exception();
    }
    if (collect() || problem == nullptr) continue;  // the sentences of this step have failed, and their results say why
    loop.end_all(Failure::schedule, describe(problem), problem);
    collect();
  }
  if (loop.running() > 0) {  // all wait for more of their sources
    loop.end_all(Failure::source, "source: it is not over, and nothing appends to it", {});
    collect();
  }
  if (loop.waiting() == 0) return;
  loop.end_all(Failure::schedule,
               "sluice: the schedule admits none of the " + std::to_string(loop.waiting()) +
                   " waiting sentences, although none is live",
               {});
  collect();
}

}  // namespace sluice::inline v0::detail
