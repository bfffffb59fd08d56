// SPDX-License-Identifier: Apache-2.0
/// \file
/// Parts of the input with their outputs, and the order in which they are read.
#pragma once

#include <translate/input.hpp>
#include <translate/results.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace translate {

/// Some lines of the input, and where their translations go.
struct Share {
  Part part;
  std::unique_ptr<Results> results;
};

/// Deals shares in the order of the input. While the last sentences of one are decoded the next one is begun, so that no
/// batch runs empty between them. next() is never called by two threads at once.
class Shares {
 public:
  Shares() = default;
  Shares(Shares const&) = delete;
  Shares& operator=(Shares const&) = delete;
  virtual ~Shares() = default;

  virtual std::optional<Share> next() = 0;
  /// All of it is written, now or by an earlier run.
  virtual void complete(Share const&) {}
  /// Called often, whenever a line is done, so that other ranks' requests can be served.
  virtual void serve() {}
};

/// Of translate: all of the input, or one shard.
class OneShare final : public Shares {
 public:
  explicit OneShare(Share share) : share_(std::move(share)) {}
  std::optional<Share> next() override { return std::exchange(share_, std::nullopt); }

 private:
  std::optional<Share> share_;
};

/// \throws text::InputError  if what would be written is what is read
inline void refuse_input(std::filesystem::path const& file, std::filesystem::path const& input) {
  std::error_code ignored;
  if (!input.empty() && std::filesystem::equivalent(file, input, ignored))
    throw text::InputError(file.string() + ": is the input");
}

}  // namespace translate
