// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of serve_llama.
#pragma once

#include <http/service_options.hpp>
#include <optional>
#include <serve_llama/continuer.hpp>

namespace serve {

struct LlamaServerOptions {
  ContinuerOptions continuer{};
  ServiceOptions service{};
};

/// Nothing if the command line asked for help, which is then printed.
/// \throws text::InputError  for invalid flags and values
std::optional<LlamaServerOptions> parse_llama(int argc, char const* const* argv);

}  // namespace serve
