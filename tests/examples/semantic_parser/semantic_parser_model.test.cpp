// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/slot_checker.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <semantic_parser/accuracy.hpp>
#include <semantic_parser/data.hpp>
#include <semantic_parser/model.hpp>
#include <semantic_parser/weights.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace sluice;
using namespace semantic_parser;

namespace {

static_assert(Model<SemanticParser> && ReleasingModel<SemanticParser> && EncodingModel<SemanticParser>);

/// A folder of random weights, gone with the object. Sizes are such that every vector has a remainder.
class Folder {
 public:
  static constexpr std::int64_t d = 21, source_words = 11, target_words = 9, length = 14;

  Folder() {
    auto name = (std::filesystem::temp_directory_path() / "sluice.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
    path = name;
    std::mt19937 random(7);
    auto const number = [&] { return std::uniform_real_distribution<float>(-1, 1)(random); };
    auto const tensor = [&](std::string const& label, std::vector<std::int64_t> const& shape) {
      manifest["tensors"][label] = {{"offset", numbers.size() * sizeof(float)}, {"shape", shape}};
      auto count = std::int64_t{1};
      for (auto const size : shape) count *= size;
      for (std::int64_t i = 0; i < count; ++i) numbers.push_back(number());
      numbers.push_back(std::numeric_limits<float>::quiet_NaN());  // between tensors, where nobody looks
    };
    tensor("attention.linear_out.weight", {target_words, d});
    tensor("attention.linear_out.bias", {target_words});
    tensor("attention.linear_att.weight", {d, 2 * d});
    tensor("attention.linear_att.bias", {d});
    for (std::string const side : {"encoder", "decoder"}) {
      tensor(side + ".embedding.weight", {side == "encoder" ? source_words : target_words, d});
      tensor(side + ".lstm.i2h.weight", {4 * d, d});
      tensor(side + ".lstm.i2h.bias", {4 * d});
      tensor(side + ".lstm.h2h.weight", {4 * d, d});
      tensor(side + ".lstm.h2h.bias", {4 * d});
    }
    manifest["rnn_size"] = d, manifest["dec_seq_length"] = length;
    for (std::int64_t i = 0; i < source_words; ++i) manifest["src_vocab"].push_back("s" + std::to_string(i));
    manifest["tgt_vocab"] = {"<S>", "<E>", "<U>", "(", ")", "and", "x", "y", "z"};
    for (std::size_t i = 0; i < 40; ++i) {
      std::vector<Token> source(i * 7 % 19);
      for (auto& token : source) token = static_cast<Token>(random() % source_words);
      manifest["test"].push_back({{"src", source}, {"ref", {3, 6, 4}}});
    }
    write();
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;

  void write() const { write(manifest.dump(), numbers.size()); }
  void write(std::string const& json, std::size_t count) const {
    std::ofstream(path / "manifest.json") << json;
    std::ofstream(path / "weights.f32", std::ios::binary)
        .write(reinterpret_cast<char const*>(numbers.data()), static_cast<std::streamsize>(count * sizeof(float)));
  }

  std::filesystem::path path;
  nlohmann::json manifest;
  std::vector<float> numbers;
};

Data const& data() {
  static Folder const folder;
  static Data const read(folder.path);
  return read;
}
std::shared_ptr<Weights const> weights() {
  static auto const shared = Weights::from(data());
  return shared;
}
std::vector<std::vector<Token>> sources() {
  std::vector<std::vector<Token>> all;
  for (auto const& pair : data().test) all.push_back(pair.source);
  return all;
}

// ---- the network, written down as its formulas -----------------------------------------------------------------------

using Numbers = std::vector<double>;

class Network {
 public:
  explicit Network(Data const& from) : data_(from) {}

  /// log_softmax after <S> and each of the tokens.
  std::vector<Numbers> log_probs(std::vector<Token> const& source, std::vector<Token> const& tokens) const {
    Numbers c(d), h(d);
    std::vector<Numbers> seen;
    cell("encoder", 0, c, h), seen.push_back(h);
    for (auto i = source.rbegin(); i != source.rend(); ++i) cell("encoder", *i, c, h), seen.push_back(h);
    cell("encoder", 1, c, h), seen.push_back(h);
    std::vector<Numbers> lines;
    cell("decoder", 0, c, h), lines.push_back(line(seen, h));
    for (auto const token : tokens) cell("decoder", token, c, h), lines.push_back(line(seen, h));
    return lines;
  }

 private:
  static constexpr std::size_t d = Folder::d;

  std::vector<float> numbers(std::string const& name, std::int64_t rows, std::int64_t columns) const {
    return data_.tensor(name, columns == 0 ? std::vector{rows} : std::vector{rows, columns});
  }
  Numbers linear(std::string const& name, std::size_t rows, Numbers const& x) const {
    auto const weight = numbers(name + ".weight", static_cast<std::int64_t>(rows), std::ssize(x));
    auto const bias = numbers(name + ".bias", static_cast<std::int64_t>(rows), 0);
    Numbers y(bias.begin(), bias.end());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += static_cast<double>(weight[i * x.size() + j]) * x[j];
    return y;
  }
  void cell(std::string const& side, Token token, Numbers& c, Numbers& h) const {
    auto const words = side == "encoder" ? Folder::source_words : Folder::target_words;
    auto const embedding = numbers(side + ".embedding.weight", words, Folder::d);
    auto const first = embedding.begin() + token * Folder::d;
    auto const input = linear(side + ".lstm.i2h", 4 * d, Numbers(first, first + Folder::d));
    auto const state = linear(side + ".lstm.h2h", 4 * d, h);
    auto const open = [&](std::size_t i) { return 1 / (1 + std::exp(-input[i] - state[i])); };
    for (std::size_t i = 0; i < d; ++i) {
      auto const fresh = std::tanh(input[2 * d + i] + state[2 * d + i]);
      c[i] = open(d + i) * c[i] + open(i) * fresh;
      h[i] = open(3 * d + i) * std::tanh(c[i]);
    }
  }
  Numbers line(std::vector<Numbers> const& seen, Numbers const& h) const {
    Numbers joint(2 * d), attention;
    std::ranges::copy(h, joint.begin() + Folder::d);
    for (auto const& one : seen) {
      double product = 0;
      for (std::size_t i = 0; i < d; ++i) product += one[i] * h[i];
      attention.push_back(product);
    }
    normalise(attention);
    for (std::size_t p = 0; p < seen.size(); ++p)
      for (std::size_t i = 0; i < d; ++i) joint[i] += std::exp(attention[p]) * seen[p][i];
    auto hidden = linear("attention.linear_att", d, joint);
    for (auto& x : hidden) x = std::tanh(x);
    auto scores = linear("attention.linear_out", Folder::target_words, hidden);
    normalise(scores);
    return scores;
  }
  static void normalise(Numbers& scores) {
    double sum = 0;
    for (auto const x : scores) sum += std::exp(x);
    for (auto& x : scores) x -= std::log(sum);
  }

  Data const& data_;
};

// ---- driving the model -------------------------------------------------------------------------------------------------

using Lines = std::vector<std::vector<float>>;

void start(SemanticParser& model, std::vector<Token> const& source, Slot slot) {
  std::vector<Token> const* const list[] = {&source};
  Slot const slots[] = {slot};
  model.start(list, slots);
}
Lines step(SemanticParser& model, std::vector<Row> const& rows) {
  auto const answer = model.step(rows);
  Lines lines;
  for (std::ptrdiff_t i = 0; i < answer.rows; ++i) lines.emplace_back(answer[i].begin(), answer[i].end());
  return lines;
}
/// One sentence on its own: <S>, then the tokens.
Lines alone(std::vector<Token> const& source, std::vector<Token> tokens) {
  tokens.insert(tokens.begin(), 0);
  SemanticParser model(weights());
  start(model, source, 0);
  Lines lines;
  for (std::int32_t i = 0; i < std::ssize(tokens); ++i)
    lines.push_back(step(model, {{0, 0, i, std::span(tokens).subspan(static_cast<std::size_t>(i), 1)}})[0]);
  return lines;
}
std::vector<Token> random_tokens(std::mt19937& random, std::size_t count) {
  std::vector<Token> tokens(count);
  for (auto& token : tokens) token = static_cast<Token>(random() % Folder::target_words);
  return tokens;
}

}  // namespace

TEST_CASE("a step is that of the network's formulas in double precision", "[semantic_parser]") {
  std::mt19937 random(1);
  Network const network(data());
  double largest = 0;
  for (auto const& source : sources()) {
    auto const tokens = random_tokens(random, 6);
    auto const expected = network.log_probs(source, tokens);
    auto const lines = alone(source, tokens);
    REQUIRE(lines.size() == expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      REQUIRE(lines[i].size() == expected[i].size());
      double sum = 0;
      for (auto const logit : lines[i]) sum += std::exp(static_cast<double>(logit));
      for (std::size_t v = 0; v < lines[i].size(); ++v)
        largest = std::max(largest, std::abs(static_cast<double>(lines[i][v]) - std::log(sum) - expected[i][v]));
    }
  }
  CHECK(largest < 1e-5);
}

TEST_CASE("a line depends on its slot's source and tokens alone, bit for bit", "[semantic_parser]") {
  std::mt19937 random(2);
  constexpr std::size_t steps = 5;
  auto const all = sources();
  std::vector<std::vector<Token>> tokens;
  std::vector<Lines> expected;
  for (auto const& source : all) {
    tokens.push_back(random_tokens(random, steps - 1));
    expected.push_back(alone(source, tokens.back()));
    tokens.back().insert(tokens.back().begin(), 0);
  }
  for (std::size_t const count : {1u, 2u, 3u, 13u, 40u}) {
    INFO(count << " sentences");
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    SemanticParser model(weights());
    std::vector<std::vector<Token> const*> batch;
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < count; ++i) batch.push_back(&all[order[i]]), slots.push_back(static_cast<Slot>(2 * i));
    model.start(batch, slots);
    auto same = true;
    // Not all at once: lengths differ within a step.
    std::vector<std::size_t> held(count);
    for (auto going = true; going;) {
      going = false;
      std::vector<Row> rows;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < count; ++i) {
        if (held[i] == steps) continue;
        going = true;
        if (random() % 3 == 0) continue;
        who.push_back(i);
        rows.push_back(
            {slots[i], slots[i], static_cast<std::int32_t>(held[i]), std::span(tokens[order[i]]).subspan(held[i], 1)});
      }
      if (rows.empty()) continue;
      auto const lines = step(model, rows);
      for (std::size_t r = 0; r < who.size(); ++r) same = same && lines[r] == expected[order[who[r]]][held[who[r]]++];
    }
    CHECK(same);
  }
}

TEST_CASE("slots fork, and may be started again", "[semantic_parser]") {
  std::vector<Token> const source{3, 4, 5}, other{6, 2}, zero{0}, five{5}, six{6}, seven{7};
  SemanticParser model(weights());
  start(model, source, 0), start(model, other, 3);
  step(model, {{0, 0, 0, zero}, {3, 3, 0, zero}});
  auto lines = step(model, {{0, 0, 1, five}, {0, 1, 1, six}, {0, 2, 1, seven}, {3, 3, 1, six}});
  CHECK(lines[0] == alone(source, five)[1]);
  CHECK(lines[1] == alone(source, six)[1]);
  CHECK(lines[2] == alone(source, seven)[1]);
  CHECK(lines[3] == alone(other, six)[1]);
  // Slot 1 lives on in slot 0, whose hypothesis has died; slot 3 in a slot that was of another sentence.
  Slot const gone[] = {0, 2};
  model.release(gone);
  lines = step(model, {{1, 0, 2, five}, {1, 1, 2, seven}, {3, 2, 2, five}});
  CHECK(lines[0] == alone(source, {6, 5})[2]);
  CHECK(lines[1] == alone(source, {6, 7})[2]);
  CHECK(lines[2] == alone(other, {6, 5})[2]);
  start(model, other, 1);
  CHECK(step(model, {{1, 1, 0, zero}})[0] == alone(other, {})[0]);
}

TEST_CASE("sources may be encoded in another thread", "[semantic_parser]") {
  auto const all = sources();
  std::vector<std::vector<Token> const*> pointers;
  for (auto const& source : all) pointers.push_back(&source);
  SemanticParser model(weights());
  SemanticParser::Encoded encoded;
  std::thread([&] { encoded = std::as_const(model).encode(pointers); }).join();
  std::int32_t const items[] = {17, 5};
  Slot const slots[] = {0, 1};
  std::vector<Token> const zero{0};
  model.start(encoded, items, slots);
  auto const lines = step(model, {{0, 0, 0, zero}, {1, 1, 0, zero}});
  CHECK(lines[0] == alone(all[17], {})[0]);
  CHECK(lines[1] == alone(all[5], {})[0]);
}

TEST_CASE("a warm model allocates nothing in a step", "[semantic_parser]") {
  std::vector<Token> const source{3, 4, 5}, zero{0};
  SemanticParser model(weights());
  std::vector<Row> rows;
  auto const run = [&] {
    start(model, source, 0);
    auto const before = test::allocations();
    for (std::int32_t i = 0; i < 10; ++i) {
      rows.clear(), rows.push_back({0, 0, i, zero}), rows.push_back({0, 1, i, zero});
      model.step(rows);
    }
    return test::allocations() - before;
  };
  run();
  CHECK(run() == 0);
}

TEST_CASE("rows of the parser that break the contract are refused, and change nothing", "[semantic_parser]") {
  std::vector<Token> const source{3}, zero{0}, two{0, 0}, bad{9}, negative{-1}, unknown{11};
  SemanticParser model(weights());
  start(model, source, 0);
  auto const refuse = [&](Row const& row) { CHECK_THROWS_AS(step(model, {row}), std::invalid_argument); };
  refuse({1, 1, 0, zero});
  refuse({-1, 0, 0, zero});
  refuse({0, -1, 0, zero});
  refuse({0, 0, 1, zero});
  refuse({0, 0, 0, {}});
  refuse({0, 0, 0, two});
  refuse({0, 0, 0, zero, 0});
  refuse({0, 0, 0, bad});
  refuse({0, 0, 0, negative});
  CHECK_THROWS_AS(start(model, unknown, 0), std::invalid_argument);
  CHECK_THROWS_AS(start(model, negative, 0), std::invalid_argument);
  CHECK(step(model, {{0, 0, 0, zero}})[0] == alone(source, {})[0]);
  refuse({0, 0, 0, zero});  // no roll-back
}

// ---- decoding ------------------------------------------------------------------------------------------------------------

namespace {

template <class S, class P>
std::vector<Result> decode_checked(S const& search, P const& schedule) {
  test::SlotChecker<SemanticParser> model{SemanticParser(weights())};
  auto results = decode(model, sources(), search, schedule);
  CHECK(model.report().empty());
  return results;
}

template <class S>
void same_by_every_schedule(S const& search) {
  using Order = Streaming::Order;
  auto const expected = decode_checked(search, Batched{1});
  auto const check = [&](auto const& schedule) {
    auto const results = decode_checked(search, schedule);
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].ok());
      REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
      for (std::size_t h = 0; h < expected[i].hypotheses.size(); ++h) {
        CHECK(results[i].hypotheses[h].tokens == expected[i].hypotheses[h].tokens);
        CHECK(results[i].hypotheses[h].log_probs == expected[i].hypotheses[h].log_probs);
      }
    }
  };
  check(Batched{3}), check(Batched{100});
  for (auto const order : {Order::oldest_first, Order::shortest_only})
    for (auto const rows : {0, 7, 30}) {
      check(Streaming{.size = 40, .order = order, .max_rows = rows, .drain_after = 0});
      check(Streaming{.size = 6, .order = order, .max_rows = rows});
    }
}

}  // namespace

TEST_CASE("every schedule gives the same lists", "[semantic_parser]") {
  constexpr auto longest = static_cast<std::int32_t>(Folder::length) + 1;
  same_by_every_schedule(Greedy{.length = {.max = longest}});
  auto beam = presets::varstream(5, 6, 3);
  beam.n_best = 5, beam.length.max = longest, beam.at_maximum = AtMaximum::best_unfinished;
  same_by_every_schedule(beam);
}

// ---- the folder ------------------------------------------------------------------------------------------------------------

TEST_CASE("blocks over a recurrent model, which is started again and fed token by token", "[semantic_parser]") {
  SemanticParser plain(weights()), model(weights()), draft(weights());
  Restarting restarting(model), draft_restarting(draft);
  TokenByToken blocks(restarting), draft_blocks(draft_restarting);
  Speculated drafted(blocks, DraftModel(draft_blocks));  // itself: every guess is right
  auto const expected = decode(plain, sources(), Greedy{.length = {.max = 14}});
  for (std::int32_t const block : {2, 5}) {
    auto const found =
        decode(drafted, sources(), Blockwise<>{.block = block, .length = {.max = 14}}, Batched{.size = 7});
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto const &a = found[i].hypotheses.at(0), &b = expected[i].hypotheses.at(0);
      CHECK(a.tokens == b.tokens);
      CHECK(a.log_probs == b.log_probs);
      CHECK((a.blocks.size() < b.tokens.size() || b.tokens.size() == 1));
    }
  }
}

TEST_CASE("a folder is read", "[semantic_parser]") {
  CHECK(data().hidden == Folder::d);
  CHECK(data().length == Folder::length);
  CHECK(data().source_words.size() == Folder::source_words);
  CHECK(data().target_words[5] == "and");
  CHECK(data().test.size() == 40);
  CHECK(data().test[1].source.size() == 7);
  CHECK(data().test[1].reference == std::vector<Token>{3, 6, 4});
  CHECK(weights()->vocabulary.size == Folder::target_words);
  CHECK(weights()->vocabulary.eos == std::vector<Token>{1});
}

TEST_CASE("a fault of a folder is named with file, field and value", "[semantic_parser]") {
  Folder folder;
  auto const said = [&] {
    try {
      Weights::from(Data(folder.path));
    } catch (text::InputError const& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(said() == "nothing");
  auto const manifest = (folder.path / "manifest.json").string(), file = (folder.path / "weights.f32").string();
  auto const wrong = [&](char const* pointer, nlohmann::json const& value, std::string const& expected) {
    auto const kept = folder.manifest;
    folder.manifest[nlohmann::json::json_pointer(pointer)] = value;
    folder.write();
    folder.manifest = kept;
    CHECK(said() == manifest + ": " + expected);
  };
  wrong("/rnn_size", 0, "rnn_size = 0: must be a whole number from 1 to 16384");
  wrong("/rnn_size", "150", "rnn_size = \"150\": must be a whole number from 1 to 16384");
  wrong("/rnn_size", 20, "tensors.encoder.embedding.weight.shape = [11,21]: must be [11,20]");
  wrong("/dec_seq_length", 1.5, "dec_seq_length = 1.5: must be a whole number from 1 to 1048576");
  wrong("/test", nlohmann::json::array(), "test = []: needs a sentence");
  wrong("/test", 5, "test = 5: must be a list");
  wrong("/test/3", 5, "test[3] = 5: must be an object");
  wrong("/test/3/src", {1, 11}, "test[3].src[1] = 11: must be a whole number from 0 to 10");
  wrong("/test/3/ref", {-1}, "test[3].ref[0] = -1: must be a whole number from 0 to 8");
  wrong("/test/3", {{"src", {1}}}, "test[3].ref is missing");
  wrong("/src_vocab/2", 7, "src_vocab[2] = 7: must be a word");
  wrong("/tgt_vocab", {"<S>"}, "tgt_vocab = [\"<S>\"]: needs the start <S> = 0 and the end <E> = 1");
  wrong("/tensors/decoder.lstm.h2h.bias/offset", 2,
        "tensors.decoder.lstm.h2h.bias.offset = 2: must be a multiple of 4");
  wrong("/tensors/decoder.lstm.h2h.bias/shape", {84, 1}, "tensors.decoder.lstm.h2h.bias.shape = [84,1]: must be [84]");
  auto const size = std::to_string(folder.numbers.size() * sizeof(float));
  wrong("/tensors/decoder.lstm.h2h.bias/offset", 1 << 20,
        "tensors.decoder.lstm.h2h.bias.offset = 1048576: the tensor has 336 bytes, " + file + " only " + size);

  auto kept = folder.manifest;
  folder.manifest["tensors"].erase("attention.linear_att.bias"), folder.write(), folder.manifest = kept;
  CHECK(said() == manifest + ": tensors.attention.linear_att.bias is missing");
  folder.manifest.erase("rnn_size"), folder.write(), folder.manifest = kept;
  CHECK(said() == manifest + ": rnn_size is missing");
  folder.write("[1, 2", folder.numbers.size());
  CHECK(said() == manifest + ": not JSON, from byte 6 on");
  folder.write("{\"rnn_size\": " + std::string(200000, '[') + std::string(200000, ']') + "}", folder.numbers.size());
  CHECK(said() == manifest + ": nested too deeply");
  folder.write("[1, 2]", folder.numbers.size());
  CHECK(said() == manifest + ": the file = [1,2]: must be an object");
  folder.write(kept.dump(), folder.numbers.size() / 2);
  CHECK(said().find(file + " only") != std::string::npos);
  auto const at = kept["tensors"]["decoder.lstm.h2h.bias"]["offset"].get<std::size_t>() / sizeof(float);
  folder.numbers[at] = std::numeric_limits<float>::infinity();
  folder.write();
  CHECK(said() == file + ": decoder.lstm.h2h.bias holds inf");
  std::filesystem::remove(folder.path / "weights.f32");
  CHECK(said() == file + ": cannot be opened");
}

// ---- accuracy ----------------------------------------------------------------------------------------------------------------

TEST_CASE("forms are the same up to the order of operands and the parentheses at the end", "[semantic_parser]") {
  constexpr Token opening = 3, closing = 4, conjunction = 5, x = 6, y = 7, z = 8;
  Forms const forms(data().target_words);
  using Form = std::vector<Token>;
  auto const same = [&](Form const& a, Form const& b) {
    return forms.normal(a).has_value() && forms.normal(a) == forms.normal(b);
  };
  CHECK(same({opening, conjunction, x, y, closing}, {opening, conjunction, y, x, closing}));
  CHECK(same({conjunction, opening, z, closing, x}, {conjunction, x, opening, z, closing}));
  CHECK(same({opening, conjunction, x, opening, conjunction, y, z, closing, closing},
             {opening, conjunction, opening, conjunction, z, y, closing, x, closing}));
  CHECK_FALSE(same({opening, x, y, z, closing}, {opening, x, z, y, closing}));
  CHECK_FALSE(same({opening, conjunction, x, y, closing}, {opening, conjunction, x, x, closing}));
  CHECK_FALSE(same({opening, conjunction, closing, x}, {opening, conjunction, x, closing}));
  CHECK(same({opening, x, opening, y}, {opening, x, opening, y, closing, closing}));
  CHECK(same({opening, x, closing, closing}, {opening, x, closing}));
  CHECK(same({}, {}));
  CHECK_FALSE(forms.normal({closing, opening}).has_value());
  CHECK_FALSE(forms.normal({x, closing, opening, y, closing}).has_value());  // one cut off: x ) ( y

  Lists const none(40, {{x}}), first(40, {{opening, x, closing}, {x}}), second(40, {{x}, {opening, x}});
  CHECK(accuracy(none, data()).exact_oracle == 0);
  CHECK(accuracy(none, data()).tree_oracle == 0);
  CHECK(accuracy(first, data()).exact == 1);
  CHECK(accuracy(first, data()).tree == 1);
  CHECK(accuracy(second, data()).exact_oracle == 0);
  CHECK(accuracy(second, data()).tree == 0);
  CHECK(accuracy(second, data()).tree_oracle == 1);
}
