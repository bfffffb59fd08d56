// SPDX-License-Identifier: Apache-2.0
/// \file
/// A server, from its first connection to its last answer: the parts that do not depend on the model.
#pragma once

#include <functional>
#include <http/backend.hpp>
#include <http/flight.hpp>
#include <http/service_options.hpp>
#include <httplib.h>
#include <string>
#include <vector>

namespace serve {

/// A program's own path, besides those that all have: /v1/completions, /v1/models, /metrics, /health.
struct Endpoint {
  using Answer = std::function<void(House const&, httplib::Request const&, httplib::Response&)>;
  std::string path;
  bool posts;  ///< POST, with a body that has been read; else GET
  Answer answer;
};

/// Blocks the signals that end the server until run_service() waits for them. Call it before starting threads, which inherit it.
void hold_signals();

/// Serves until a signal ends it and all requests have been answered. Prints its address on standard output.
/// \param program  its name, for messages
/// \throws std::runtime_error  for an address that cannot be used
int run_service(std::string const& program, Backend& backend, ServiceOptions const& options,
                std::vector<Endpoint> const& own);

/// The whole of a main(): exit code 2 for invalid options or files, 1 for failures, with a message.
int run_program(std::string const& program, std::function<int()> const& run);

}  // namespace serve
