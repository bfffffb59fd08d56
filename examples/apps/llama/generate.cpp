// SPDX-License-Identifier: Apache-2.0
// llama_generate: prompts in, continuations out, by any search, with whatever model llama.cpp loads.
#include <text/grammar.hpp>
#include <text/lines.hpp>

#include <llama/engine.hpp>
#include <llama/options.hpp>
#include <llama/run.hpp>

int main(int argc, char** argv) {
  return text::run_program("llama_generate", [&]() -> int {
    auto const options = generate::parse(argc, argv);
    if (!options) return 0;
    auto const grammar = text::read_grammar(options->structure);  // before the model
    generate::Engine engine(*options);
    switch (options->search) {
      case generate::SearchName::beam:
      case generate::SearchName::diverse: return generate::run_beam(*options, engine, grammar);
      case generate::SearchName::sample: return generate::run_sample(*options, engine, grammar);
      case generate::SearchName::greedy: break;
    }
    return generate::run_greedy(*options, engine, grammar);
  });
}
