// SPDX-License-Identifier: Apache-2.0
/// \file
/// A server, from its first connection to its last answer: what is the same whatever the model.
#pragma once

#include <functional>
#include <http/backend.hpp>
#include <http/flight.hpp>
#include <http/service_options.hpp>
#include <httplib.h>
#include <string>
#include <vector>

namespace serve {

/// A path of one program's own, beside those that all have: /v1/completions, /v1/models, /metrics, /health.
struct Endpoint {
  using Answer = std::function<void(House const&, httplib::Request const&, httplib::Response&)>;
  std::string path;
  bool posts;  ///< POST, with a body that has been read; else GET
  Answer answer;
};

/// Call it before there are threads, which inherit it: signals to end wait until run_service() asks for them.
void hold_signals();

/// Serves until it is told to end, and everybody has been answered. Says on standard output where.
/// \param program  its name, for messages
/// \throws std::runtime_error  for an address that cannot be had
int run_service(std::string const& program, Backend& backend, ServiceOptions const& options,
                std::vector<Endpoint> const& own);

/// The whole of a main(): exit code 2 for what makes no sense, 1 for what failed, with a message.
int run_program(std::string const& program, std::function<int()> const& run);

}  // namespace serve
