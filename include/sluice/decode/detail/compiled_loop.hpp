// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loop in the compiled library: declared here, one virtual call for each function of Loop.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace sluice::inline v0::detail {

struct AnyLoop : Interface {
  using Wanted = std::function<bool(std::uint64_t)>;
  using Tell = std::function<void(std::uint64_t, std::span<Token const>)>;

  virtual std::uint64_t submit(std::unique_ptr<AnyRequest> request) = 0;
  virtual void draw_from(Supply* supply) = 0;
  virtual bool step() = 0;
  virtual std::exception_ptr take_trace_problem() = 0;
  virtual bool poll(Result& result) = 0;
  virtual bool cancel(std::uint64_t id, Failure why, std::string const& message) = 0;
  virtual bool append(std::uint64_t id, std::function<void(AnyRequest&)> const& change) = 0;
  virtual void end_all(Failure why, std::string const& message, std::exception_ptr const& cause) = 0;
  virtual void settled(Wanted const& wanted, Tell const& tell) = 0;
  virtual std::size_t waiting() const = 0;
  virtual std::size_t running() const = 0;
  virtual Statistics const& statistics() const = 0;
};

/// In the library.
std::unique_ptr<AnyLoop> make_loop(AnyModelSide& model, AnySearches const& searches, AnySchedule const& schedule,
                                   AnyTrace* trace, Intake const& intake);

/// See Loop.
class CompiledLoop {
 public:
  CompiledLoop(AnyModelSide& model, AnySearches const& searches, AnySchedule const& schedule, AnyTrace* trace,
               Intake const& intake)
      : loop_(make_loop(model, searches, schedule, trace, intake)) {}

  std::uint64_t submit(std::unique_ptr<AnyRequest> request) { return loop_->submit(std::move(request)); }
  void draw_from(Supply* supply) { loop_->draw_from(supply); }
  bool step() { return loop_->step(); }
  std::exception_ptr take_trace_problem() { return loop_->take_trace_problem(); }
  bool poll(Result& result) { return loop_->poll(result); }
  bool cancel(std::uint64_t id, Failure why, std::string const& message = {}) {
    return loop_->cancel(id, why, message);
  }
  bool append(std::uint64_t id, std::function<void(AnyRequest&)> const& change) { return loop_->append(id, change); }
  void end_all(Failure why, std::string const& message, std::exception_ptr const& cause) {
    loop_->end_all(why, message, cause);
  }
  template <class Wanted, class F>
  void settled(Wanted&& wanted, F&& f) {
    loop_->settled(std::ref(wanted), std::ref(f));
  }
  std::size_t waiting() const { return loop_->waiting(); }
  std::size_t running() const { return loop_->running(); }
  Statistics const& statistics() const { return loop_->statistics(); }

 private:
  std::unique_ptr<AnyLoop> loop_;
};

}  // namespace sluice::inline v0::detail
