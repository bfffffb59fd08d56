// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of serve_http.
#pragma once

#include <cstddef>
#include <optional>
#include <serve_http/connection.hpp>
#include <serve_http/settings.hpp>
#include <serve_http/translator.hpp>
#include <string>

namespace serve {

struct Options {
  TranslatorOptions translator{};
  Bounds bounds{};
  Patience patience{};
  std::string address = "127.0.0.1";
  int port = 8080;                ///< 0: any
  std::size_t connections = 512;  ///< served at a time
  std::string token{};            ///< that clients must bring; empty: none
};

/// Nothing if the command line asked for help, which is then printed.
/// \throws text::InputError  for flags and values that make no sense
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace serve
