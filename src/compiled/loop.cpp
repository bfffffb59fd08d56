// SPDX-License-Identifier: Apache-2.0
// The loop and the server of the compiled library.
#include <sluice/core/detail/processed_search.hpp>
#include <sluice/decode/detail/compiled_loop.hpp>
#include <sluice/decode/detail/compiled_serving.hpp>
#include <sluice/decode/detail/loop.hpp>
#include <sluice/decode/detail/run_to_end_definition.hpp>
#include <sluice/decode/detail/serving.hpp>
#include <sluice/decode/detail/typed.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace sluice::inline v0::detail {

template std::unique_ptr<AnyProcessed> make_processed<void>();

namespace {

struct LoopOf final : AnyLoop {
  LoopOf(AnyModelSide& model, AnySearches const& searches, AnySchedule const& schedule, AnyTrace* trace,
         Intake const& intake)
      : loop(model, searches, schedule, trace, intake) {}

  std::uint64_t submit(std::unique_ptr<AnyRequest> request) override { return loop.submit(std::move(request)); }
  void draw_from(Supply* supply) override { loop.draw_from(supply); }
  bool step() override { return loop.step(); }
  std::exception_ptr take_trace_problem() override { return loop.take_trace_problem(); }
  bool poll(Result& result) override { return loop.poll(result); }
  bool cancel(std::uint64_t id, Failure why, std::string const& message) override {
    return loop.cancel(id, why, message);
  }
  bool append(std::uint64_t id, std::function<void(AnyRequest&)> const& change) override {
    return loop.append(id, change);
  }
  void end_all(Failure why, std::string const& message, std::exception_ptr const& cause) override {
    loop.end_all(why, message, cause);
  }
  void settled(Wanted const& wanted, Tell const& tell) override { loop.settled(wanted, tell); }
  std::size_t waiting() const override { return loop.waiting(); }
  std::size_t running() const override { return loop.running(); }
  Statistics const& statistics() const override { return loop.statistics(); }

  Loop loop;
};

struct ServingOf final : AnyServing {
  ServingOf(CompiledLoop& loop, ServerOptions const& options, bool settles) : serving(loop, options, settles) {}

  std::optional<std::uint64_t> submit(std::unique_ptr<AnyRequest> request, Delivery delivery) override {
    return serving.submit(std::move(request), std::move(delivery));
  }
  void cancel(std::uint64_t id) override { serving.cancel(id); }
  void append(std::uint64_t id, std::function<void(AnyRequest&)> change) override {
    serving.append(id, std::move(change));
  }
  void close() override { serving.close(); }
  void drain() override { serving.drain(); }
  std::size_t open() const override { return serving.open(); }
  Statistics statistics() const override { return serving.statistics(); }

  Serving<CompiledLoop> serving;
};

}  // namespace

std::unique_ptr<AnyLoop> make_loop(AnyModelSide& model, AnySearches const& searches, AnySchedule const& schedule,
                                   AnyTrace* trace, Intake const& intake) {
  return std::make_unique<LoopOf>(model, searches, schedule, trace, intake);
}

std::unique_ptr<AnyServing> make_serving(CompiledLoop& loop, ServerOptions const& options, bool settles) {
  return std::make_unique<ServingOf>(loop, options, settles);
}

template void run_to_end<void>(LoopHandle&, ResultOrder, std::function<void(Result&&)> const&);
template void refuse_argument<void>(std::string_view, std::string_view, std::string_view);
template void check_shape<void>(std::ptrdiff_t, std::ptrdiff_t, std::size_t, std::int32_t);
template void check_attachments<void>(Attachments const&, std::size_t);

}  // namespace sluice::inline v0::detail

namespace sluice::inline v0 {

template std::string describe<void>(std::exception_ptr const&);
template void Vocabulary::check<void>() const;

}  // namespace sluice::inline v0
