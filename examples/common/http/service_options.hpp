// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options of a server that do not depend on the model.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <http/connection.hpp>
#include <http/task.hpp>
#include <string>
#include <vector>

namespace serve {

struct ServiceOptions {
  Bounds bounds{};
  Patience patience{};
  std::string address = "127.0.0.1";
  int port = 8080;                ///< 0: any
  std::size_t connections = 512;  ///< served at a time
  std::size_t queue = 1024;       ///< sentences that may wait
  std::size_t share = 0;  ///< rows of one client that are decoded at a time; 0: as many as the decoders' sentences
  std::size_t request_memory = std::size_t{64} << 20;  ///< bytes of one request
  std::size_t memory = std::size_t{512} << 20;         ///< bytes of all requests
  std::vector<std::string> tokens{};                   ///< of which clients must send one; empty: none
};

/// The flags of these options.
class ServiceFlags {
 public:
  /// \param options  holds the defaults
  /// \param share    the name of the flag of ServiceOptions::share
  ServiceFlags(CLI::App& app, ServiceOptions& options, char const* share);
  /// After the command line has been read.
  /// \throws text::InputError  for a file that cannot be read
  void finish();

 private:
  ServiceOptions& options_;
  std::string token_file_;
  double time_, patience_ = 10;
  std::size_t request_memory_ = 64, memory_ = 512;  // MiB
};

}  // namespace serve
