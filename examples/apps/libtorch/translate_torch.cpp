// SPDX-License-Identifier: Apache-2.0
// translate_torch: lines of tokens in, lines of tokens out: the translations of `translate`, with the model run by
// torch, on the CPU or a GPU. `pieces` makes tokens of text and text of tokens: SentencePiece cannot be in one process
// with Debian's libtorch, since both bring a protobuf of their own.

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <libtorch/scores.hpp>
#include <libtorch/torch_transformer.hpp>
#include <text/command_line.hpp>
#include <text/lines.hpp>

#if SLUICE_TORCH_CUDA
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#endif

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using example::HostScores, example::TorchTransformer, example::TorchWeights;

using Tokens = std::vector<Token>;

struct Options {
  std::filesystem::path model = SLUICE_EXAMPLE_MODEL;
  std::filesystem::path input;  // empty: standard input
  std::string device = "cpu", type = "float", search = "beam", schedule = "batched";
  bool half = false;         // --type half
  bool scores = false;       // print them too
  bool host_scores = false;  // of a GPU, for the host's expander
  bool time = false;
  std::int32_t width = 5, max_length = 256;
  std::size_t batch = 64;
  int threads = 0;  // torch's; 0: its own choice

  at::TensorOptions tensors() const {
    auto const numbers = half || type == "half" ? at::kHalf : type == "bfloat16" ? at::kBFloat16 : at::kFloat;
    return at::TensorOptions(at::Device(device)).dtype(numbers);
  }
};

/// \throws text::InputError  for what are no tokens
Tokens read(std::string const& line, std::size_t number, Vocabulary const& vocabulary) {
  Tokens tokens;
  std::istringstream words(line);
  auto good = true;
  for (Token token = 0; words >> token; tokens.push_back(token)) good = good && vocabulary.contains(token);
  if (!good || !words.eof())
    throw text::InputError("line " + std::to_string(number) + ": must be tokens in [0, " +
                           std::to_string(vocabulary.size) + "), with spaces between");
  return tokens;
}

std::string text_of(Tokens const& tokens) {
  std::string line;
  for (auto const token : tokens) line += (line.empty() ? "" : " ") + std::to_string(token);
  return line;
}

template <class Expander, class Model>
std::vector<Result> decode_with(Options const& options, Model& model, std::vector<Tokens> const& sources) {
  LengthLimits const length{.min = 1, .max = options.max_length};
  Intake const intake{.window = 64 * options.batch};
  auto const scheduled = [&](auto const& search) {
    if (options.schedule == "streaming")
      return decode(model, sources, search, Streaming{.size = options.batch}, Expander(), intake);
    return decode(model, sources, search, Batched{.size = options.batch}, Expander(), intake);
  };
  if (options.search == "greedy") return scheduled(Greedy{.length = length});
  return scheduled(BeamSearch{.width = options.width, .length = length, .penalty = {.alpha = 1}});
}

std::vector<Result> run(Options const& options, std::shared_ptr<TorchWeights const> const& weights,
                        std::vector<Tokens> const& sources) {
#if SLUICE_TORCH_CUDA
  auto const on_device = [&]<class T>(T) {
    // [device]
    example::DeviceScores<TorchTransformer, T> model(weights);
    return decode_with<cuda::LogSoftmaxTopK>(options, model, sources);
    // [/device]
  };
  auto const tensors = options.tensors();
  if (tensors.device().is_cuda() && !options.host_scores) {
    if (tensors.dtype() == at::kHalf) return on_device(__half());
    if (tensors.dtype() == at::kBFloat16) return on_device(__nv_bfloat16());
    return on_device(float());
  }
#endif
  // [host]
  HostScores<TorchTransformer> model(weights);
  return decode_with<LogSoftmaxTopK>(options, model, sources);
  // [/host]
}

std::vector<std::string> lines_of(Options const& options) {
  if (options.input.empty()) return text::read_lines(std::cin, "standard input");
  return text::read_lines(options.input);
}

int translate_lines(Options const& options) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  auto const weights = TorchWeights::load(options.model / "model.safetensors", options.tensors());
  auto const lines = lines_of(options);
  std::vector<Tokens> sources;
  std::vector<std::size_t> number;  // of each source's line
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (auto source = read(lines[i], i + 1, weights->vocabulary); !source.empty())
      sources.push_back(std::move(source)), number.push_back(i);

  auto const begin = std::chrono::steady_clock::now();
  auto const results = run(options, weights, sources);
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;

  std::vector<std::string> out(lines.size());
  std::size_t failed = 0, tokens = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& result = results[i];
    if (!result.ok() || result.hypotheses.empty()) {
      auto const message = result.message.substr(0, result.message.find('\n'));  // torch adds its stack
      std::fprintf(stderr, "translate_torch: line %zu: %s: %s\n", number[i] + 1, name(result.failure), message.c_str());
      ++failed;
      continue;
    }
    auto const& best = result.hypotheses.front();
    tokens += best.tokens.size();
    if (options.scores) {
      char score[32];
      std::snprintf(score, sizeof score, "%.6f\t", best.score);
      out[number[i]] = score;
    }
    out[number[i]] += text_of(best.tokens);
  }
  for (auto const& line : out) std::printf("%s\n", line.c_str());
  if (options.time)
    std::fprintf(stderr, "%zu sentences, %zu tokens, %.3f seconds\n", results.size(), tokens, took.count());
  return failed > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app(
      "Translates lines of tokens from German to English with torch. Text: pieces encode | translate_torch | "
      "pieces decode.",
      "translate_torch");
  app.add_option("--model", options.model, "folder of model.safetensors")->type_name("DIR");
  app.add_option("--input", options.input, "file of lines of tokens (standard input)")->type_name("FILE");
  app.add_option("--device", options.device, "cpu, cuda, cuda:1 ... (cpu)")->type_name("NAME");
  app.add_option("--type", options.type, "number type: float, half (on a GPU) or bfloat16 (float)")
      ->check(CLI::IsMember({"float", "half", "bfloat16"}))
      ->type_name("NAME");
  app.add_flag("--half", options.half, "the same as --type half");
  app.add_option("--search", options.search, "greedy or beam (beam)")
      ->check(CLI::IsMember({"greedy", "beam"}))
      ->type_name("NAME");
  app.add_option("--width", options.width, "hypotheses in the beam (5)")->check(CLI::Range(1, 10000))->type_name("K");
  app.add_option("--schedule", options.schedule, "batched or streaming (batched)")
      ->check(CLI::IsMember({"batched", "streaming"}))
      ->type_name("NAME");
  app.add_option("--batch", options.batch, "sentences decoded together (64)")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  app.add_option("--max-length", options.max_length, "maximum number of tokens of an output (256)")
      ->check(CLI::Range(1, 511))
      ->type_name("N");
  app.add_option("--threads", options.threads, "threads of torch (its own choice)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_flag("--scores", options.scores, "print the score of each translation before it");
  app.add_flag("--host-scores", options.host_scores, "copy the scores from the GPU to the host, and search there");
  app.add_flag("--time", options.time, "print at the end how long decoding took");
  auto const complain = [](char const* what, int code) {
    std::fprintf(stderr, "translate_torch: %s\n", what);
    return code;
  };
  try {
    return app.read(argc, argv) ? translate_lines(options) : 0;
  } catch (text::InputError const& error) {
    return complain(error.what(), 2);
  } catch (c10::Error const& error) {
    return complain(error.what_without_backtrace(), 1);
  } catch (std::exception const& error) {
    return complain(error.what(), 1);
  }
}
