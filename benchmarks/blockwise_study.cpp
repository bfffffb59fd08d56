// SPDX-License-Identifier: Apache-2.0
// blockwise_study SOURCES REFERENCES: blockwise decoding of a text with trained heads (Stern et al. 2018, tables 1 and
// 3). One row of a Markdown table per combination of --heads, --accept, --minimum and --blocks: mean accepted block,
// model calls, BLEU, and time relative to greedy decoding, alternating with it, for each of --batches.

#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/precision.hpp>
#include <sluice/output/train_clusters.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/heads.hpp>

#include <bleu/bleu.hpp>
#include <text/lines.hpp>
#include <transformer/heads.hpp>
#include <transformer/weights.hpp>
#include <translate/guess_output.hpp>

#include <CLI/CLI.hpp>
#include <Eigen/Core>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <head_accuracy.hpp>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <shipped_model.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using sluice::LengthLimits, sluice::Result;

std::map<std::string, sluice::Precision> const precisions{{"float32", sluice::Precision::float32},
                                                          {"bfloat16", sluice::Precision::bfloat16},
                                                          {"int8", sluice::Precision::int8}};

struct Options {
  std::string sources, references;
  std::vector<std::string> heads, accept{"exact"};
  std::vector<std::int32_t> blocks{1, 2, 4, 6, 8, 10}, minimum{1}, branches{1}, nodes{0};
  std::vector<std::size_t> batches{64};
  std::string guesses = "clusters", precision = "float32";
  std::size_t sentences = std::numeric_limits<std::size_t>::max();
  std::int32_t rounds = 3, nearest = 1, best = 4, learn = 0;
  double cost = 0;
  bool adaptive = false, check = false, forks = false;
};

struct Text {
  std::vector<bench::Sentence> sources;
  std::vector<bleu::Ngrams> references;
};

Text read(Options const& options, translate::Tokenizer const& tokenizer) {
  auto const sources = text::read_lines(std::filesystem::path(options.sources));
  auto const references = text::read_lines(std::filesystem::path(options.references));
  if (sources.size() != references.size())
    throw text::InputError(options.sources + " has " + std::to_string(sources.size()) + " lines, " +
                           options.references + " has " + std::to_string(references.size()));
  std::vector<std::size_t> order;
  std::vector<bench::Sentence> tokens;
  for (auto const& line : sources) {
    if (tokens.size() == options.sentences) break;
    order.push_back(tokens.size()), tokens.push_back(tokenizer.encode(line));
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return tokens[i].size(); });
  Text text;
  for (auto const i : order) {
    text.sources.push_back(std::move(tokens[i]));
    text.references.emplace_back(references[i]);
  }
  return text;
}

struct Outcome {
  std::vector<Result> results;
  double seconds = 0;
  std::uint64_t calls = 0, fed = 0;
};

template <class M, class S, class P>
Outcome decode(M& model, sluice::DenseProjection const& output, Text const& text, S const& search, P const& schedule) {
  Outcome outcome;
  outcome.seconds = sluice::bench::seconds([&] {
    sluice::Decoder decoder(model, search, schedule, sluice::DenseProjection(output));
    for (auto const& source : text.sources) decoder.submit({.source = source});
    while (decoder.step()) {
    }
    outcome.results.resize(text.sources.size());
    for (Result result; decoder.poll(result); result = {}) {
      if (!result.ok()) throw std::runtime_error("sentence " + std::to_string(result.id) + ": " + result.message);
      auto const id = static_cast<std::size_t>(result.id);
      outcome.results[id] = std::move(result);
    }
    outcome.calls = decoder.statistics().model_calls, outcome.fed = decoder.statistics().fed;
  });
  return outcome;
}

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers[numbers.size() / 2];
}

/// One row of the table.
struct Case {
  std::string heads, accept;
  std::int32_t minimum, block, branches, nodes;
};

template <sluice::Acceptance A, class M>
void measure(Options const& options, Text const& text, translate::Tokenizer const& tokenizer, Case const& which,
             A const& accept, M& headed, sluice::example::Transformer& plain, sluice::DenseProjection const& output) {
  sluice::Blockwise<A> search{.block = which.block,
                              .accept = accept,
                              .minimum = which.minimum,
                              .length = {.min = 1},
                              .branches = which.branches,
                              .nodes = which.nodes};
  search.adaptive = options.adaptive;
  if (options.cost > 0) search.cost = options.cost;
  sluice::Greedy const greedy{.length = {.min = 1}, .scores = false};
  std::string times;
  Outcome found, expected;
  for (auto const batch : options.batches) {
    std::vector<double> ratios;
    for (std::int32_t round = 0; round < options.rounds; ++round) {
      expected = decode(plain, output, text, greedy, sluice::Batched{batch});
      found = decode(headed, output, text, search, sluice::Batched{batch});
      ratios.push_back(expected.seconds / found.seconds);
    }
    char cell[64];
    std::snprintf(cell, sizeof cell, " %.2f |", median(ratios));
    times += cell;
  }
  double tokens = 0, rounds = 0, perfect = 0;
  std::size_t same = 0;
  std::vector<bleu::Counts> counts;
  for (std::size_t i = 0; i < found.results.size(); ++i) {
    auto const& h = found.results[i].hypotheses.at(0);
    auto const k = static_cast<std::size_t>(which.block);
    tokens += static_cast<double>(h.tokens.size()), rounds += static_cast<double>(h.blocks.size());
    perfect += static_cast<double>((h.tokens.size() + k - 1) / k);
    same += h.tokens == expected.results[i].hypotheses.at(0).tokens;
    counts.push_back(bleu::count(bleu::Ngrams(tokenizer.decode(h.tokens)), text.references[i]));
  }
  auto const n = static_cast<double>(text.sources.size());
  std::printf("| %s | %s | %d | %d | %d, %d | %.3f | %.2f | %llu | %.2f | %.2f | %.1f %% |%s\n", which.heads.c_str(),
              which.accept.c_str(), which.minimum, which.block, which.branches, which.nodes, tokens / rounds,
              tokens / perfect, static_cast<unsigned long long>(found.calls),
              static_cast<double>(found.fed) / static_cast<double>(found.calls), bleu::score(bleu::sum(counts)).bleu,
              100 * static_cast<double>(same) / n, times.c_str());
  std::fflush(stdout);
  if (A::lossless && same != text.sources.size()) throw std::runtime_error("exact blocks differ from greedy decoding");
}

/// Exact blocks under every kind of schedule.
template <class M>
void check(Text const& text, M& headed, sluice::example::Transformer& plain, sluice::DenseProjection const& output) {
  auto const expected = decode(plain, output, text, sluice::Greedy{.length = {.min = 1}}, sluice::Batched{64});
  auto const compare = [&](auto const& schedule, std::int32_t block, char const* name, std::size_t size) {
    auto const found =
        decode(headed, output, text, sluice::Blockwise<>{.block = block, .length = {.min = 1}}, schedule);
    for (std::size_t i = 0; i < text.sources.size(); ++i) {
      auto const &a = found.results[i].hypotheses.at(0), &b = expected.results[i].hypotheses.at(0);
      if (a.tokens != b.tokens || a.log_probs != b.log_probs)
        throw std::runtime_error("sentence " + std::to_string(i) + " differs from greedy decoding: " + name + " " +
                                 std::to_string(size) + ", block " + std::to_string(block));
    }
    std::printf("exact, block %d, %s %zu: %zu of %zu equal greedy decoding, log-probabilities bit for bit\n", block,
                name, size, text.sources.size(), text.sources.size());
  };
  for (std::int32_t const block : {4, 8})
    for (std::size_t const size : {1u, 8u, 64u}) {
      compare(sluice::Batched{size}, block, "batches of", size);
      compare(sluice::Streaming{.size = size, .refill_below = 1}, block, "streaming", size);
    }
}

/// The shipped model without the ability to take trees.
struct Forks : sluice::example::Transformer {
  using Transformer::Transformer;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
};

/// The tree learnt from the first sentences; empty if none is wanted.
template <class Heads, class E>
sluice::TreeShape learn(Options const& options, Text const& text, sluice::example::Transformer& model, Heads& heads,
                        E const& guessing, sluice::example::Transformer& plain, sluice::DenseProjection const& output) {
  if (options.learn == 0) return {};
  auto const places = *std::ranges::max_element(options.blocks);
  auto some = text;
  some.sources.resize(std::min(some.sources.size(), std::size_t{500}));
  sluice::Speculated showing(
      model,
      sluice::DraftHeads(heads, guessing, {.best = options.best, .shape = bench::all_guesses(places, options.best)}));
  bench::Recording recording(showing, places, options.best);
  decode(recording, output, some, sluice::Blockwise<>{.block = 2, .length = {.min = 1}}, sluice::Batched{32});
  std::vector<std::vector<sluice::Token>> outputs;
  for (auto const& result :
       decode(plain, output, some, sluice::Greedy{.length = {.min = 1}, .scores = false}, sluice::Batched{32}).results)
    outputs.push_back(result.hypotheses.at(0).tokens);
  auto const accuracy = recording.accuracy(outputs);
  for (std::size_t place = 0; place < accuracy.size(); ++place) {
    std::printf("place %zu:", place + 1);
    for (auto const x : accuracy[place]) std::printf(" %.3f", x);
    std::printf("\n");
  }
  auto const shape = sluice::TreeShape::learn(accuracy, options.learn, options.learn);
  std::printf("learnt: %zu nodes, %d paths\n\n", shape.nodes.size(), shape.leaves());
  return shape;
}

void run(Options const& options) {
  Eigen::setNbThreads(1);
  translate::Tokenizer const tokenizer(SLUICE_SOURCE_DIR "/examples/apps/translate/model/spm.model");
  auto const text = read(options, tokenizer);
  std::printf("%zu sentences, sorted by length, %s blocks, medians of %d.\n\n", text.sources.size(),
              options.adaptive ? "adaptive" : "fixed", options.rounds);
  std::printf("| heads | accept | minimum | k | branches, nodes | mean block | perfect guesses | model calls | tokens "
              "a call | BLEU | same as greedy |");
  for (auto const batch : options.batches) std::printf(" speed, batch %zu |", batch);
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|---|");
  for (std::size_t i = 0; i < options.batches.size(); ++i) std::printf("---|");
  std::printf("\n");
  auto const precision = precisions.at(options.precision);
  auto const weights =
      sluice::example::Weights::load(SLUICE_SOURCE_DIR "/examples/apps/translate/model/model.safetensors", precision);
  sluice::DenseProjection const output(weights->projection(), weights->bias, precision);
  auto const guessing = [&] {
    if (auto const other = precisions.find(options.guesses); other != precisions.end())
      return translate::GuessOutput(sluice::DenseProjection(weights->projection(), weights->bias, other->second));
    std::ifstream stream(SLUICE_SOURCE_DIR "/examples/apps/translate/model/clusters.bin", std::ios::binary);
    return translate::GuessOutput(sluice::ClusteredProjection(
        weights->projection(), weights->bias, sluice::read_clusters(stream).begin()->second,
        {.always = weights->vocabulary.eos, .nearest = options.nearest},
        std::make_shared<sluice::PackedMatrix const>(weights->projection(), weights->bias, sluice::Precision::int8)));
  }();
  for (auto const& file : options.heads) {
    auto const of_heads = options.guesses == "clusters" ? sluice::Precision::int8 : precisions.at(options.guesses);
    auto heads = sluice::example::load_heads(sluice::example::Safetensors(file), weights->d, of_heads);
    sluice::example::Transformer model(weights), plain(weights);
    sluice::HeadTrees const trees{.best = options.best,
                                  .shape = learn(options, text, model, heads, guessing, plain, output)};
    sluice::Speculated headed(model, sluice::DraftHeads(heads, guessing, trees));
    Forks forks(weights);
    sluice::Speculated forking(forks, sluice::DraftHeads(heads, guessing, trees));
    auto const name = std::filesystem::path(file).stem().string();
    for (auto const& accept : options.accept)
      for (auto const minimum : options.minimum)
        for (auto const block : options.blocks)
          for (auto const branches : options.branches)
            for (auto const nodes : options.nodes) {
              if (minimum > block || (minimum > 1 && accept == "exact")) continue;
              Case const which{name, accept, minimum, block, branches, nodes};
              auto const with = [&](auto& model_of_guesses) {
                if (accept == "exact")
                  measure(options, text, tokenizer, which, sluice::acceptance::Exact{.scores = false}, model_of_guesses,
                          plain, output);
                else
                  measure(options, text, tokenizer, which, sluice::acceptance::TopK{std::stoi(accept.substr(3))},
                          model_of_guesses, plain, output);
              };
              if (options.forks) with(forking);
              else with(headed);
            }
    if (options.check) check(text, headed, plain, output);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.heads = {SLUICE_SOURCE_DIR "/examples/apps/translate/model/heads.safetensors"};
  CLI::App app("Blockwise decoding with trained heads: a Markdown table.", "blockwise_study");
  app.add_option("SOURCES", options.sources, "text to translate, a sentence a line")->required();
  app.add_option("REFERENCES", options.references, "its translations")->required();
  app.add_option("--heads", options.heads, "files of heads; by commas")->delimiter(',');
  app.add_option("--accept", options.accept, "exact, topN; by commas")
      ->delimiter(',')
      ->check(CLI::Validator(
          [](std::string& name) {
            return name == "exact" || (name.starts_with("top") && name.size() == 4 && name[3] >= '1' && name[3] <= '9')
                       ? std::string()
                       : "'" + name + "' is not exact or top1 .. top9";
          },
          ""));
  app.add_option("--minimum", options.minimum, "tokens of a block that are kept anyway; not with exact")
      ->delimiter(',')
      ->check(CLI::Range(1, 100));
  app.add_option("--blocks", options.blocks, "k")->delimiter(',')->check(CLI::Range(1, 100));
  app.add_option("--branches", options.branches, "paths of a tree of guesses; 1: a chain")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000));
  app.add_option("--nodes", options.nodes, "guesses in a tree; 0: (k - 1) * branches")
      ->delimiter(',')
      ->check(CLI::Range(0, 1000));
  app.add_option("--best", options.best, "guesses of each head that a tree may take")->check(CLI::Range(1, 100));
  app.add_option("--learn", options.learn, "a tree of so many nodes, learnt from 500 sentences; 0: by confidence")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--forks", options.forks, "verify trees by forks, as a model that takes no trees");
  app.add_option("--batches", options.batches, "sentences at a time")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{1}, std::size_t{10000}));
  app.add_option("--guesses", options.guesses,
                 "heads and their output layer in float32, bfloat16 or int8; clusters: in int8, likely tokens only")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8", "clusters"}));
  app.add_option("--precision", options.precision, "of the model")->check(CLI::IsMember(precisions));
  app.add_option("--nearest", options.nearest, "clusters of a guess")->check(CLI::Range(1, 100));
  app.add_option("--sentences", options.sentences, "the first so many");
  app.add_option("--rounds", options.rounds, "times each is measured")->check(CLI::Range(1, 100));
  app.add_option("--cost", options.cost, "Blockwise::cost of adaptive blocks")->check(CLI::PositiveNumber);
  app.add_flag("--adaptive", options.adaptive, "Blockwise::adaptive");
  app.add_flag("--check", options.check, "compare exact blocks with greedy decoding under many schedules");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (std::exception const& error) {
    std::cerr << "blockwise_study: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
