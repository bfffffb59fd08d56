// SPDX-License-Identifier: Apache-2.0
/// \file
/// A decoder for many threads: any thread submits, one worker steps.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/detail/misfits.hpp>
#include <sluice/decode/detail/serving_handle.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server_options.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sluice::inline v0 {

/// Decodes requests as they come, with continuous batching:
///
///     Server server(model, BeamSearch{.width = 5}, Streaming{.size = 64, .refill_below = 1});
///     auto result = server.submit({.source = s});              // a std::future<Result>; or with callbacks:
///     server.submit({.source = s}, {.done = ..., .delta = ..., .deadline = ...});
///
/// Every request that is not refused gets exactly one result, even if it fails, is late, is cancelled, or is left when the server
/// is destroyed. Results are those of decode(), bit for bit (samples: if the request has a seed, since ids depend on the order
/// of arrival).
///
/// All functions except trace() may be called from any thread. Only the worker may use the model while the server lives.
///
/// \tparam T  a trace, see NoTrace: called in the worker's thread; its exceptions are dropped
template <Model M, Search S, Schedule P = Streaming, detail::ExpanderOrDefault<Answer<M>> E = LogSoftmaxTopK,
          class T = NoTrace>
class SLUICE_ABI_TAG Server {
 public:
  using Source = typename M::Source;
  using SearchRequest = Request<Source, S>;
  using Clock = ServerClock;

  /// Throws std::invalid_argument for options that make no sense, before any work.
  explicit Server(M& model, S search = {}, P schedule = usual(), ServerOptions const& options = {}, E expander = {},
                  T trace = {})
      : model_(model),
        decoder_(model, std::move(search), std::move(schedule), std::move(expander), std::move(trace),
                 impatient(options)),
        serving_(decoder_.loop(), options, SettlingSearch<S>) {}

  /// Queues a request and returns its id (0, 1, 2 ...). Returns nothing, and never calls `done`, if the request is refused: the
  /// server is closed, or the queue is full and ServerOptions::full says refuse (or this is the worker's thread).
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved in a call that depends on types
  std::optional<std::uint64_t> submit(SearchRequest request, Delivery delivery) {
    return serving_.submit(decoder_.wrap(std::move(request)), std::move(delivery));
  }

  /// The same with a future. A refused request's result has Failure::refused, and no id.
  std::future<Result> submit(SearchRequest request) { return submit(std::move(request), (Clock::time_point::max)()); }
  /// Anything else is a compile error that says what was expected.
  template <class X>
    requires(!std::convertible_to<X, SearchRequest>)
  std::future<Result> submit(X&&) {
    static_assert(detail::refuse_request<std::remove_cvref_t<X>, SearchRequest>());
    return {};
  }
  template <class X = detail::Anything>
  std::future<Result> submit(detail::AnyFields const&) {
    static_assert(detail::refuse_request<X, SearchRequest>());
    return {};
  }
  template <std::same_as<Clock::time_point> Time>
  std::future<Result> submit(SearchRequest request, Time deadline) {
    auto const promise = std::make_shared<std::promise<Result>>();
    auto future = promise->get_future();
    Delivery delivery{.done = [promise](Result result) { promise->set_value(std::move(result)); },
                      .deadline = deadline};
    if (!submit(std::move(request), std::move(delivery))) {
      Result result;
      result.fail(Failure::refused, "the queue is full or the server closed");
      promise->set_value(std::move(result));
    }
    return future;
  }

  /// Ends a request with Failure::cancelled and the hypotheses so far, before the next step. Does nothing if it has ended.
  void cancel(std::uint64_t id) { serving_.cancel(id); }

  /// Adds to the source of a request, before the next step, by append(source, more...) of the model in the worker's thread, see
  /// GrowingModel. What is given is moved or copied; what it refers to must live until the request has its result. If append throws, the
  /// request ends with Failure::source. Does nothing if it has ended.
  template <class... More>
    requires GrowingModel<M> && requires(M& model, Source& source, std::decay_t<More> const&... more) {
      model.append(source, more...);
    }
  void append(std::uint64_t id, More&&... more) {
    serving_.append(id, [model = &model_, more = std::tuple(std::forward<More>(more)...)](detail::AnyRequest& request) {
      std::apply([&](auto const&... part) { model->append(*static_cast<Source*>(request.source()), part...); }, more);
    });
  }

  /// Refuses requests from now on; serves those in the queue.
  void close() { serving_.close(); }

  /// Waits until every request has been answered. Not from a callback.
  void drain() { serving_.drain(); }

  std::size_t open() const { return serving_.open(); }             ///< requests that have no result yet
  Statistics statistics() const { return serving_.statistics(); }  ///< as of the last step

  /// Belongs to the worker, like the model: callbacks may use it (see Delivery), other threads only while no request is open (see
  /// drain()) and none is submitted.
  T& trace() { return decoder_.trace(); }

 private:
  /// A new request need not wait for others to end.
  static P usual() {
    if constexpr (std::same_as<P, Streaming>) return {.refill_below = 1};
    else return {};
  }
  static Intake impatient(ServerOptions const& options) {
    options.check();
    auto intake = options.intake;
    intake.wait_for_encoder = false;
    return intake;
  }

  M& model_;
  Decoder<M, S, P, E, T> decoder_;
  detail::ServingHandle serving_;  // last: its thread works on the decoder
};

/// The compile error for a class that is no Model.
template <class M, Search S, class... More>
  requires(!Model<M>)
Server(M&, S, More&&...)
->Server<detail::NoModel<M>, S>;

}  // namespace sluice::inline v0
