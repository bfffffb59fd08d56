// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed/instruction_set.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <map>
#include <serve_http/options.hpp>

namespace serve {

namespace {

/// The first line of a file: what a command line says, everybody on the machine can read.
std::string read_token(std::string const& file) {
  auto const lines = text::read_lines(file);
  if (lines.empty() || lines[0].empty()) throw text::InputError("--token-file: " + file + ": has no first line");
  return lines[0];
}

std::chrono::milliseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(count));
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  Options options;
  std::string token_file, proposer, precision = "float32";
  double time = 60, patience = 10;
  CLI::App app(
      "Translates German to English over HTTP: a page at /, POST /translate, POST /v1/completions, GET /metrics.",
      "serve_http");
  app.get_formatter()->column_width(34);
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  auto const range = [](auto low, auto high) { return CLI::Range(low, high).description(""); };
  auto& translator = options.translator;
  auto& bounds = options.bounds;
  add("--model", translator.model, "DIR|FILE", "folder of model.safetensors and spm.model, or the former");
  add("--name", translator.name, "NAME", "of the model, for /v1/models (sluice)");
  add("--address", options.address, "IP", "to listen on (127.0.0.1: this machine alone)");
  add("--port", options.port, "N", "to listen on (8080; 0: any)")->check(range(0, 65535));
  add("--token-file", token_file, "FILE", "its first line is the bearer token that clients must bring");
  add("--size", translator.size, "N", "sentences decoded together (64)")->check(range(1, 100000));
  add("--threads", translator.threads, "N", "decoders (1)")->check(range(1, 1024));
  add("--queue", translator.queue, "N", "sentences that may wait, before 429 (1024)")->check(range(1, 1000000));
  add("--precision", precision, "NAME", "of all products: float32, bfloat16, int8, or auto: bfloat16 if fast (float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8", "auto"}).description(""));
  add("--proposer", proposer, "NAME", "heads or ngram: allow blockwise search, whose guesses these make")
      ->check(CLI::IsMember({"heads", "ngram"}).description(""));
  add("--connections", options.connections, "N", "served at a time; more wait (512)")->check(range(1, 10000));
  add("--max-body", options.patience.body, "BYTES", "of a request (1048576)")->check(range(1, 1 << 30));
  add("--max-sentences", bounds.sentences, "N", "of a request (128)")->check(range(1, 1000000));
  add("--max-width", bounds.width, "N", "hypotheses or samples of a sentence (64)")->check(range(1, 10000));
  add("--max-length", bounds.length, "N", "tokens of a translation (512)")->check(range(1, 1000000));
  add("--time-limit", time, "S", "seconds for a request, before 504 (60)")->check(range(0.001, 86400.0));
  add("--patience", patience, "S", "seconds for sending a request, and for taking its answer (10)")
      ->check(range(0.01, 3600.0));
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    throw text::InputError(error.what());
  }
  std::map<std::string, sluice::Precision> const precisions{{"float32", sluice::Precision::float32},
                                                            {"bfloat16", sluice::Precision::bfloat16},
                                                            {"int8", sluice::Precision::int8},
                                                            {"auto", sluice::automatic_precision()}};
  translator.weights.layers = translator.weights.output = precisions.at(precision);
  translator.weights.proposers = {.heads = proposer == "heads", .ngram = proposer == "ngram"};
  bounds.guesses = !proposer.empty();
  bounds.time = seconds(time);
  options.patience.read = options.patience.write = seconds(patience);
  if (!token_file.empty()) options.token = read_token(token_file);
  return options;
}

}  // namespace serve
