// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/reference_beams.hpp>
#include <support/table_model.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// The table's log-probabilities as floats, so that both sides add up the same values.
struct FloatTable {
  Table table;
  std::uint64_t seed;
  std::vector<float> operator()(std::vector<Token> const& output) const {
    std::vector<double> line(static_cast<std::size_t>(table.size));
    table.log_probs(seed, output, line);
    return {line.begin(), line.end()};
  }
};

struct Case {
  Table table;
  std::uint64_t seed = 0;
  std::int32_t width = 1, longest = 1;
  double alpha = 1;
};

Case random_case(std::mt19937_64& random) {
  auto const pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  Case c;
  c.width = pick(1, 6);
  c.table.size = c.width + pick(4, 12);
  c.table.scale = pick(1, 8);
  c.table.eos_bias = pick(-4, 4);
  c.table.eos_slope = pick(0, 4) / 4.0;
  c.table.order = pick(0, 3) == 0 ? 2 : -1;
  c.seed = random();
  c.longest = pick(1, 14);
  c.alpha = pick(0, 6) / 4.0;
  return c;
}

std::vector<Hypothesis> decode_one(Case const& c, BeamSearch search) {
  search.n_best = search.width;
  search.length = {.max = c.longest};
  auto result = run_one<everything>(c.table, c.seed, search, {.kind = Kind::log_probs});
  REQUIRE(result.ok());
  return result.hypotheses;
}

void compare(Case const& c, BeamSearch const& search, std::vector<reference::Output> const& expected) {
  INFO("V " << c.table.size << " scale " << c.table.scale << " eos " << c.table.eos_bias << " slope "
            << c.table.eos_slope << " order " << c.table.order << " seed " << c.seed << " width " << c.width
            << " longest " << c.longest << " alpha " << c.alpha);
  auto const found = decode_one(c, search);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("hypothesis " << i);
    CHECK(found[i].tokens == expected[i].tokens);
    CHECK(std::abs(found[i].score - expected[i].score) < 1e-9);
  }
}

constexpr int models = 3000;

}  // namespace

TEST_CASE("the Hugging Face preset is its loop, restated", "[presets]") {
  std::mt19937_64 random(1);
  std::set<std::size_t> sizes;
  for (int i = 0; i < models; ++i) {
    auto const c = random_case(random);
    using enum EarlyStopping::Rule;
    std::pair<EarlyStopping::Rule, reference::Early> const rules[]{
        {heuristic, reference::Early::no}, {count, reference::Early::yes}, {never_early, reference::Early::never}};
    auto const& [ours, theirs] = rules[i % 3];
    auto const expected = reference::huggingface(FloatTable{c.table, c.seed}, {eos}, static_cast<std::size_t>(c.width),
                                                 c.alpha, theirs, static_cast<std::size_t>(c.longest));
    compare(c, presets::huggingface(c.width, c.alpha, ours), expected);
    sizes.insert(expected.size());
  }
  CHECK(sizes.size() > 3);
}

TEST_CASE("the Hugging Face preset is right for two tokens that end", "[presets]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < models / 3; ++i) {
    auto c = random_case(random);
    c.table.second_eos = 4;
    auto const expected =
        reference::huggingface(FloatTable{c.table, c.seed}, {eos, 4}, static_cast<std::size_t>(c.width), c.alpha,
                               reference::Early::no, static_cast<std::size_t>(c.longest));
    compare(c, presets::huggingface(c.width, c.alpha), expected);
  }
}

TEST_CASE("the Sockeye preset is its loop, restated", "[presets]") {
  std::mt19937_64 random(3);
  for (int i = 0; i < models; ++i) {
    auto const c = random_case(random);
    auto const beta = static_cast<double>(i % 3);
    compare(c, presets::sockeye(c.width, c.alpha, beta),
            reference::sockeye(FloatTable{c.table, c.seed}, eos, static_cast<std::size_t>(c.width), c.alpha, beta,
                               static_cast<std::size_t>(c.longest)));
  }
}

TEST_CASE("the Marian preset is its loop, restated", "[presets]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < models; ++i) {
    auto const c = random_case(random);
    auto const penalty = static_cast<double>(i % 3) / 4;
    compare(c, presets::marian(c.width, c.alpha, penalty),
            reference::marian(FloatTable{c.table, c.seed}, eos, static_cast<std::size_t>(c.width), c.alpha, penalty,
                              static_cast<std::size_t>(c.longest)));
  }
}

TEST_CASE("no preset is another one under a new name", "[presets]") {
  std::vector<std::pair<std::string, BeamSearch>> const all{
      {"fairseq", presets::fairseq(4)},         {"ctranslate2", presets::ctranslate2(4)},
      {"huggingface", presets::huggingface(4)}, {"sockeye", presets::sockeye(4)},
      {"marian", presets::marian(4, 1)},        {"varstream", presets::varstream(4)}};
  std::set<std::pair<std::size_t, std::size_t>> differ;
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    auto c = random_case(random);
    c.width = 4, c.table.size = std::max(c.table.size, 9);
    std::vector<std::vector<Hypothesis>> found;
    for (auto const& [name, search] : all) found.push_back(decode_one(c, search));
    for (std::size_t a = 0; a < all.size(); ++a)
      for (std::size_t b = a + 1; b < all.size(); ++b) {
        auto same = found[a].size() == found[b].size();
        for (std::size_t h = 0; same && h < found[a].size(); ++h) same = found[a][h].tokens == found[b][h].tokens;
        if (!same) differ.insert({a, b});
      }
  }
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      INFO(all[a].first << " and " << all[b].first);
      CHECK(differ.contains({a, b}));
    }
}

TEST_CASE("every preset's options are accepted for every width", "[presets]") {
  for (std::int32_t k = 1; k < 9; ++k) {
    CHECK_NOTHROW(presets::fairseq(k).check());
    CHECK_NOTHROW(presets::ctranslate2(k).check());
    CHECK_NOTHROW(presets::ctranslate2(k, 0).check());
    CHECK_NOTHROW(presets::huggingface(k, 0, EarlyStopping::Rule::never_early).check());
    CHECK_NOTHROW(presets::sockeye(k).check());
    CHECK_NOTHROW(presets::marian(k).check());
    CHECK_NOTHROW(presets::varstream(k).check());
  }
}

TEST_CASE("presets have the lengths of their engines", "[presets]") {
  auto const lengths = [](BeamSearch const& search) { return std::pair(search.length.min, search.length.max); };
  // fairseq/sequence_generator.py, SequenceGenerator.__init__: min_len=1, max_len_a=0, max_len_b=200; max_len excludes
  // eos.
  CHECK(lengths(presets::fairseq(5)) == std::pair(1, 201));
  // CTranslate2, include/ctranslate2/translation.h, TranslationOptions: min_decoding_length = 1, max_decoding_length =
  // 256.
  CHECK(lengths(presets::ctranslate2(5)) == std::pair(1, 256));
  CHECK(lengths(presets::ctranslate2(5, 0)) == std::pair(1, 256));
  // transformers' GenerationConfig: min_length=0. Sockeye and Marian have no minimum; their maxima are factors of the
  // source's length, which a preset does not know.
  for (auto const& search : {presets::huggingface(5), presets::sockeye(5), presets::marian(5), presets::varstream(5)})
    CHECK(search.length.min == 0);
}

TEST_CASE("presets have the penalties of their engines", "[presets]") {
  auto const score = [](BeamSearch const& search) { return search.penalty.score(-6, 4); };
  CHECK(score(presets::fairseq(5)) == -1.5);
  CHECK((score(presets::ctranslate2(5)) == -1.5 && score(presets::ctranslate2(5, 0)) == -6));
  CHECK(score(presets::ctranslate2(5, -1)) == -24);  // times the length
  CHECK((score(presets::huggingface(5)) == -1.5 && score(presets::huggingface(5, 2)) == -0.375));
  CHECK((score(presets::sockeye(5)) == -1.5 && score(presets::sockeye(5, 1, 2)) == -3));  // (2 + 4) / (2 + 1)
  CHECK((score(presets::marian(5)) == -6 && score(presets::marian(5, 1, 0.5)) == -2));
  CHECK(score(presets::varstream(5)) == -1.5);
  auto const pruning = presets::varstream(8).pruning;
  CHECK((pruning.absolute_threshold == 1.5 && pruning.max_per_parent == 5));
  CHECK(presets::varstream(8, 2, 3).pruning.max_per_parent == 3);
}
