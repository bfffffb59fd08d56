// SPDX-License-Identifier: Apache-2.0
#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <serve_llama/options.hpp>
#include <stdexcept>
#include <string>

namespace serve {

std::optional<LlamaServerOptions> parse_llama(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  LlamaServerOptions options;
  auto& continuer = options.continuer;
  auto& engine = continuer.engine;
  engine.context = 8192, engine.parallel = 64, engine.chunk = 256;
  text::CommandLine app("Continues prompts with a model of llama.cpp over HTTP: POST /v1/completions and "
                        "/v1/chat/completions, GET /metrics.",
                        "serve_llama");
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  auto const count = [&](char const* name, auto& value, int lowest, int highest, char const* what) {
    add(name, value, "N", what)->check(CLI::Range(lowest, highest).description(""));
  };
  add("-m,--model", engine.model, "GGUF", "the model")->required();
  add("--name", continuer.name, "NAME", "name of the model, for /v1/models (the file's)");
  add("--chat-template-file", engine.chat_template, "FILE", "a chat template (Jinja) in place of the model's");
  std::string tool_format;
  add("--tool-format", tool_format, "NAME",
      "how the model writes calls of tools, as vLLM's --tool-call-parser calls it");
  std::string parser;
  add("--reasoning-parser", parser, "NAME",
      "chats think first, up to </think>: deepseek_r1 or qwen3, as vLLM calls them; grammars begin behind that")
      ->check(CLI::IsMember({"deepseek_r1", "qwen3"}).description(""));
  auto const* const budget = app.add("--reasoning-budget", continuer.reasoning_budget, "N",
                                     "at most so many tokens of that, unless a request has thinking_token_budget");
  count("--context", engine.context, 1, many, "size of the KV cache: cells for the tokens of all sequences (8192)");
  count("--sequences", engine.parallel, 2, 256,
        "sequences in the context: a greedy prompt needs 1, n samples need n (64)");
  count("--size", continuer.size, 1, 256, "prompts decoded together (32)");
  count("--threads", engine.threads, 1, many, "threads of llama.cpp (as many as processors)");
  count("--batch", engine.batch, 1, many, "maximum number of tokens in one call of llama.cpp (2048)");
  count("--chunk", engine.chunk, 1, many, "chunked prefill: maximum number of prompt tokens fed in one step (256)");
  add("--share", engine.share, "N", "prefix caching: tokens kept of ended requests (half of --context)")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()).description(""));
  count("--swap-after", engine.swap_after, 0, many,
        "steps after which tokens kept of an ended request wait outside the cache; 0: never (4)");
  count("--gpu-layers", engine.gpu_layers, 0, many, "layers on a device (all)");
  add("--end", engine.ends, "ID", "an additional token that ends an output; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
  add("--backends", engine.backends, "DIR", "folder of ggml's backends");
  app.add_flag("--special", engine.special, "parse <|names|> of control tokens in prompts");
  text::add_json_flags<CLI::Option>(continuer.json, add);
  app.add_flag(
      "--split", engine.split,
      "give each of --sequences an equal part of the cells instead of sharing them: --context / --sequences tokens");
  app.add_flag("--no-repack", engine.no_repack,
               "weights as they are in the file, without llama.cpp's own layouts: where its AMX products crash");
  app.add_flag(
      "--exact", engine.exact,
      "float32 cache, no flash attention: the batch changes no token (weights in float32), no bit (with --split)");
  auto const finite = [] { return text::number<double>([](double x) { return std::isfinite(x); }, ""); };
  add("--language-model", engine.language_model, "FILE",
      "add the scores of n-grams of words: ARPA, or a file of build_ngram");
  auto const* const weight =
      app.add("--language-weight", engine.language_weight, "A", "weight of these scores (0.2)")->check(finite());
  auto const* const bonus =
      app.add("--word-bonus", engine.word_bonus, "B", "added for each token that begins with a space (0)")
          ->check(finite());
  auto& offer = continuer.offer;
  OfferFlags offers(app, offer);
  // Language models write more than translators: 16 clients with prompts of 500 tokens finish on one processor.
  options.service.bounds.length = 4096, options.service.bounds.time = std::chrono::minutes(10);
  ServiceFlags flags(app, options.service, "--client-share");
  if (!app.read(argc, argv)) return std::nullopt;
  flags.finish(), offers.finish();
  for (auto const* const option : {weight, bonus})
    if (engine.language_model.empty() && option->count() > 0)
      throw text::InputError(option->get_name() + " has no effect with no --language-model");
  continuer.reasons = !parser.empty();
  if (budget->count() > 0 && !continuer.reasons)
    throw text::InputError("--reasoning-budget has no effect with no --reasoning-parser");
  if (continuer.reasoning_budget < -1)
    throw text::InputError("--reasoning-budget = " + std::to_string(continuer.reasoning_budget) +
                           ": must be 0 or more");
  try {
    if (!tool_format.empty()) continuer.tool_format = sluice::tool_format(tool_format);
  } catch (std::invalid_argument const& error) {
    throw text::InputError("--tool-format: " + std::string(error.what()));
  }
  engine.normalise = true;  // a request may sample
  if (engine.batch < engine.parallel)
    throw text::InputError("--batch = " + std::to_string(engine.batch) + ": must be at least --sequences, " +
                           std::to_string(engine.parallel));
  if (continuer.name.empty()) continuer.name = engine.model.stem().string();
  continuer.queue = options.service.queue;
  auto& width = options.service.bounds.width;
  width = std::min(width, engine.parallel - 1);  // one sequence is for log-probabilities
  return options;
}

}  // namespace serve
