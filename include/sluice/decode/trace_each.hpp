// SPDX-License-Identifier: Apache-2.0
/// \file
/// A trace for some requests of a decoder or a server, each by itself.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/typed.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Traces every request that asks for it (Request::traced), with a trace of its own, which sees that sentence as if it were alone in
/// the decoder: its rows, queries and answers, and steps counted from its first. A row that goes on from what another sentence has
/// left (a shared prompt) is shown as one that feeds all of it. Other requests cost a look at each step's rows while one is traced
/// (entropies too, if T wants them, for all lines of these steps), else nothing.
///
///     Server server(model, search, schedule, {}, LogSoftmaxTopK(), TraceEach<TraceFile>([&](std::uint64_t id) {
///       return TraceFile(pages.at(id), text_of);             // called by the worker, when the request has got its slots
///     }));
///     server.submit({.source = s, .traced = true}, {.done = ...});  // when `done` is called, the trace is complete
///
/// If one of the traces throws, the others are told all the same.
/// \tparam T  a trace, see NoTrace, which can be moved
template <class T>
class TraceEach {
 public:
  /// \param make  returns the trace of a request, by its id; called by the decoder when the request is admitted. If it throws, the
  ///              request is decoded without.
  explicit TraceEach(std::function<T(std::uint64_t)> make) : make_(std::move(make)) {
    require(static_cast<bool>(make_), "TraceEach: make", "nothing", "must be a function");
  }

  /// The trace of a request that is running; nullptr: it has none. Where Server::trace may be used, or within `make`'s thread.
  T* find(std::uint64_t id) {
    auto const one = live_.find(id);
    return one == live_.end() ? nullptr : &one->second.trace;
  }

  /// \name What the decoder calls, see NoTrace
  /// @{
  bool wants_entropy() const {
    if constexpr (detail::WantsEntropy<T>)
      for (auto const& [id, one] : live_)
        if (one.trace.wants_entropy()) return true;
    return false;
  }

  void began(std::uint64_t id, Sentence const& sentence) {
    if (!sentence.traced) return;
    auto const found = live_.find(id);  // there, if it was preempted
    auto& one = found != live_.end() ? found->second : live_.emplace(id, make_(id)).first->second;
    one.prompt.assign(sentence.prompt.begin(), sentence.prompt.end());
    one.base = 0, one.slot_count = 0, one.held.clear();
    if constexpr (detail::TracesBeginnings<T>) one.trace.began(id, sentence);
  }

  void admitted(std::uint64_t id, Slot base, std::int32_t slot_count) {
    auto const found = live_.find(id);
    if (found == live_.end()) return;
    found->second.base = base, found->second.slot_count = slot_count;
    if constexpr (detail::TracesAdmission<T>) found->second.trace.admitted(id, base, slot_count);
  }

  void planned(StepPlan const& step) {
    tell([&](One& one) {
      one.select(step);
      if constexpr (detail::TracesPlans<T>)
        if (!one.plan.rows.empty() || !one.plan.released.empty()) one.trace.planned(one.plan);
    });
  }

  void answered(StepPlan const&, Expansion const& answer) {
    tell([&](One& one) {
      if (one.plan.rows.empty()) return;
      if constexpr (detail::TracesAnswers<T>)
        one.trace.answered(one.plan, answer.size() < one.first_line + one.plan.queries.size()
                                         ? Expansion()
                                         : answer.window(one.first_line, one.plan.queries.size()));
    });
  }

  void ended(Result const& result) {
    auto const found = live_.find(result.id);
    if (found == live_.end()) return;
    auto const ends = live_.extract(found);  // it goes even if it throws
    if constexpr (detail::TracesEnds<T>) ends.mapped().trace.ended(result);
  }
  /// @}

 private:
  struct One {
    explicit One(T&& made) : trace(std::move(made)) {}

    bool owns(Slot slot) const { return slot >= base && slot < base + slot_count; }

    /// This sentence's part of a step, in `plan`. Its rows are neighbours, and so are their lines, since rows ascend in `to`.
    void select(StepPlan const& step) {
      plan.clear(), fed.clear(), first_line = 0;
      std::size_t line = 0, end = 0;
      for (auto const& row : step.rows) {
        auto const lines = static_cast<std::size_t>(row.lines);
        if (owns(row.to)) {
          if (plan.rows.empty()) first_line = line;
          plan.rows.push_back(row);
          plan.queries.append(std::span(step.queries).subspan(line, lines));
        }
        line += lines;
      }
      for (auto const& group : step.groups) {  // those that begin among its lines
        auto const begin = end;
        end += static_cast<std::size_t>(group.lines);
        if (group.lines > 0 && begin >= first_line && begin < first_line + plan.queries.size())
          plan.groups.push_back(group);
      }
      for (auto const slot : step.released)
        if (owns(slot)) plan.released.push_back(slot), held.erase(slot);
      complete();
    }

    /// Rows that go on from what this sentence has not fed get all of it as tokens: the prompt, as far as another one has fed it.
    void complete() {
      std::vector<Slot> filled;
      fed.reserve(plan.rows.size());  // rows refer to its elements
      for (auto& row : plan.rows) {
        filled.push_back(row.to);
        auto const length = static_cast<std::size_t>((std::max)(row.length, 0));
        if (length == 0 || held.contains(row.from) || length > prompt.size()) continue;
        auto& tokens = fed.emplace_back(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(length));
        tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
        row.from = row.to, row.length = 0, row.tokens = tokens;
      }
      held.insert(filled.begin(), filled.end());
    }

    T trace;
    std::vector<Token> prompt{};
    Slot base = 0;
    std::int32_t slot_count = 0;
    std::set<Slot> held{};  // what it has fed something to
    StepPlan plan{};        // its part of the step
    std::vector<std::vector<Token>> fed{};
    std::size_t first_line = 0;  // of its part
  };

  /// Tells all, and throws the first exception when all have been told.
  template <class Tell>
  void tell(Tell&& tell_one) {
    std::exception_ptr first;
    for (auto& [id, one] : live_) try {
        tell_one(one);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
  }

  std::function<T(std::uint64_t)> make_;
  std::map<std::uint64_t, One> live_;
};

}  // namespace sluice::inline v0
