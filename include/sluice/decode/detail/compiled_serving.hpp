// SPDX-License-Identifier: Apache-2.0
/// \file
/// The worker of a Server in the compiled library.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/statistics.hpp>
#include <sluice/decode/detail/compiled_loop.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/server_options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace sluice::inline v0::detail {

struct AnyServing : Interface {
  virtual std::optional<std::uint64_t> submit(std::unique_ptr<AnyRequest> request, Delivery delivery) = 0;
  virtual void cancel(std::uint64_t id) = 0;
  virtual void append(std::uint64_t id, std::function<void(AnyRequest&)> change) = 0;
  virtual void close() = 0;
  virtual void drain() = 0;
  virtual std::size_t open() const = 0;
  virtual Statistics statistics() const = 0;
};

/// In the library.
std::unique_ptr<AnyServing> make_serving(CompiledLoop& loop, ServerOptions const& options, bool settles);

/// See Serving.
class CompiledServing {
 public:
  CompiledServing(CompiledLoop& loop, ServerOptions const& options, bool settles)
      : serving_(make_serving(loop, options, settles)) {}

  std::optional<std::uint64_t> submit(std::unique_ptr<AnyRequest> request, Delivery delivery) {
    return serving_->submit(std::move(request), std::move(delivery));
  }
  void cancel(std::uint64_t id) { serving_->cancel(id); }
  void append(std::uint64_t id, std::function<void(AnyRequest&)> change) { serving_->append(id, std::move(change)); }
  void close() { serving_->close(); }
  void drain() { serving_->drain(); }
  std::size_t open() const { return serving_->open(); }
  Statistics statistics() const { return serving_->statistics(); }

 private:
  std::unique_ptr<AnyServing> serving_;
};

}  // namespace sluice::inline v0::detail
