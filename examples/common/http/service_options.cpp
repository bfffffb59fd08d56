// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>

#include <chrono>
#include <http/service_options.hpp>

namespace serve {

namespace {

/// The lines of a file. A token on the command line could be read by every user of the machine.
std::vector<std::string> read_tokens(std::string const& file) {
  auto tokens = text::read_lines(file);
  if (tokens.empty() || tokens[0].empty())
    throw text::InputError("--token-file: " + file + ": its first line is missing or empty");
  std::erase(tokens, "");
  return tokens;
}

std::chrono::milliseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(count));
}

}  // namespace

ServiceFlags::ServiceFlags(CLI::App& app, ServiceOptions& options, char const* share)
    : options_(options), time_(std::chrono::duration<double>(options.bounds.time).count()) {
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  auto const range = [](auto low, auto high) { return CLI::Range(low, high).description(""); };
  auto& bounds = options.bounds;
  add("--address", options.address, "IP", "address to listen on (127.0.0.1: this machine only)");
  add("--port", options.port, "N", "port to listen on (8080; 0: any)")->check(range(0, 65535));
  add("--token-file", token_file_, "FILE", "its lines are bearer tokens, of which clients must send one");
  add("--queue", options.queue, "N", "sentences or prompts that may wait; beyond that 429 (1024)")
      ->check(range(1, 1000000));
  add("--connections", options.connections, "N", "connections served at a time; more wait (512)")
      ->check(range(1, 10000));
  add(share, options.share, "N", "rows of one client that are decoded at a time (as many as --size and --threads give)")
      ->check(range(1, 1000000));
  add("--request-memory", request_memory_, "MIB", "maximum memory of a request, beyond it 413 (64)")
      ->check(range(1, 1 << 20));
  add("--memory", memory_, "MIB", "maximum memory of all requests, beyond it 503 (512)")->check(range(1, 1 << 20));
  add("--max-body", options.patience.body, "BYTES", "maximum size of a request (1048576)")->check(range(1, 1 << 30));
  add("--max-sentences", bounds.sentences, "N", "maximum number of sentences or prompts of a request (128)")
      ->check(range(1, 1000000));
  add("--max-width", bounds.width, "N", "maximum number of hypotheses or samples of each (64)")->check(range(1, 10000));
  add("--max-length", bounds.length, "N",
      "maximum number of tokens of an output (" + std::to_string(bounds.length) + ")")
      ->check(range(1, 1000000));
  add("--time-limit", time_, "S",
      "seconds for a request, then 504 (" + std::to_string(bounds.time.count() / 1000) + ")")
      ->check(range(0.001, 86400.0));
  add("--patience", patience_, "S", "seconds for sending a request, and for reading its answer (10)")
      ->check(range(0.01, 3600.0));
}

void ServiceFlags::finish() {
  options_.bounds.time = seconds(time_);
  options_.patience.read = options_.patience.write = seconds(patience_);
  options_.request_memory = request_memory_ << 20, options_.memory = memory_ << 20;
  if (!token_file_.empty()) options_.tokens = read_tokens(token_file_);
}

}  // namespace serve
