// SPDX-License-Identifier: Apache-2.0
// sluice.bench.ctranslate2: the same sentences through CTranslate2's own loop and through its encoder and decoder under
// ours, alternating, one thread each; CPU seconds. Ratios are taken within a round; the table shows their median. With
// --compute-type, also CTranslate2's loop in another precision, compared with ours, and with examples/apps/translate in
// every precision that it supports.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/ctranslate2.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/presets.hpp>

#include <text/lines.hpp>
#include <transformer/transformer.hpp>
#include <translate/model.hpp>
#include <translate/tokenizer.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <ctranslate2/conversion.hpp>
#include <ctranslate2/own_loop.hpp>
#include <ctranslate2/utils.h>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using Tokens = std::vector<Token>;
using Pieces = std::vector<std::vector<std::string>>;

struct Options {
  std::filesystem::path model = translate::default_model(), input;
  std::size_t sentences = 512, alone = 128;
  int rounds = 5;
  std::string compute_type = "float32";

  bool exact() const { return compute_type == "float32"; }
};

double seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  auto const n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// All measurements.
class Bench {
 public:
  Bench(Options const& options, std::shared_ptr<ctranslate2::models::Model const> loaded,
        std::vector<std::string> const& names, std::vector<Tokens> const& sources)
      : options_(options),
        loaded_(std::move(loaded)),
        names_(names),
        sources_(sources),
        weights_(ours(Precision::float32)),
        half_(ours(Precision::bfloat16)),
        rough_(ours(Precision::int8)) {}

  void run(char const* title, std::size_t beam, std::size_t batch, std::size_t count) {
    std::vector<Tokens> const sources(sources_.begin(), sources_.begin() + static_cast<std::ptrdiff_t>(count));
    Pieces pieces;
    for (auto const& source : sources) {
      pieces.emplace_back();
      for (auto const token : source) pieces.back().push_back(names_[static_cast<std::size_t>(token)]);
    }
    bench::OwnLoop own(*loaded_, pieces);
    CTranslate2Logits logits(loaded_);
    auto const decoded = [&](auto& model, auto&& expander) {
      auto const best = [&](auto const& search) {
        Pieces outputs;
        for (auto const& result :
             decode(model, sources, search, Batched{.size = batch}, expander, Intake{.window = sources.size()}))
          outputs.push_back(logits.pieces(result.hypotheses.at(0).tokens));
        return outputs;
      };
      if (beam > 1) return best(presets::ctranslate2(static_cast<std::int32_t>(beam)));
      auto greedy = presets::ctranslate2_greedy();
      greedy.scores = false;  // as in CTranslate2, which skips the softmax if scores are not wanted
      return best(greedy);
    };

    struct Way {
      char const* name;
      std::function<Pieces()> run;
      std::vector<double> times, ratios;
      std::size_t same = 0;
    };
    std::vector<Way> ways{{"CTranslate2's own loop", [&] { return own.translate(beam, batch); }, {}, {}},
                          {"its logits, our loop", [&] { return decoded(logits, LogSoftmaxTopK()); }, {}, {}}};
    std::optional<CTranslate2> hidden;
    std::vector<std::unique_ptr<DenseProjection>> projections;
    auto const add_hidden = [&](char const* name, Precision precision) {
      auto const output = hidden->output();
      auto const& projection =
          *projections.emplace_back(std::make_unique<DenseProjection>(output.weights(), output.bias, precision));
      ways.push_back({name, [&] { return decoded(*hidden, projection); }, {}, {}});
    };
    if (options_.exact()) {  // otherwise its output layer's weights are already rounded
      hidden.emplace(loaded_);
      add_hidden("its hidden vectors, float32", Precision::float32);
      add_hidden("its hidden vectors, bfloat16", Precision::bfloat16);
      add_hidden("its hidden vectors, int8", Precision::int8);
    }
    std::vector<std::unique_ptr<example::Transformer>> transformers;
    auto const add_ours = [&](char const* name, std::shared_ptr<example::Weights const> const& weights,
                              Precision precision) {
      auto& model = *transformers.emplace_back(std::make_unique<example::Transformer>(weights));
      auto const& projection =
          *projections.emplace_back(std::make_unique<DenseProjection>(weights->projection(), weights->bias, precision));
      ways.push_back({name, [&] { return decoded(model, projection); }, {}, {}});
    };
    add_ours("examples/apps/translate", weights_, Precision::float32);
    add_ours("examples/apps/translate, bfloat16", half_, Precision::bfloat16);
    add_ours("examples/apps/translate, int8", rough_, Precision::int8);
    Pieces expected;
    for (int round = -1; round < options_.rounds; ++round)  // the first round is not counted
      for (auto& way : ways) {
        auto const begin = seconds();
        auto const outputs = way.run();
        auto const time = seconds() - begin;
        if (expected.empty()) expected = outputs;
        way.same = 0;
        for (std::size_t i = 0; i < outputs.size(); ++i) way.same += outputs[i] == expected[i];
        if (round < 0) continue;
        way.times.push_back(time), way.ratios.push_back(time / ways.front().times.back());
      }
    std::printf("%s, %zu sentences\n", title, count);
    for (auto const& way : ways)
      std::printf("  %-28s %8.2f ms a sentence   ratio %.3f (%.3f to %.3f)   %zu outputs the same\n", way.name,
                  1e3 * median(way.times) / static_cast<double>(count), median(way.ratios),
                  *std::ranges::min_element(way.ratios), *std::ranges::max_element(way.ratios), way.same);
    std::fflush(stdout);
  }

 private:
  std::shared_ptr<example::Weights const> ours(Precision precision) const {
    return example::Weights::load(options_.model / "model.safetensors", precision);
  }

  Options const& options_;
  std::shared_ptr<ctranslate2::models::Model const> loaded_;
  std::vector<std::string> const& names_;
  std::vector<Tokens> const& sources_;
  std::shared_ptr<example::Weights const> weights_, half_, rough_;
};

int measure(Options const& options) {
  ctranslate2::set_num_threads(1);
  translate::Tokenizer const tokenizer(options.model / "spm.model");
  std::vector<std::string> names;
  for (Token token = 0; token < tokenizer.size(); ++token) names.push_back(tokenizer.piece(token));
  std::vector<Tokens> sources;
  for (auto const& line : text::read_lines(options.input))
    if (auto tokens = tokenizer.encode(line); !tokens.empty() && sources.size() < options.sentences)
      sources.push_back(std::move(tokens));
  if (sources.empty()) throw text::InputError(options.input.string() + ": no sentences");

  auto const folder =
      std::filesystem::temp_directory_path() / ("sluice.bench.ctranslate2." + std::to_string(::getpid()));
  example::convert_to_ctranslate2(example::Safetensors(options.model / "model.safetensors"), names, folder);
  auto const loaded = ctranslate2::models::Model::load(folder.string(), ctranslate2::Device::CPU, 0,
                                                       ctranslate2::str_to_compute_type(options.compute_type));
  std::filesystem::remove_all(folder);
  Bench bench(options, loaded, names, sources);
  bench.run("beam of 5, batches of 64", 5, 64, sources.size());
  bench.run("greedy, batches of 64", 1, 64, sources.size());
  bench.run("greedy, one by one", 1, 1, std::min(options.alone, sources.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("CTranslate2's own loop beside ours over its kernels.", "sluice.bench.ctranslate2");
  app.add_option("--model", options.model, "folder of model.safetensors and spm.model (the one that ships)");
  app.add_option("--input", options.input, "sentences, one a line")->required();
  app.add_option("--sentences", options.sentences, "so many of them (512)")->check(CLI::Range(1, 1000000));
  app.add_option("--alone", options.alone, "of these one by one (128)")->check(CLI::Range(1, 1000000));
  app.add_option("--rounds", options.rounds, "(5)")->check(CLI::Range(1, 1000));
  app.add_option("--compute-type", options.compute_type, "CTranslate2's: float32 (default), int8, bfloat16, ...");
  try {
    app.parse(argc, argv);
    return measure(options);
  } catch (CLI::ParseError const& error) {
    return app.exit(error);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "sluice.bench.ctranslate2: %s\n", error.what());
    return 1;
  }
}
