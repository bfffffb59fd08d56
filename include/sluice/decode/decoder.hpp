// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loop: joins the plans of all sentences that step into one call of the model.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/schedule.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/trace.hpp>
#include <sluice/decode/loop/check_answer.hpp>
#include <sluice/decode/loop/orders.hpp>
#include <sluice/decode/loop/roster.hpp>
#include <sluice/decode/loop/slot_blocks.hpp>
#include <sluice/decode/loop/step_times.hpp>
#include <sluice/decode/loop/waiting_queue.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/schedule/intake.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Decodes sentences with a model, in one thread:
///
///     Decoder decoder(model, search, schedule);
///     decoder.submit({.source = s});                       // as often as you like, also between steps
///     while (decoder.step())                               // one round; false: nobody alive, nobody waiting
///       while (decoder.poll(result)) use(result);          // in the order in which sentences end
///     while (decoder.poll(result)) use(result);
///
/// A request that fails has its own Failure; the others never notice. Neither batch nor schedule changes a result (given a
/// model whose rows do not depend on each other). More threads = more decoders, over models that share their weights.
///
/// \tparam M  the model; it belongs to this decoder while the decoder lives
/// \tparam E  what turns the model's answer into candidates; LogSoftmaxTopK for models that give scores
/// \tparam T  a trace, see NoTrace
template <Model M, Search S, Schedule P = Batched, Expander<Answer<M>> E = LogSoftmaxTopK, class T = NoTrace>
class Decoder {
 public:
  using Source = typename M::Source;
  using SearchRequest = Request<Source, S>;
  static_assert(
      abilities<M>().roll_back || !needs<S>().roll_back,
      "sluice: this search rolls the model back, and the model does not say that it can (Abilities::roll_back); "
      "wrap it in sluice::Restarting, or choose another search");
  static_assert(
      abilities<M>().blocks || !needs<S>().blocks,
      "sluice: this search feeds several tokens of a sentence at once, and the model does not say that it takes them "
      "(Abilities::blocks); wrap it in sluice::TokenByToken, or choose another search");
  static_assert(abilities<M>().include(needs<S>()),
                "sluice: this search needs abilities (S::needs) that the model does not claim (M::abilities)");

  /// Throws std::invalid_argument for options of search or schedule, or a vocabulary, that make no sense.
  explicit Decoder(M& model, S search = {}, P schedule = {}, E expander = {}, T trace = {}, Intake const& intake = {})
      : model_(model),
        search_(std::move(search)),
        schedule_(std::move(schedule)),
        expander_(std::move(expander)),
        trace_(std::move(trace)),
        vocabulary_(model.vocabulary()),
        limits_(sluice::limits(model)),
        blocks_(model, limits_.slots),
        waiting_(model, intake) {
    if constexpr (requires { schedule_.adapt(abilities<M>()); }) schedule_.adapt(abilities<M>());
    if constexpr (requires { schedule_.check(); }) schedule_.check();
    vocabulary_.check();
    if constexpr (requires { expander_.vocabulary_size(); })
      require(expander_.vocabulary_size() == vocabulary_.size, "projection.vocabulary_size",
              expander_.vocabulary_size(), "the model's vocabulary has " + std::to_string(vocabulary_.size));
    check(search_);
  }
  Decoder(M& model, S search, P schedule, Intake const& intake)
      : Decoder(model, std::move(search), std::move(schedule), {}, {}, intake) {}
  Decoder(Decoder const&) = delete;
  Decoder& operator=(Decoder const&) = delete;
  ~Decoder() {
    for (auto const& s : running_) blocks_.give_back(s->base, s->slots);
  }

  /// Queues a request and returns its id (0, 1, 2 ...). Never throws for what the request says: one that makes no sense
  /// ends with Failure::bad_request, at once or when it would be admitted.
  std::uint64_t submit(SearchRequest request) {
    auto const id = next_id_++;
    try {
      sluice::check(request, vocabulary_);
      if (request.search) check(*request.search);
      auto const length = sluice::source_length(std::as_const(model_), request.source);
      waiting_.push(id, std::move(request), length);
    } catch (...) {
      refuse(id, Failure::bad_request, describe(std::current_exception()), std::current_exception());
    }
    return id;
  }

  /// Admits, chooses, plans, runs, advances: one round. Returns false when nothing is running or waiting. If the model (or
  /// the expander) throws, the sentences of this step end with Failure::model and the exception goes on to the caller; the
  /// decoder stays usable.
  bool step() {
    stopwatch_.restart();
    auto const answered = statistics_.sentences;
    admit();
    choose();
    if (chosen_.empty()) {
      stopwatch_.book(statistics_.seconds.search);
      return !waiting_.empty() && statistics_.sentences > answered;  // whoever would have stepped has failed
    }
    plan();
    problem_ = run();
    advance();
    running_.sweep();
    ++statistics_.steps;
    stopwatch_.book(statistics_.seconds.search);
    if (problem_ != nullptr) std::rethrow_exception(problem_);
    return true;
  }

  /// Takes a result that is ready; false if there is none.
  bool poll(Result& result) {
    if (results_.empty()) return false;
    result = std::move(results_.front());
    results_.pop_front();
    return true;
  }

  /// Ends a waiting or running request with Failure::cancelled (or another) and what hypotheses there are. False if it
  /// has ended already (or never was). O(waiting + running).
  bool cancel(std::uint64_t id, Failure why = Failure::cancelled) {
    if (waiting_.remove(id)) {
      refuse(id, why, std::string(name(why)) + " while waiting", {});
      return true;
    }
    for (auto const& s : running_)
      if (s->id == id) {
        end(*s, why, std::string(name(why)) + " while running");
        running_.sweep();
        return true;
      }
    return false;
  }

  /// Ends all that is waiting or running, with what hypotheses there are.
  void end_all(Failure why, std::string const& message, std::exception_ptr const& cause = {}) {
    for (auto const& s : running_) end(*s, why, message, cause);
    running_.sweep();
    while (!waiting_.empty()) {
      auto const id = waiting_[0].id;
      waiting_.remove(id);
      refuse(id, why, message, cause);
    }
  }

  /// Calls f(id, tokens) for every live sentence of the last step of which wanted(id), with what its result will begin
  /// with, as far as that is certain. Whoever's search throws then ends with Failure::search.
  template <class Wanted, class F>
    requires SettlingSearch<S>
  void settled(Wanted&& wanted, F&& f) {
    struct Sweep {  // also where f throws
      explicit Sweep(Decoder& d) : decoder(d) {}
      Sweep(Sweep const&) = delete;
      Sweep& operator=(Sweep const&) = delete;
      ~Sweep() { decoder.running_.sweep(); }
      Decoder& decoder;
    } const sweep(*this);
    for (auto const& s : running_) {
      if (s->idle != 0 || s->age == 0 || !wanted(s->id)) continue;
      try {
        s->search->settled(s->state, settled_);
      } catch (...) {
        end(*s, Failure::search, describe(std::current_exception()), std::current_exception(), false);
        continue;
      }
      f(s->id, std::span<Token const>(settled_));
    }
  }

  std::size_t waiting() const { return waiting_.size(); }  ///< requests not yet admitted
  std::size_t running() const { return running_.size(); }  ///< sentences alive
  Statistics const& statistics() const { return statistics_; }
  E const& expander() const { return expander_; }
  T& trace() { return trace_; }

 private:
  using Waiting = detail::WaitingQueue<M, SearchRequest>;
  using Running = detail::Running<Source, S>;

  void check(S const& search) const {
    sluice::check(search);
    require(search.slots() <= limits_.slots, "slots", search.slots(),
            "the search needs more than the model's limit of " + std::to_string(limits_.slots));
  }

  void view() {
    live_.clear();
    for (auto const& s : running_) {
      Progress progress;
      try {
        progress = s->search->progress(s->state);
      } catch (...) {
        end(*s, Failure::search, describe(std::current_exception()), std::current_exception(), false);
        running_.sweep();
        return view();
      }
      live_.push_back({.length = progress.length,
                       .width = progress.width,
                       .rows = progress.rows > 0 ? progress.rows : progress.width,
                       .block = progress.block,
                       .age = s->age,
                       .turn = s->turn,
                       .source_length = s->source_length});
    }
  }

  void admit() {
    while (!waiting_.empty()) {
      view();
      auto wanted = std::size_t{0};
      do wanted = schedule_.admit(live_, waiting_.lengths());
      while (wanted > 0 && wanted >= waiting_.arranged() && waiting_.look_further());
      wanted = std::min(wanted, waiting_.lengths().size());
      if (wanted == 0 || !admit(wanted)) break;
    }
    waiting_.feed();
  }

  /// Starts up to `count` waiting sentences; false if there were not slots for all.
  bool admit(std::size_t count) {
    while (count > 0) {
      stopwatch_.book(statistics_.seconds.search);
      auto const run = waiting_.ready(count, [this](auto const& group) {
        statistics_.encoder_calls += group.calls, statistics_.encoded += group.sources.size();
        if (waiting_.threaded()) statistics_.seconds.beside += group.seconds;
      });
      stopwatch_.book(statistics_.seconds.encode);
      if (auto const taken = admit(run); taken < run.count) return false;
      count -= run.count;
    }
    return true;
  }

  std::size_t admit(typename Waiting::Run const& run) {
    sources_.clear(), starts_.clear(), places_.clear();
    group_ = run.group;
    auto const alive = running_.size();
    std::size_t taken = 0;
    for (; taken < run.count; ++taken) {
      auto& next = waiting_[0];
      try {
        auto const slots = static_cast<std::int32_t>((next.request.search ? *next.request.search : search_).slots());
        auto const base = blocks_.take(slots);
        if (!base) break;
        begin(next, *base, slots);
      } catch (...) {
        refuse(next.id, Failure::search, describe(std::current_exception()), std::current_exception());
      }
      waiting_.pop(1);
    }
    stopwatch_.book(statistics_.seconds.search);
    if (!starts_.empty())
      for (auto i = start(0, starts_.size()); i < starts_.size(); ++i)  // whoever cannot be started alone is to blame
        if (start(i, 1) == 0) end(running_[alive + i], Failure::source, describe(problem_), problem_, false);
    running_.sweep();
    group_.reset();  // its encoded sentences go with the last of them
    stopwatch_.book(statistics_.seconds.encode);
    return taken;
  }

  void begin(typename Waiting::Entry& next, Slot base, std::int32_t slots) {
    auto s = running_.take();
    try {
      s->id = next.id, s->request = std::move(next.request);
      s->search = s->request.search ? &*s->request.search : &search_;
      s->base = base, s->slots = slots, s->source_length = next.source_length;
      s->age = s->idle = 0, s->turn = back_++, s->ended = false;
      if (s->request.prompt.empty()) s->request.prompt.assign(1, vocabulary_.bos);
      if (auto& shortlist = s->request.shortlist)
        shortlist->insert(vocabulary_.eos), shortlist->insert(s->request.prefix);
      s->search->start(s->state, {.vocabulary = &vocabulary_,
                                  .prompt = s->request.prompt,
                                  .prefix = s->request.prefix,
                                  .source_length = s->source_length,
                                  .seed = s->request.seed.value_or(s->id),
                                  .abilities = abilities<M>(),
                                  .limits = limits_});
      if constexpr (requires(TokenSet & set) { s->search->insert_into(set); })
        if (auto& shortlist = s->request.shortlist) {
          auto const given = *shortlist;
          s->search->insert_into(*shortlist);
          for (auto const token : vocabulary_.never)  // the bos that a phrase begins with
            if (!given.contains(token)) shortlist->erase(token);
        }
      if constexpr (requires { trace_.admitted(s->id, base, slots); }) trace_.admitted(s->id, base, slots);
    } catch (std::invalid_argument const& e) {
      blocks_.give_back(base, slots);
      return refuse(next.id, Failure::bad_request, e.what(), std::current_exception());
    } catch (...) {
      blocks_.give_back(base, slots);
      return refuse(next.id, Failure::search, describe(std::current_exception()), std::current_exception());
    }
    sources_.push_back(&s->request.source), starts_.push_back(base), places_.push_back(next.place);
    running_.add(std::move(s));
  }

  /// Has the model start some of those just admitted. Returns how many have been: all, or fewer, and the problem, if it
  /// throws.
  std::size_t start(std::size_t first, std::size_t count) {
    auto const slots = std::span<Slot const>(starts_).subspan(first, count);
    std::size_t begun = 0;
    try {
      if (group_ != nullptr) {
        if constexpr (EncodingModel<M>) group_->start(model_, std::span(places_).subspan(first, count), slots, begun);
      } else {
        ++statistics_.encoder_calls, statistics_.encoded += count;
        model_.start(std::span<Source const* const>(sources_).subspan(first, count), slots);
        begun = count;
      }
    } catch (...) {
      problem_ = std::current_exception();
    }
    for (auto const slot : slots.first(begun)) blocks_.hold(slot);
    return begun;
  }

  void choose() {
    chosen_.clear();
    view(), picked_.clear();
    if (running_.empty()) return;
    schedule_.select(live_, picked_);
    if (picked_.empty()) throw std::logic_error("sluice: the schedule chose nobody although sentences are alive");
    if constexpr (!abilities<M>().ragged) detail::keep_alike(picked_, live_);
    keys_.clear();
    for (auto const& one : live_) keys_.push_back(one.turn);
    detail::sort_by(picked_, keys_);
    front_ -= std::ssize(picked_);
    for (std::ptrdiff_t turn = front_; auto const i : picked_) running_[static_cast<std::size_t>(i)].turn = turn++;
    keys_.clear();
    for (auto const& s : running_) keys_.push_back(s->base);
    detail::sort_by(picked_, keys_);
    for (auto const i : picked_) {
      chosen_.push_back(&running_[static_cast<std::size_t>(i)]);
      chosen_.back()->idle = -1;
      statistics_.expansions += static_cast<std::uint64_t>(live_[static_cast<std::size_t>(i)].width);
    }
    for (auto const& s : running_) ++s->age, ++s->idle;
  }

  void plan() {
    step_.clear();
    for (auto* s : chosen_) {
      auto const rows = step_.rows.size(), lines = step_.queries.size(), released = step_.released.size();
      auto const groups = step_.groups.size();
      try {
        Plan plan(step_, s->base);
        s->search->plan(s->state, plan);
        plan.restrict_to(s->request.shortlist ? &*s->request.shortlist : nullptr, s->request.direction);
      } catch (...) {
        step_.rows.resize(rows), step_.queries.resize(lines), step_.released.resize(released);
        step_.groups.resize(groups);
        end(*s, Failure::search, describe(std::current_exception()), std::current_exception(), false);
      }
      s->first = lines, s->lines = step_.queries.size() - lines, s->rows = step_.rows.size() - rows;
    }
    blocks_.release(step_.released);
    if constexpr (requires { trace_.planned(std::as_const(step_)); }) trace_.planned(std::as_const(step_));
  }

  /// The model and the expander; returns what they threw.
  std::exception_ptr run() {
    answers_ = {};
    if (step_.rows.empty()) return nullptr;
    statistics_.count(step_);
    for (auto const& row : step_.rows) blocks_.hold(row.to);
    stopwatch_.book(statistics_.seconds.search);
    try {
      auto&& answer = model_.step(std::span<Row const>(step_.rows));
      stopwatch_.book(statistics_.seconds.model);
      detail::check_answer(answer, step_.queries.size(), vocabulary_.size);
      answers_ = expander_.expand(answer, step_.queries, step_.groups);
      stopwatch_.book(statistics_.seconds.output);
    } catch (...) {
      answers_ = {};
      return std::current_exception();
    }
    if constexpr (requires { trace_.answered(std::as_const(step_), std::as_const(answers_)); })
      trace_.answered(std::as_const(step_), std::as_const(answers_));
    return nullptr;
  }

  void advance() {
    drafts_.clear();
    if constexpr (ProposingModel<M> && DraftingSearch<S>) learn();
    for (auto* s : chosen_) {
      if (s->ended) continue;
      if (problem_ != nullptr && s->rows > 0) {
        end(*s, Failure::model, describe(problem_), problem_);
        continue;
      }
      auto const answer = s->lines > 0 ? answers_.window(s->first, s->lines) : Expansion{};
      if (!answer.valid()) {
        end(*s, Failure::not_a_number, "the model's scores hold a NaN or +infinity");
        continue;
      }
      auto over = false;
      try {
        over = s->search->advance(s->state, answer);
        if (!over) draft(*s);
      } catch (...) {
        end(*s, Failure::search, describe(std::current_exception()), std::current_exception(), false);
      }
      if (over) end(*s);
    }
    if constexpr (ProposingModel<M>) propose();
  }

  /// What the step took, and its guesses.
  void learn() {
    std::size_t tokens = 0;
    for (auto const& row : step_.rows) tokens += row.tokens.size();
    auto const seconds = statistics_.seconds.model + statistics_.seconds.output;
    auto const rows = static_cast<double>(step_.rows.size());
    times_.note(seconds - std::exchange(seconds_, seconds), rows, static_cast<double>(tokens) - rows);
    added_ = times_.added(rows);
  }

  void propose() {
    if (drafts_.empty()) return;
    stopwatch_.book(statistics_.seconds.search);
    try {
      model_.propose(drafts_);
      stopwatch_.book(statistics_.seconds.model);
    } catch (...) {
      problem_ = std::current_exception();
      for (auto* s : chosen_)
        if (!s->ended && std::ranges::find(drafts_, s->base, &Draft::slot) != drafts_.end())
          end(*s, Failure::model, describe(problem_), problem_);
    }
  }

  void draft(Running& s) {
    if constexpr (ProposingModel<M> && DraftingSearch<S>) {
      Draft d{.slot = s.base, .added = added_, .explore = times_.explore()};
      if (s.search->draft(s.state, d)) drafts_.push_back(d);
    }
  }

  /// Ends a sentence, with what hypotheses there are if its state can be trusted.
  void end(Running& s, Failure why = Failure::none, std::string message = {}, std::exception_ptr cause = {},
           bool usable = true) {
    Result result{.id = s.id};
    if (usable) try {
        s.search->finish(s.state, result);
      } catch (...) {
        why = Failure::search, message = describe(std::current_exception()), cause = std::current_exception();
      }
    if (why != Failure::none) result.fail(why, std::move(message), std::move(cause));
    if (!result.hypotheses.empty()) statistics_.tokens += result.hypotheses.front().tokens.size();
    s.ended = true;  // whatever throws from here on, there is one result
    give(std::move(result));
    blocks_.give_back(s.base, s.slots);
  }

  void refuse(std::uint64_t id, Failure why, std::string message, std::exception_ptr cause) {
    Result result{.id = id};
    result.fail(why, std::move(message), std::move(cause));
    give(std::move(result));
  }

  void give(Result result) {
    ++statistics_.sentences;
    if constexpr (requires { trace_.ended(std::as_const(result)); }) trace_.ended(std::as_const(result));
    results_.push_back(std::move(result));
  }

  M& model_;
  S search_;
  P schedule_;
  E expander_;
  T trace_;
  Vocabulary vocabulary_;
  Limits limits_;
  detail::SlotBlocks<M> blocks_;
  Statistics statistics_;
  detail::Stopwatch stopwatch_;
  detail::StepTimes times_;          // of blockwise decoding, and the next two
  double seconds_ = 0, added_ = -1;  // of all steps so far; by a guess

  std::uint64_t next_id_ = 0;
  Waiting waiting_;
  detail::Roster<Running> running_;
  std::deque<Result> results_;

  std::vector<Live> live_;
  std::vector<std::int32_t> picked_;
  std::vector<std::int64_t> keys_;
  std::vector<Running*> chosen_;
  std::int64_t front_ = 0, back_ = 0;  // of Live::turn: the first that is taken, the next behind
  std::vector<Source const*> sources_;
  std::vector<Slot> starts_;
  std::vector<std::size_t> places_;  // in the group that has encoded them
  std::shared_ptr<typename Waiting::Group> group_;
  StepPlan step_;
  Expansion answers_;
  std::vector<Draft> drafts_;
  std::vector<Token> settled_;
  std::exception_ptr problem_;
};

}  // namespace sluice::inline v0
