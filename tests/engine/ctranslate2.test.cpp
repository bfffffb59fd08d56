// SPDX-License-Identifier: Apache-2.0
// What CTranslate2Model reads from a loaded model, what it refuses, and what its slots hold.
#include <sluice/core/model.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/ctranslate2.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/ctranslate2_model.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

static_assert(Model<CTranslate2> && EncodingModel<CTranslate2> && ReleasingModel<CTranslate2>);
static_assert(Model<CTranslate2Logits> && EncodingModel<CTranslate2Logits> && ReleasingModel<CTranslate2Logits>);

namespace {

using Tokens = std::vector<Token>;

void start(CTranslate2& model, std::vector<Tokens> const& sources, std::vector<Slot> const& slots) {
  std::vector<Tokens const*> pointers;
  for (auto const& source : sources) pointers.push_back(&source);
  model.start(pointers, slots);
}

/// The hidden vector of each row.
std::vector<std::vector<float>> step(CTranslate2& model, std::vector<Row> const& rows) {
  auto const answer = model.step(rows);
  std::vector<std::vector<float>> lines;
  for (std::ptrdiff_t i = 0; i < answer.rows; ++i) lines.emplace_back(answer[i].begin(), answer[i].end());
  return lines;
}

void check_near(std::vector<float> const& one, std::vector<float> const& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK_THAT(static_cast<double>(one[i]), WithinAbs(static_cast<double>(other[i]), 1e-3));
}

Tokens const bos{1}, word{418}, block{1, 418, 498};
Tokens const short_one{408, 459, 264}, long_one{408, 459, 2615, 613, 4099, 1435, 264};

}  // namespace

TEST_CASE("the version of CTranslate2 in the name of its library", "[ctranslate2]") {
  for (auto const& [file, version] :
       std::vector<std::pair<std::string, std::string>>{{"libctranslate2.so.4.8.1", "4.8.1"},
                                                        {"libctranslate2-1a2b3c.so.4.8.5", "4.8.5"},
                                                        {"libctranslate2.so.4", ""},
                                                        {"libctranslate2.so", ""},
                                                        {"program", ""},
                                                        {"x.so.4.8.1-rc1", ""}})
    CHECK(sluice::detail::ctranslate2_version_in(file) == version);
}

TEST_CASE("vocabulary, limits and abilities are the model's") {
  CTranslate2 const model(shared_ctranslate2(), {0, 1});
  auto const& vocabulary = model.vocabulary();
  CHECK(vocabulary.size == 8000);
  CHECK(vocabulary.bos == 1);
  CHECK(vocabulary.eos == Tokens{2});
  CHECK(vocabulary.never == Tokens{0, 1});
  CHECK(model.limits().length == 512);  // of its table of positions
  CHECK(model.abilities() == Abilities{.ragged = false, .blocks = true, .roll_back = true});

  std::vector<std::string> const names{"t7", "not there", "t408"};
  CHECK(model.source_tokens(names) == Tokens{7, 3, 408});
  CHECK(model.target_tokens(names) == Tokens{7, 3, 408});
  CHECK(model.pieces(Tokens{7, 408, 2}) == std::vector<std::string>{"t7", "t408"});
  CHECK_THROWS_AS(model.pieces(Tokens{8000}), std::invalid_argument);
}

TEST_CASE("the output layer is that of the weights") {
  CTranslate2 model(shared_ctranslate2());
  CTranslate2Logits logits(shared_ctranslate2());
  auto const output = model.output();
  CHECK(output.size == 256);
  CHECK(output.weights().rows == 8000);
  CHECK(output.bias.size() == 8000);
  std::vector<Tokens const*> const source{&long_one};
  std::vector<Slot> const slot{0};
  std::vector<Row> const rows{{.from = 0, .to = 0, .length = 0, .tokens = bos}};
  model.start(source, slot), logits.start(source, slot);
  DenseProjection projection(output.weights(), output.bias);
  auto const ours = projection.logits(model.step(rows))[0], theirs = logits.step(rows)[0];
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    CHECK_THAT(static_cast<double>(ours[i]), WithinAbs(static_cast<double>(theirs[i]), 1e-3));
}

TEST_CASE("slots are cut, forked and fed blocks, sources of any width side by side") {
  CTranslate2 model(shared_ctranslate2());
  start(model, {short_one}, {0});
  auto const first = step(model, {{0, 0, 0, bos}});
  auto const second = step(model, {{0, 0, 1, word}});

  start(model, {long_one, short_one}, {4, 7});
  // The whole block of a slot that was never fed, beside one that is rolled back to nothing.
  auto const lines = step(model, {{.from = 0, .to = 0, .length = 0, .tokens = block, .lines = 3},
                                  {.from = 7, .to = 7, .length = 0, .tokens = block, .lines = 2}});
  REQUIRE(lines.size() == 5);
  check_near(lines[0], first[0]);
  check_near(lines[1], second[0]);
  check_near(lines[3], lines[1]);
  check_near(lines[4], lines[2]);

  // A fork that is cut; its parent stays. Three slots of different lengths and widths then step together.
  step(model, {{4, 4, 0, bos}});
  auto const joined = step(model, {{.from = 0, .to = 2, .length = 1, .tokens = word},
                                   {.from = 4, .to = 4, .length = 1, .tokens = word},
                                   {.from = 7, .to = 7, .length = 1, .tokens = word}});
  check_near(joined[0], second[0]);
  check_near(joined[2], second[0]);
  auto const parent = step(model, {{0, 0, 2, Tokens{block[2]}}});
  check_near(parent[0], lines[2]);
}

TEST_CASE("what is released is given back") {
  CTranslate2 model(shared_ctranslate2());
  start(model, std::vector<Tokens>(8, long_one), {0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<Row> rows;
  for (Slot slot = 0; slot < 8; ++slot) rows.push_back({slot, slot, 0, bos});
  auto const before = step(model, rows);
  CHECK(model.rows() == 8);
  std::vector<Slot> const some{1, 2, 3, 5, 6};
  model.release(some);
  CHECK(model.rows() == 3);
  check_near(step(model, {{0, 0, 1, word}, {4, 4, 1, word}, {7, 7, 1, word}})[1], step(model, {{4, 4, 1, word}})[0]);
  std::vector<Slot> const rest{0, 4, 7};
  model.release(rest);
  model.release(rest);  // of nothing: nothing
  CHECK(model.rows() == 0);
}

TEST_CASE("bad input is refused by name") {
  CTranslate2 model(shared_ctranslate2());
  CHECK_THROWS_WITH(CTranslate2(nullptr), Catch::Matchers::StartsWith("sluice: CTranslate2: model"));
  CHECK_THROWS_WITH(CTranslate2(shared_ctranslate2(), {8000}),
                    "sluice: vocabulary.never = 8000: is outside the vocabulary");
  CHECK_THROWS_WITH(start(model, {{8000}}, {0}),
                    "sluice: CTranslate2: token of the source = 8000: is outside the source's vocabulary");
  CHECK_THROWS_WITH(start(model, {Tokens(512, 5)}, {0}),
                    "sluice: CTranslate2: tokens of the source = 513: must be in [1, 512]");
  CHECK_THROWS_WITH(start(model, {short_one}, {-1}), "sluice: CTranslate2: slot = -1: must not be negative");
  CHECK_THROWS_WITH(step(model, {{3, 3, 0, bos}}), "sluice: CTranslate2: slot = 3: holds nothing");
  start(model, {short_one}, {3});
  CHECK_THROWS_WITH(step(model, {{3, 3, 1, bos}}), "sluice: CTranslate2: length = 1: is more than the slot holds");
  CHECK(model.rows() == 1);

  // One bad source fails alone.
  auto const output = model.output();
  DenseProjection projection(output.weights(), output.bias);
  std::vector<Tokens> const sources{short_one, {9000}, long_one};
  auto const results = decode(model, sources, Greedy{.length = {.max = 20}}, Batched{.size = 3}, projection);
  CHECK(results[0].ok());
  CHECK(results[1].failure == Failure::source);
  CHECK(results[2].ok());
}
