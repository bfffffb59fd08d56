// SPDX-License-Identifier: Apache-2.0
// What the models over ONNX Runtime read from graphs, what they refuse, and what their slots hold.
#include <sluice/core/model.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/onnxruntime.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/onnxruntime_models.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

static_assert(Model<OnnxDecoder<>> && ReleasingModel<OnnxDecoder<>> && !EncodingModel<OnnxDecoder<>>);
static_assert(Model<OnnxEncoderDecoder<Hidden<float>>> && EncodingModel<OnnxEncoderDecoder<>> &&
              ReleasingModel<OnnxEncoderDecoder<>>);

namespace {

using Tokens = std::vector<Token>;
using Lines = std::vector<std::vector<float>>;

template <class M>
Lines step(M& model, std::vector<Row> const& rows) {
  auto const answer = model.step(rows);
  Lines lines;
  for (std::ptrdiff_t i = 0; i < answer.rows; ++i) lines.emplace_back(answer[i].begin(), answer[i].end());
  return lines;
}

template <class M>
void start(M& model, std::vector<typename M::Source> const& sources, std::vector<Slot> const& slots) {
  std::vector<typename M::Source const*> pointers;
  for (auto const& source : sources) pointers.push_back(&source);
  model.start(pointers, slots);
}

void check_near(std::vector<float> const& one, std::vector<float> const& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK_THAT(static_cast<double>(one[i]), WithinAbs(static_cast<double>(other[i]), 1e-3));
}

auto starts_with(std::string const& text) { return Catch::Matchers::StartsWith("sluice: onnxruntime: " + text); }

OnnxGraphs tiny() { return {.decoder = onnx_graph("tiny/model.onnx")}; }
OnnxGraphs gru() { return {.decoder = onnx_graph("gru/model.onnx")}; }

Tokens const bos{1}, word{418}, block{1, 418, 498};
Tokens const short_one{408, 459, 264, 2}, long_one{408, 459, 2615, 613, 4099, 1435, 264, 2};

}  // namespace

TEST_CASE("vocabulary, limits and abilities are the graph's") {
  if (no_onnx()) return;
  OnnxEncoderDecoder const model(onnx_transformer(), onnx_transformer_options());
  CHECK(model.vocabulary().size == 8000);
  CHECK(model.vocabulary().eos == Tokens{2});
  CHECK(model.limits().length == 512);
  CHECK(model.abilities() == Abilities{.roll_back = true});  // blocks: only if told, it has an encoder
  CHECK(OnnxDecoder(tiny()).vocabulary().size == 60);
  CHECK(OnnxDecoder(tiny(), {.size = 57}).vocabulary().size == 57);
  CHECK(OnnxDecoder(tiny()).abilities() == Abilities{.ragged = true, .blocks = true, .roll_back = true});
  CHECK(OnnxDecoder(gru()).abilities() == Abilities{.ragged = true});
  CHECK(OnnxDecoder(tiny(), {.abilities = Abilities{.blocks = true}}).abilities() == Abilities{.blocks = true});
}

TEST_CASE("slots are cut, forked and fed blocks, sources of any width side by side") {
  if (no_onnx()) return;
  for (auto const merged : {true, false}) {
    auto options = onnx_transformer_options();
    options.abilities = Abilities{.blocks = true, .roll_back = true};
    OnnxEncoderDecoder model(onnx_transformer(merged), options);
    start(model, {short_one}, {0});
    auto const first = step(model, {{0, 0, 0, bos}});
    auto const second = step(model, {{0, 0, 1, word}});

    start(model, {long_one, short_one}, {4, 7});
    auto const lines = step(model, {{.from = 0, .to = 0, .length = 0, .tokens = block, .lines = 3},
                                    {.from = 7, .to = 7, .length = 0, .tokens = block, .lines = 2}});
    REQUIRE(lines.size() == 5);
    check_near(lines[0], first[0]);
    check_near(lines[1], second[0]);
    check_near(lines[3], lines[1]);
    check_near(lines[4], lines[2]);

    // A fork that is cut; its parent stays. Three slots of different lengths and widths then step together.
    auto const other = step(model, {{4, 4, 0, bos}});
    auto const joined = step(model, {{.from = 0, .to = 2, .length = 1, .tokens = word},
                                     {.from = 4, .to = 4, .length = 1, .tokens = word},
                                     {.from = 7, .to = 7, .length = 1, .tokens = word}});
    check_near(joined[0], second[0]);
    check_near(joined[2], second[0]);
    auto const parent = step(model, {{0, 0, 2, Tokens{block[2]}}});
    check_near(parent[0], lines[2]);
    check_near(step(model, {{4, 4, 0, bos}})[0], other[0]);  // rolled back to nothing
    // All lines of all rows, and one of each.
    start(model, {short_one, long_one}, {5, 6});
    auto const all = step(model, {{.from = 5, .to = 5, .length = 0, .tokens = block, .lines = 3},
                                  {.from = 6, .to = 6, .length = 0, .tokens = block, .lines = 3}});
    auto const last = step(model, {{.from = 5, .to = 5, .length = 0, .tokens = block, .lines = 1},
                                   {.from = 6, .to = 6, .length = 0, .tokens = block, .lines = 1}});
    check_near(all[1], second[0]);
    check_near(all[2], last[0]);
    check_near(all[5], last[1]);
  }
}

TEST_CASE("sources of numbers are encoded as those of tokens, of any size side by side") {
  if (no_onnx()) return;
  auto const options = onnx_transformer_options();
  OnnxEncoderDecoder words(onnx_transformer(true, "transformer_unmasked"), options);
  auto graphs = onnx_transformer(true, "transformer_unmasked");
  graphs.encoder = onnx_graph("transformer_numbers/encoder_model.onnx");
  OnnxEncoderDecoder<Scores<float>, OnnxNumbers> numbers(graphs, options);

  // Both numbers of a place add up to its token; those of one axis lie side by side.
  auto const as_numbers = [](Tokens const& tokens) {
    OnnxNumbers result;
    for (std::size_t i = 0; i < tokens.size(); ++i) result.push_back(static_cast<float>(i));
    for (std::size_t i = 0; i < tokens.size(); ++i) result.push_back(static_cast<float>(tokens[i]) - result[i]);
    return result;
  };
  std::vector<Tokens> const sources{short_one, long_one, long_one};
  std::vector<OnnxNumbers> given;
  for (auto const& source : sources) given.push_back(as_numbers(source));
  Greedy const search{.length = {.max = 12}};
  for (std::size_t const size : {1u, 3u}) {
    auto const expected = decode(words, sources, search, Batched{.size = size});
    auto const results = decode(numbers, given, search, Batched{.size = size});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      REQUIRE(results[i].ok());
      CHECK(results[i].hypotheses[0].tokens == expected[i].hypotheses[0].tokens);
      CHECK_THAT(results[i].hypotheses[0].log_prob, WithinAbs(expected[i].hypotheses[0].log_prob, 1e-4));
    }
  }

  for (std::size_t const size : {0u, 3u}) {
    OnnxNumbers const odd(size);
    CHECK_THROWS_WITH(start(numbers, {odd}, {0}), starts_with("numbers of the source = " + std::to_string(size)));
  }
  using Numbers = OnnxEncoderDecoder<Scores<float>, OnnxNumbers>;
  CHECK_THROWS_WITH(Numbers(onnx_transformer(), options), starts_with("transformer/encoder_model.onnx: inputs = 2"));
  CHECK_THROWS_WITH(OnnxEncoderDecoder(graphs, options),
                    starts_with("transformer_numbers/encoder_model.onnx: input_ids = its shape: must be there"));
}

TEST_CASE("rows of any length and number of tokens step together, where there are mask and positions") {
  if (no_onnx()) return;
  OnnxDecoder model(tiny(), onnx_drawn_options()), alone(tiny(), onnx_drawn_options());
  Tokens const a{0, 5, 9, 11}, b{0, 7}, c{30}, d{12, 13, 14};
  start(model, {{}, {}, {}}, {0, 1, 2}), start(alone, {{}, {}, {}}, {0, 1, 2});
  auto const first = step(model, {{.from = 0, .to = 0, .length = 0, .tokens = a, .lines = 2}, {1, 1, 0, b}});
  check_near(first[1], step(alone, {{0, 0, 0, a}})[0]);
  check_near(first[2], step(alone, {{1, 1, 0, b}})[0]);
  auto const then = step(model, {{0, 0, 4, c}, {1, 1, 1, c}, {.from = 2, .to = 2, .length = 0, .tokens = d}});
  check_near(then[0], step(alone, {{0, 0, 4, c}})[0]);
  check_near(then[1], step(alone, {{1, 1, 1, c}})[0]);
  check_near(then[2], step(alone, {{2, 2, 0, d}})[0]);
  auto const forked = step(model, {{0, 0, 5, c}, {.from = 0, .to = 1, .length = 2, .tokens = c}, {2, 2, 3, c}});
  check_near(forked[1], step(alone, {{.from = 0, .to = 1, .length = 2, .tokens = c}})[0]);
  check_near(forked[0], step(alone, {{0, 0, 5, c}})[0]);
  check_near(forked[2], step(alone, {{2, 2, 3, c}})[0]);
}

TEST_CASE("what is released is given back") {
  if (no_onnx()) return;
  OnnxEncoderDecoder model(onnx_transformer(), onnx_transformer_options());
  start(model, std::vector<Tokens>(8, long_one), {0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<Row> rows;
  for (Slot slot = 0; slot < 8; ++slot) rows.push_back({slot, slot, 0, bos});
  step(model, rows);
  CHECK(model.rows() == 8);
  std::vector<Slot> const some{1, 2, 3, 5, 6};
  model.release(some);
  CHECK(model.rows() == 3);
  auto const lines = step(model, {{0, 0, 1, word}, {4, 4, 1, word}, {7, 7, 1, word}});
  check_near(lines[1], step(model, {{4, 4, 1, word}})[0]);
  std::vector<Slot> const rest{0, 4, 7};
  model.release(rest);
  model.release(rest);  // of nothing: nothing
  CHECK(model.rows() == 0);
}

TEST_CASE("the layer that was cut off is that of the weights") {
  if (no_onnx()) return;
  auto graphs = onnx_transformer();
  OnnxEncoderDecoder logits(graphs, onnx_transformer_options());
  graphs.decoder = onnx_graph("transformer/hidden.onnx");
  OnnxEncoderDecoder<Hidden<float>> model(graphs, onnx_transformer_options());
  auto const layer = onnx_output(onnx_graph("transformer/layer.onnx"));
  CHECK(layer.size == 256);
  CHECK(layer.weights().rows == 8000);
  CHECK(layer.bias.size() == 8000);
  DenseProjection projection(layer.weights(), layer.bias);
  start(model, {long_one}, {0}), start(logits, {long_one}, {0});
  std::vector<Row> const rows{{0, 0, 0, bos}};
  auto const ours = projection.logits(model.step(rows))[0];
  check_near({ours.begin(), ours.end()}, step(logits, rows)[0]);
  CHECK_THROWS_WITH(onnx_output(onnx_graph("gru/model.onnx")), starts_with("output layer = gru/model.onnx: must be"));
  CHECK_THROWS_WITH(onnx_output({}), starts_with("output layer"));
}

TEST_CASE("graphs that are none of such a model are refused by name") {
  if (no_onnx()) return;
  auto const transformer = onnx_transformer();
  CHECK_THROWS_WITH(load_onnx(onnx_environment(), "missing.onnx"),
                    Catch::Matchers::StartsWith("onnxruntime: missing.onnx: "));
  CHECK_THROWS_WITH(OnnxDecoder({}), starts_with("graphs.decoder = null"));
  CHECK_THROWS_WITH(OnnxEncoderDecoder({.decoder = transformer.decoder}),
                    starts_with("transformer/decoder_model_merged.onnx: input = encoder_hidden_states: has no output"));
  CHECK_THROWS_WITH(OnnxEncoderDecoder(tiny()), starts_with("graphs.encoder = null"));
  CHECK_THROWS_WITH(OnnxDecoder(transformer), starts_with("graphs.encoder = transformer/encoder_model.onnx: needs"));
  CHECK_THROWS_WITH(OnnxEncoderDecoder({.decoder = onnx_graph("tiny/model.onnx"), .encoder = transformer.encoder}),
                    starts_with("tiny/model.onnx = its inputs: take nothing"));
  CHECK_THROWS_WITH(OnnxDecoder({.decoder = transformer.encoder}),
                    starts_with("transformer/encoder_model.onnx: the output = logits: is not there"));
  CHECK_THROWS_WITH(OnnxDecoder({.decoder = transformer.encoder}, {.answer = "last_hidden_state"}),
                    starts_with("transformer/encoder_model.onnx: states = none: "));
  CHECK_THROWS_WITH(OnnxDecoder<Hidden<float>>(tiny()), starts_with("tiny/model.onnx: the output = hidden_states"));
  // With past alone, what the source gives is made by nothing.
  CHECK_THROWS_WITH(
      OnnxEncoderDecoder(
          {.decoder = onnx_graph("transformer/decoder_with_past_model.onnx"), .encoder = transformer.encoder}),
      starts_with("transformer/decoder_with_past_model.onnx: input = past_key_values.0.encoder.key: is made"));
  CHECK_THROWS_WITH(OnnxDecoder({.decoder = onnx_graph("gru/model.onnx"), .first = onnx_graph("tiny/model.onnx")}),
                    starts_with("tiny/model.onnx: input = input_ids: is none of gru/model.onnx"));
}

TEST_CASE("options that make no sense are refused by name") {
  if (no_onnx()) return;
  CHECK_THROWS_WITH(OnnxDecoder(tiny(), {.never = {60}}), "sluice: vocabulary.never = 60: is outside the vocabulary");
  CHECK_THROWS_WITH(OnnxDecoder(tiny(), {.size = 61}), starts_with("options.size = 61"));
  CHECK_THROWS_WITH(OnnxDecoder(tiny(), {.length = 0}), starts_with("options.length = 0"));
  CHECK_THROWS_WITH(OnnxDecoder<Hidden<float>>({.decoder = onnx_graph("gru/hidden.onnx")}),
                    starts_with("options.size = 0"));
  CHECK_THROWS_WITH(OnnxDecoder(tiny(), {.tokens = "ids"}), starts_with("tiny/model.onnx: the input of tokens = ids"));
  CHECK_THROWS_WITH(OnnxDecoder(tiny(), {.answer = "scores"}), starts_with("tiny/model.onnx: the output = scores"));
  CHECK_THROWS_WITH(OnnxDecoder(gru(), {.states = {{"state_in", "logits"}}}),
                    starts_with("gru/model.onnx: input = state_in: has no output logits of its type and rank"));
  CHECK_THROWS_WITH(OnnxDecoder(gru(), {.abilities = Abilities{.roll_back = true}}), starts_with("options.abilities"));
  CHECK_THROWS_WITH(OnnxDecoder(tiny(), {.abilities = Abilities{.trees = true}}), starts_with("options.abilities"));
  CHECK(OnnxDecoder(gru(), {.states = {{"state_in", "state_out"}}}).vocabulary().size == 50);
}

TEST_CASE("bad input is refused by name, and fails alone") {
  if (no_onnx()) return;
  OnnxEncoderDecoder model(onnx_transformer(), onnx_transformer_options());
  CHECK_THROWS_WITH(start(model, {{-3}}, {0}), starts_with("token of the source = -3"));
  CHECK_THROWS_WITH(start(model, {{}}, {0}), starts_with("tokens of the source = 0"));
  CHECK_THROWS_WITH(start(model, {short_one}, {-1}), starts_with("slot = -1"));
  CHECK_THROWS_WITH(start(model, {{9000}}, {0}),
                    Catch::Matchers::StartsWith("onnxruntime: transformer/encoder_model.onnx: "));
  CHECK_THROWS_WITH(step(model, {{3, 3, 0, bos}}), starts_with("slot = 3: holds nothing"));
  start(model, {short_one}, {3});
  CHECK_THROWS_WITH(step(model, {{3, 3, 1, bos}}), starts_with("length = 1: is more than the slot holds"));
  CHECK(model.rows() == 1);

  // What ONNX Runtime refuses takes its own slots only.
  start(model, {short_one, short_one}, {4, 5});
  auto const before = step(model, {{4, 4, 0, bos}});
  Tokens const outside{8000};
  CHECK_THROWS_WITH(step(model, {{5, 5, 0, outside}}),
                    Catch::Matchers::StartsWith("onnxruntime: transformer/decoder_model_merged.onnx: "));
  check_near(step(model, {{4, 4, 0, bos}})[0], before[0]);

  std::vector<Tokens> const sources{short_one, {9000}, long_one};
  OnnxEncoderDecoder fresh(onnx_transformer(), onnx_transformer_options());
  auto const results = decode(fresh, sources, Greedy{.length = {.max = 20}}, Batched{.size = 3});
  CHECK(results[0].ok());
  CHECK(results[1].failure == Failure::source);
  CHECK(results[2].ok());
  CHECK(fresh.rows() == 0);
}
