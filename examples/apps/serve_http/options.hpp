// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of serve_http.
#pragma once

#include <http/service_options.hpp>
#include <optional>
#include <serve_http/translator.hpp>

namespace serve {

struct Options {
  TranslatorOptions translator{};
  ServiceOptions service{};
};

/// Nothing if the command line asked for help, which is then printed.
/// \throws text::InputError  for invalid flags and values
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace serve
