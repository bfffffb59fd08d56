// SPDX-License-Identifier: Apache-2.0
/// \file
/// A request that has been read, for any endpoint and any model.
#pragma once

#include <sluice/core/types.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace serve {

/// Limits of one request.
struct Bounds {
  std::size_t sentences = 128;  ///< or prompts
  std::int32_t width = 64;      ///< hypotheses, samples
  std::int32_t length = 512;
  std::chrono::milliseconds time{60000};
};

/// How all sentences of a request are decoded: each Backend has its own kind.
struct Settings {
  Settings() = default;
  Settings(Settings const&) = default;
  Settings& operator=(Settings const&) = default;
  virtual ~Settings() = default;
};

/// One sentence, or prompt.
struct Ask {
  std::size_t number = 1;  ///< within the request, from 1
  std::string text{};
  std::vector<sluice::Token> tokens{};               ///< in place of `text`, where Backend::token_count() is not 0
  bool special = false;                              ///< names of control tokens in `text` are those tokens
  std::shared_ptr<std::string const> prefix{};       ///< none: empty
  std::shared_ptr<std::string const> constraints{};  ///< a line of translate's --constraints; none: no constraints
};

/// One request.
struct Task {
  std::shared_ptr<Settings const> settings{};
  std::vector<Ask> asks{};
  std::chrono::milliseconds time{};  ///< after which it is late
  bool stream = false;
};

}  // namespace serve
