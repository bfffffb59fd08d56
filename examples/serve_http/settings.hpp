// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a request may say, whichever its shape, and what it may not.
#pragma once

#include <translate/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <serve_http/fields.hpp>
#include <string>
#include <vector>

namespace serve {

/// The most that one request may ask for.
struct Bounds {
  std::size_t sentences = 128;
  std::int32_t width = 64;  ///< hypotheses, samples
  std::int32_t length = 512;
  std::chrono::milliseconds time{60000};
  bool guesses = false;  ///< whether the model proposes tokens: blockwise search
};

/// How all sentences of a request are decoded.
struct Settings {
  translate::Options search{};          ///< of translate's command line, as far as one request may choose
  std::vector<std::string> forbid{};    ///< phrases
  std::vector<std::string> glossary{};  ///< lines: source term, tab, target term
  std::vector<std::string> stop{};      ///< strings
  bool scores = true;                   ///< of greedy search, too, which does not need them
};

/// One sentence, or prompt.
struct Ask {
  std::size_t number = 1;  ///< within the request, from 1
  std::string text{};
  std::string prefix{};
  std::string constraints{};  ///< a line of translate's --constraints; empty: none
};

/// One request.
struct Task {
  Settings settings{};
  std::vector<Ask> asks{};
  std::chrono::milliseconds time{};  ///< after which it is late
  bool stream = false;
};

/// A request to /translate.
/// \throws BadField  for whatever makes no sense
Task read_task(Fields& fields, Bounds const& bounds);

}  // namespace serve
