// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <serve_llama/options.hpp>
#include <string>

namespace serve {

std::optional<LlamaServerOptions> parse_llama(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  LlamaServerOptions options;
  auto& continuer = options.continuer;
  auto& engine = continuer.engine;
  engine.context = 8192, engine.parallel = 64, engine.chunk = 256;
  CLI::App app("Continues prompts with a model of llama.cpp over HTTP: POST /v1/completions, GET /metrics.",
               "serve_llama");
  app.get_formatter()->column_width(34);
  auto const add = [&](char const* name, auto& value, char const* type, char const* what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  auto const count = [&](char const* name, auto& value, int lowest, int highest, char const* what) {
    add(name, value, "N", what)->check(CLI::Range(lowest, highest).description(""));
  };
  add("-m,--model", engine.model, "GGUF", "the model")->required();
  add("--name", continuer.name, "NAME", "of the model, for /v1/models (the file's)");
  count("--context", engine.context, 1, many, "cells, for the tokens of all sequences together (8192)");
  count("--sequences", engine.parallel, 2, 256, "in the context: a greedy prompt needs 1, n samples need n (64)");
  count("--size", continuer.size, 1, 256, "prompts decoded together (16)");
  count("--threads", engine.threads, 1, many, "of llama.cpp (as many as processors)");
  count("--batch", engine.batch, 1, many, "tokens in one call of llama.cpp at most (2048)");
  count("--chunk", engine.chunk, 1, many,
        "tokens of prompts fed in one step at most, beside what others generate (256)");
  add("--share", engine.share, "N", "tokens kept of what has ended, for prompts that begin alike (half of --context)")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()).description(""));
  count("--gpu-layers", engine.gpu_layers, 0, many, "layers on a device (all)");
  add("--end", engine.ends, "ID", "a token that ends an output too; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
  add("--backends", engine.backends, "DIR", "where the backends of ggml are");
  app.add_flag("--special", engine.special, "<|names|> of control tokens in prompts are those tokens");
  app.add_flag("--exact", engine.exact, "float32 cache, no flash attention: outputs do not depend on the batch");
  ServiceFlags flags(app, options.service);
  if (!parse_flags(app, argc, argv)) return std::nullopt;
  flags.finish();
  if (engine.batch < engine.parallel)
    throw text::InputError("--batch = " + std::to_string(engine.batch) + ": must be at least --sequences, " +
                           std::to_string(engine.parallel));
  if (continuer.name.empty()) continuer.name = engine.model.stem().string();
  continuer.queue = options.service.queue;
  auto& width = options.service.bounds.width;
  width = std::min(width, engine.parallel - 1);  // one sequence is for what is told of tokens
  return options;
}

}  // namespace serve
