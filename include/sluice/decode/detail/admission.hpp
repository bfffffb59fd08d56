// SPDX-License-Identifier: Apache-2.0
/// \file
/// Admission: a waiting request becomes a running sentence.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/detail/begin_search.hpp>
#include <sluice/decode/detail/encoding.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/list_running.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/preemption.hpp>
#include <sluice/decode/detail/prefix_cache.hpp>
#include <sluice/decode/detail/results.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/detail/waiting_queue.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Asks the schedule how many requests to admit, gives them slots, and starts them in the model.
class Admission {
 public:
  SLUICE_LAZY Admission(LoopState& state, Results& results, Intake const& intake)
      : waiting(state.model, intake),
        state_(state),
        results_(results),
        preemption_(state, waiting),
        prefix_cache_(state),
        wait_for_encoder_(intake.wait_for_encoder) {
    if (intake.shared_tokens == 0) return;
    auto const& model = state.model;
    require(model.alike, "shared_tokens", intake.shared_tokens, "sources differ, their class is not empty: must be 0");
    require(model.abilities.ragged && model.abilities.roll_back, "shared_tokens", intake.shared_tokens,
            "the model does not claim `ragged` and `roll_back`: must be 0");
  }

  /// The requests that are not yet admitted.
  WaitingQueue waiting;

  /// Queues a request. Throws if the request is bad; the caller then refuses it.
  SLUICE_LAZY void push(std::uint64_t id, std::unique_ptr<AnyRequest> request) {
    auto& r = *request;
    if (r.problem != nullptr) std::rethrow_exception(r.problem);
    check_request(r.prompt, r.prefix, r.shortlist ? &*r.shortlist : nullptr, state_.model.vocabulary);
    r.processors.check();
    if (auto const* const own = r.search()) state_.searches.check(own, state_.model);
    auto const& confidence = r.confidence;
    require(confidence.alternatives >= 0, "confidence.alternatives", confidence.alternatives, "must not be negative");
    require(!confidence.entropy || state_.model.answers_entropy, "confidence.entropy", true,
            "the expander does not compute the entropy (Expander)");
    r.source_length = state_.model.source_length(r.source());
    waiting.push(id, std::move(request));
  }

  /// Admits what the schedule asks for, as far as slots and cache suffice.
  SLUICE_LAZY void admit() {
    while (waiting.any()) {
      list_running(state_, results_, live_);
      auto wanted = std::size_t{0};
      do wanted = state_.schedule.admit(live_, waiting.lengths());
      while (wants_more(wanted) && waiting.look_further((std::max)(wanted, waiting.arranged())));
      wanted = (std::min)(wanted, waiting.lengths().size());
      if (wanted == 0 || !admit(wanted)) break;
    }
    waiting.feed();
  }

 private:
  /// Whether the schedule should see more of the queue: it takes all that it sees, or takes nothing while nothing runs.
  SLUICE_LAZY bool wants_more(std::size_t wanted) const {
    return wanted > 0 ? wanted >= waiting.arranged() : live_.empty() && waiting.supply != nullptr;
  }

  /// Starts up to `count` waiting requests; false if no more can be started now.
  SLUICE_LAZY bool admit(std::size_t count) {
    auto& seconds = state_.statistics.seconds;
    while (count > 0) {
      state_.stopwatch.book(seconds.search);
      auto const patient = wait_for_encoder_ || state_.running.empty();
      auto const run = waiting.ready(count, patient, [&](EncodedBatch const& encoded) {
        state_.statistics.encoder_calls += encoded.calls, state_.statistics.encoded += encoded.sources.size();
        if (waiting.threaded()) seconds.beside += encoded.seconds;
      });
      state_.stopwatch.book(seconds.encode);
      if (run.count == 0 || admit(run) < run.count) return false;
      count -= run.count;
    }
    return true;
  }

  /// Starts the requests of a run in one batch. Returns how many left the queue.
  SLUICE_LAZY std::size_t admit(WaitingQueue::Run const& run) {
    sources_.clear(), starts_.clear(), places_.clear(), starting_.clear();
    encoded_ = run.encoded;
    std::size_t taken = 0;
    for (; taken < run.count; ++taken) {
      if (!admit(waiting[0])) break;
      waiting.pop();
    }
    state_.stopwatch.book(state_.statistics.seconds.search);
    if (!starts_.empty()) {  // what the batch did not start is started alone, to see which of them fail
      for (auto i = start_batch(0, starts_.size()); i < starts_.size(); ++i)
        if (start_batch(i, 1) == 0) fail_or_preempt(*starting_[i]);
    }
    state_.running.sweep();
    encoded_.reset();  // frees the encoded batch if these were its last
    state_.stopwatch.book(state_.statistics.seconds.encode);
    return taken;
  }

  /// Gives a request its slots and its search; false if there is no room. A request that cannot be served is refused.
  SLUICE_LAZY bool admit(WaitingQueue::Entry& next) {
    auto s = state_.running.take();
    std::int32_t held = 0;  // of the prompt, by a slot that becomes the sentence's own
    try {
      s->plain->take(std::as_const(*next.request).search());
      auto const& processors = next.request->processors.all();
      s->search = s->plain.get();
      if (!processors.empty()) {
        if (s->processed == nullptr) s->processed = processors.front()->processed();
        s->processed->use(*s->plain, processors), s->search = s->processed.get();
      }
      s->slot_count = s->search->slot_count();
      require(s->slot_count >= 1, "slot_count", s->slot_count, "a search needs at least 1");
      auto const& request = *next.request;
      auto const length = std::max<std::int64_t>(1, std::ssize(request.prompt)) + std::ssize(request.prefix);
      if (length > state_.cache.capacity()) {
        results_.refuse(next.id, Failure::no_room,
                        "prompt and prefix have " + std::to_string(length) + " tokens, and the model has room for " +
                            std::to_string(state_.cache.capacity()));
        return true;
      }
      auto const base = place(*s, request, length, held);
      if (!base) {
        state_.running.give_back(std::move(s));
        return false;
      }
      s->base = *base;
    } catch (...) {
      results_.refuse_by_exception(next.id, Failure::search);
      return true;
    }
    s->id = next.id, s->request = std::move(next.request);
    s->age = s->idle = 0, s->turn = back_++, s->ended = false, s->share = 0;
    try {
      auto const sentence = begin_search(state_, *s);
      state_.tell([&](AnyTrace& trace) { trace.began(s->id, sentence); });
      state_.tell([&](AnyTrace& trace) { trace.admitted(s->id, s->base, s->slot_count); });
    } catch (std::invalid_argument const&) {
      return refuse(*s, Failure::bad_request);
    } catch (NoRoom const&) {
      return refuse(*s, Failure::no_room);
    } catch (...) {
      return refuse(*s, Failure::search);
    }
    if (held > 0) {  // nothing is started: the sentence continues a kept slot
      s->prefill.skip(static_cast<std::size_t>(held));
      state_.statistics.shared += static_cast<std::uint64_t>(held);
    } else {
      sources_.push_back(s->request->source()), starts_.push_back(s->base), places_.push_back(next.place);
      starting_.push_back(s.get());
    }
    state_.running.add(std::move(s));
    return true;
  }

  /// Slots for a sentence, if there are any and the KV cache has room for its tokens. Evicts kept slots as needed. If a kept
  /// slot holds nothing but a prefix of this prompt, or would be evicted, the sentence takes it over with its `held` tokens.
  SLUICE_LAZY std::optional<Slot> place(Running const& s, AnyRequest const& request, std::int64_t length,
                                        std::int32_t& held) {
    auto& cache = state_.cache;
    auto const alive = state_.running.size();
    if (!cache.can_admit(alive)) return std::nullopt;
    auto const shareable = std::span(request.prompt).first(request.prompt.empty() ? 0 : request.prompt.size() - 1);
    auto const match = cache.caches_prefixes() ? prefix_cache_.find(shareable) : PrefixMatch{};
    if (cache.limited()) {
      auto need = length - match.length + s.slot_count;
      for (auto const& one : state_.running)
        need += one->prefill.done() ? one->slot_count
                                    : std::ssize(one->prefill.rest()) - (one->prefill.fresh() ? one->share : 0);
      while (need > cache.free_tokens() && cache.evict(match.slot)) {
      }
      if (need > cache.free_tokens() && alive > 0) return std::nullopt;
    }
    auto const take_over = [&]() -> std::optional<Slot> {
      if (s.slot_count > 1 || !match.slot || !cache.take_over(*match.slot)) return std::nullopt;
      held = match.length;
      return match.slot;
    };
    if (match.slot && match.length == cache.slot_blocks.tree().length(*match.slot))
      if (auto const own = take_over()) return own;
    auto base = cache.slot_blocks.take(s.slot_count);
    while (!base && cache.evict(match.slot)) base = cache.slot_blocks.take(s.slot_count);
    if (!base) base = take_over();
    while (!base && cache.evict()) base = cache.slot_blocks.take(s.slot_count);
    return base;
  }

  /// Handles a sentence that could not be started even alone.
  SLUICE_LAZY void fail_or_preempt(Running& s) {
    if (is_no_room(problem_) && state_.running.size() > 1) {
      state_.cache.stop_admission();
      preemption_.preempt(s);
    } else {
      results_.finish(s, is_no_room(problem_) ? Failure::no_room : Failure::source, describe(problem_), problem_,
                      false);
    }
  }

  SLUICE_LAZY bool refuse(Running& s, Failure why) {
    results_.refuse_by_exception(s.id, why);
    state_.cache.give_back(s.base, s.slot_count, false);
    return true;
  }

  /// Has the model start some of those just admitted. Returns how many it started; fewer than `count` if it threw, and
  /// problem_ then says what.
  SLUICE_LAZY std::size_t start_batch(std::size_t first, std::size_t count) {
    auto const slot_numbers = std::span<Slot const>(starts_).subspan(first, count);
    std::size_t begun = 0;
    try {
      if (encoded_ != nullptr) {
        encoded_->start(state_.model, std::span(places_).subspan(first, count), slot_numbers, begun);
      } else {
        ++state_.statistics.encoder_calls, state_.statistics.encoded += count;
        state_.model.start(std::span<void const* const>(sources_).subspan(first, count), slot_numbers);
        begun = count;
      }
    } catch (...) {
      problem_ = std::current_exception();
    }
    for (auto const slot : slot_numbers.first(begun)) state_.cache.slot_blocks.start(slot);
    return begun;
  }

  LoopState& state_;
  Results& results_;
  Preemption preemption_;
  PrefixCache prefix_cache_;
  bool wait_for_encoder_;
  Buffer<Live> live_;
  Buffer<void const*> sources_;
  std::vector<Slot> starts_;
  Buffer<Running*> starting_;
  Buffer<std::size_t> places_;  // [starting]: position in its encoded batch
  std::shared_ptr<EncodedBatch> encoded_;
  std::int64_t back_ = 0;  // the next Live::turn at the end
  std::exception_ptr problem_;
};

}  // namespace sluice::inline v0::detail
