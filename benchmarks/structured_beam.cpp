// SPDX-License-Identifier: Apache-2.0
// The cost of a grammar in a step of a beam of five: strings in an array, which allow nearly all tokens, and numbers in
// an array, which allow few. The model's scores either cost nothing, which leaves only the output layer and the beam,
// or are the product of 512 numbers with the vocabulary's weights, as in the last layer of a small real model.
//
//   sluice.bench.structured_beam [tokens] [runs]
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>

#include "cpu_clock.hpp"
#include "grammar_vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::vector<float> numbers(std::size_t count, float deviation) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> out(count);
  for (auto& x : out) x = draw(random);
  return out;
}

/// Takes lines from a table, in order.
class Scorer {
 public:
  using Source = int;
  explicit Scorer(std::int32_t size) : size_(size), table_(numbers(static_cast<std::size_t>(size) * 23, 2)) {}
  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 0, .eos = {0}}; }
  static void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    auto const first = static_cast<std::size_t>(rows[0].length % 18) * static_cast<std::size_t>(size_);
    return sluice::scores(table_.data() + first, std::ssize(rows), size_);
  }

 private:
  std::int32_t size_;
  std::vector<float> table_;
};

/// The same with hidden vectors.
class Thinker {
 public:
  static constexpr std::ptrdiff_t hidden_size = 512;
  using Source = int;
  explicit Thinker(std::int32_t size) : size_(size), table_(numbers(hidden_size * 23, 2)) {}
  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 0, .eos = {0}}; }
  static void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    return sluice::hidden(table_.data() + rows[0].length % 18 * hidden_size, std::ssize(rows), hidden_size);
  }

 private:
  std::int32_t size_;
  std::vector<float> table_;
};

/// Milliseconds of CPU time per step, for one sentence.
template <class Model, class S, class Expander>
double step_time(Model& model, S const& search, Expander const& expander) {
  std::string problem;
  sluice::Statistics statistics;
  auto const took = 1000 * sluice::bench::seconds([&] {
                      statistics = sluice::decode_each(
                          model, std::vector<int>{1}, search,
                          [&](sluice::Result&& result) { problem = result.message; }, sluice::Batched{}, expander);
                    });
  if (!problem.empty()) throw std::runtime_error(problem);
  return took / static_cast<double>(statistics.steps);
}

void compare(char const* model, sluice::TokenTrie const& trie, int runs, auto const& time) {
  struct Text {
    char const *name, *schema;
  };
  for (auto const& [name, schema] : {Text{"strings", R"({"type":"array","items":{"type":"string"},"minItems":20})"},
                                     Text{"numbers", R"({"type":"array","items":{"type":"number"},"minItems":20})"}})
    for (auto const stage : {sluice::Stage::after_softmax, sluice::Stage::before_softmax}) {
      auto const before = stage == sluice::Stage::before_softmax;
      sluice::BeamSearch const beam{.width = 5, .length = {.min = 90, .max = 100}, .stage = stage};
      sluice::Processed<sluice::BeamSearch> const structured{
          beam, sluice::Structure(sluice::Grammar::from_json_schema(schema), trie)};
      bench::Times plain, under;
      (void)time(structured);  // fills the caches of the grammar
      for (int i = 0; i < runs; ++i) plain.all.push_back(time(beam)), under.all.push_back(time(structured));
      std::printf("| %s | %s | %s | %.3f | %.3f | %.2f |\n", model, name, before ? "before" : "after", plain.at(0.5),
                  under.at(0.5), under.at(0.5) / plain.at(0.5));
      std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) try {
  auto const size = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : std::size_t{128'000};
  auto const runs = argc > 2 ? std::atoi(argv[2]) : 9;
  auto const vocabulary = sluice::Vocabulary{.size = static_cast<std::int32_t>(size), .bos = 0, .eos = {0}};
  sluice::TokenTrie const trie(sluice::TokenBytes(bench::merged_tokens(size)), vocabulary);
  std::printf(
      "| model | text | set acts | plain, ms a step | structured | times |\n| --- | --- | --- | --- | --- | --- |\n");
  Scorer scorer(vocabulary.size);
  compare("nothing", trie, runs,
          [&](auto const& search) { return step_time(scorer, search, sluice::LogSoftmaxTopK{}); });
  Thinker thinker(vocabulary.size);
  auto const weights = numbers(size * Thinker::hidden_size, 0.05f);
  sluice::DenseProjection const layer(
      sluice::MatrixView<float const>{weights.data(), vocabulary.size, Thinker::hidden_size, Thinker::hidden_size});
  compare("x 512 numbers", trie, runs, [&](auto const& search) { return step_time(thinker, search, layer); });
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
