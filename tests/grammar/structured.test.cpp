// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/guessing.hpp>
#include <support/table_model.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <grammar/random_grammar.hpp>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Tokens of a table: pad, bos, eos, then these.
struct Language {
  Table table{.size = 12, .eos_bias = 2};
  TokenBytes bytes{std::vector<std::string>{"", "", "", "a", "b", "c", "ab", "ba", "cc", "abc", "(", ")"}};
  TokenTrie trie{bytes, {.size = 12, .bos = bos, .eos = {eos}, .never = {pad, bos}}};

  Structure structure(std::string const& gbnf) const { return {Grammar::from_gbnf(gbnf), trie}; }
  std::string text(Hypothesis const& h) const { return bytes.text(h.tokens); }
};

std::string const brackets = R"g(root ::= "(" item ("c" item)* ")"
item ::= [ab]+ | root)g";

template <Search S>
std::vector<TableRequest<Processed<S>>> sentences(std::vector<Token> const& prefix = {}, std::uint64_t count = 25) {
  std::vector<TableRequest<Processed<S>>> requests;
  for (std::uint64_t source = 0; source < count; ++source)
    requests.push_back({.source = source, .prefix = prefix, .seed = source + 7});
  return requests;
}

bool same(Result const& a, Result const& b) {
  return a.failure == b.failure && std::ranges::equal(a.hypotheses, b.hypotheses, [](auto const& x, auto const& y) {
           return x.tokens == y.tokens && x.score == y.score && x.finished == y.finished;
         });
}

/// Every output is finished and complete, and the same alone as in a batch, for any maximum length.
template <Search S>
void obeys(S search, std::vector<Token> const& prefix = {}) {
  Language const language;
  auto const structure = language.structure(brackets);
  auto const& grammar = Grammar::from_gbnf(brackets);
  for (auto const most : {4, 5, 6, 9, 20}) {
    if constexpr (requires { search.length; }) search.length.max = most;
    else if constexpr (requires { search.beam; }) search.beam.length.max = most;
    else search.search.length.max = most;
    Processed<S> const structured{search, structure};
    auto const together = run<everything>(language.table, sentences<S>(prefix), structured, Batched{.size = 4});
    auto const streamed = run<everything>(language.table, sentences<S>(prefix), structured, Streaming{});
    std::size_t outputs = 0;
    for (std::size_t i = 0; i < together.size(); ++i) {
      auto const& result = together[i];
      INFO(most << " " << result.message);
      CHECK(result.failure == Failure::none);
      REQUIRE_FALSE(result.hypotheses.empty());
      for (auto const& h : result.hypotheses) {
        ++outputs;
        CAPTURE(language.text(h));
        REQUIRE(h.finished);
        REQUIRE(h.tokens.back() == eos);
        REQUIRE(h.tokens.size() <= static_cast<std::size_t>(most));
        REQUIRE(grammar.matches(language.text(h)));
        REQUIRE(std::isfinite(h.score));
      }
      REQUIRE(same(result, streamed[i]));
      auto alone = sentences<S>(prefix);
      auto const one = run<everything>(language.table, {alone[i]}, Processed<S>{search, language.structure(brackets)});
      REQUIRE(same(result, one[0]));
    }
    CHECK(outputs >= together.size());
  }
}

}  // namespace

TEST_CASE("outputs obey under every search, at tight maximum lengths too", "[structured]") {
  SECTION("greedy") { obeys(Greedy{}); }
  SECTION("greedy behind a prefix") { obeys(Greedy{}, {10}); }
  SECTION("beam") { obeys(BeamSearch{.width = 4, .n_best = 4}); }
  SECTION("beam behind a prefix") { obeys(BeamSearch{.width = 3}, {10}); }
  SECTION("presets") {
    obeys(presets::fairseq(3));
    obeys(presets::ctranslate2(3));
    obeys(presets::huggingface(3));
    obeys(presets::marian(3));
  }
  SECTION("diverse") { obeys(DiverseBeamSearch{.search = {.width = 2, .n_best = 2}, .groups = 2, .n_best = 3}); }
  SECTION("sample") { obeys(Sample{}); }
  SECTION("stochastic") { obeys(StochasticBeam{}); }
  SECTION("constrained") { obeys(ConstrainedBeamSearch<Phrases>{.beam = {.width = 6}, .constraints = Phrases({{4}})}); }
}

TEST_CASE("a maximum length within which nothing obeys is refused, and so is a prefix that breaks the grammar",
          "[structured]") {
  Language const language;
  auto const structure = language.structure(brackets);
  auto const decode = [&](std::int32_t most, std::vector<Token> prefix) {
    Processed<Greedy> const search{Greedy{.length = {.max = most}}, structure};
    return run<everything>(language.table, sentences<Greedy>(prefix, 1), search)[0];
  };
  auto const refused = [](Result const& result, std::string const& why) {
    INFO(result.message);
    return result.failure == Failure::bad_request && result.message.find(why) != std::string::npos;
  };
  CHECK(refused(decode(3, {}), "length.max = 3: the grammar needs 3 tokens more"));
  CHECK(refused(decode(0, {}), "length.max = 0"));
  CHECK(decode(4, {}).failure == Failure::none);
  CHECK(refused(decode(9, {10, 5}), "breaks the grammar"));
  CHECK(refused(decode(9, {10, 3, 11, 3}), "breaks the grammar"));
  CHECK(refused(decode(6, {10, 3, 5, 10}), "the grammar needs 3 tokens more, and the end, after a prefix of 4"));
  CHECK(decode(8, {10, 3, 5, 10}).failure == Failure::none);
  auto const cannot = Processed<Greedy>{Greedy{}, language.structure("root ::= \"(x)\"")};
  CHECK(
      refused(run<everything>(language.table, sentences<Greedy>({}, 1), cannot)[0], "no token, or sequence of tokens"));
}

TEST_CASE("structured greedy decoding takes the best of what obeys", "[structured]") {
  Language const language;
  auto const structure = language.structure(brackets);
  for (std::uint64_t source = 0; source < 30; ++source) {
    Processed<Greedy> const search{Greedy{.length = {.max = 9}}, structure};
    auto requests = sentences<Greedy>({}, 30);
    auto const result = run<everything>(language.table, {requests[source]}, search)[0];
    std::vector<Token> so_far;
    auto state = structure.start();
    std::vector<double> log_probs(12);
    for (auto const token : result.hypotheses[0].tokens) {
      language.table.log_probs(source, so_far, log_probs);
      auto const set = structure.may_follow(state, 9 - static_cast<std::int32_t>(so_far.size()));
      Token best = -1;
      for (Token t = 0; t < 12; ++t)
        if (set->contains(t) &&
            (best < 0 || log_probs[static_cast<std::size_t>(t)] > log_probs[static_cast<std::size_t>(best)]))
          best = t;
      REQUIRE(token == best);
      so_far.push_back(token), state = structure.next(state, token);
    }
  }
}

TEST_CASE("blockwise decoding under a grammar gives what greedy decoding does, and verifies no forbidden guess",
          "[structured]") {
  Language const language;
  auto const structure = language.structure(brackets);
  auto const kinds = {Guesses::as_they_are,  Guesses::corrupted, Guesses::eos_first,
                      Guesses::out_of_range, Guesses::random,    Guesses::too_many};
  std::size_t rounds = 0, tokens = 0, forks = 0;
  for (auto const most : {4, 7, 20})
    for (auto const kind : kinds) {
      Processed<Greedy> const greedy{Greedy{.length = {.max = most}}, structure};
      auto const expected = run<everything>(language.table, sentences<Greedy>(), greedy);
      using Guessed = Processed<Blockwise<>>;
      for (auto const branches : {1, 3}) {
        Guessed const blockwise{Blockwise<>{.block = 4, .length = {.max = most}, .branches = branches}, structure};
        CheckedTable<everything> model{TableModel<everything>(language.table)};
        TableModel<everything> itself(language.table);
        Speculated drafted(model, DraftModel(itself));
        Guessing guessing(drafted, kind, 5);
        auto const found = decode(guessing, sentences<Blockwise<>>(), blockwise);
        CHECK(model.report() == "");
        for (std::size_t i = 0; i < found.size(); ++i) {
          auto const& h = found[i].hypotheses[0];
          CHECK(h.tokens == expected[i].hypotheses[0].tokens);
          CHECK(h.finished);
          if (kind == Guesses::as_they_are) rounds += h.blocks.size(), tokens += h.tokens.size();
        }
        if (branches == 1) CHECK(model.counters().forks == 0);
        else if (kind == Guesses::as_they_are) forks += model.counters().forks;
      }
    }
  CHECK(rounds < tokens);  // allowed guesses are kept
  CHECK(forks > 20);       // one for each path verified in addition to the first
}

TEST_CASE("behind reasoning with a budget, outputs obey under every search", "[structured]") {
  Language const language;
  auto const answer = Grammar::from_gbnf(brackets);
  constexpr Token end = 8;  // "cc"
  for (auto const budget : {0, 3, -1}) {
    Structure const structure(after_reasoning(answer, {.end = "cc", .budget = budget}), language.trie);
    std::size_t full = 0;
    auto const check = [&](std::vector<Result> const& results) {
      for (auto const& result : results)
        for (auto const& h : result.hypotheses) {
          INFO(language.text(h));
          auto const over = std::ranges::find(h.tokens, end);
          REQUIRE(over != h.tokens.end());
          REQUIRE(h.finished);
          REQUIRE((budget < 0 || over - h.tokens.begin() <= budget));
          full += over - h.tokens.begin() == budget ? 1 : 0;
          REQUIRE(answer.matches(language.bytes.text(std::vector<Token>(over + 1, h.tokens.end()))));
        }
      return results;
    };
    auto const greedy = check(run<everything>(language.table, sentences<Greedy>(),
                                              Processed<Greedy>{Greedy{.length = {.max = 12}}, structure}));
    using Beam = BeamSearch;
    check(run<everything>(language.table, sentences<Beam>(),
                          Processed<Beam>{Beam{.width = 4, .n_best = 4, .length = {.max = 12}}, structure}));
    check(run<everything>(language.table, sentences<Sample>(),
                          Processed<Sample>{Sample{.length = {.max = 12}}, structure}));
    CHECK((budget < 0 || full > 10));
    CheckedTable<everything> model{TableModel<everything>(language.table)};
    TableModel<everything> itself(language.table);
    Speculated drafted(model, DraftModel(itself));
    Guessing guessing(drafted, Guesses::random, 5);
    Processed<Blockwise<>> const blocks{Blockwise<>{.block = 4, .length = {.max = 12}, .branches = 1}, structure};
    auto const found = decode(guessing, sentences<Blockwise<>>(), blocks);
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(found[i].hypotheses[0].tokens == greedy[i].hypotheses[0].tokens);
  }
}

TEST_CASE("a relaxed block keeps only guesses that obey", "[structured]") {
  Language const language;
  using Guessed = Processed<Blockwise<acceptance::TopK>>;
  Guessed const blockwise{Blockwise<acceptance::TopK>{.block = 4, .accept = {.n = 9}, .length = {.max = 9}},
                          language.structure(brackets)};
  CheckedTable<everything> model{TableModel<everything>(language.table)};
  TableModel<everything> itself(language.table);
  Speculated drafted(model, DraftModel(itself));
  Guessing guessing(drafted, Guesses::random, 5);
  for (auto const& result : decode(guessing, sentences<Blockwise<acceptance::TopK>>(), blockwise)) {
    CHECK(result.hypotheses[0].finished);
    CHECK(Grammar::from_gbnf(brackets).matches(language.text(result.hypotheses[0])));
  }
  CHECK(model.report() == "");
}

TEST_CASE("a forced output that breaks the grammar has no probability", "[structured]") {
  Language const language;
  Processed<ForcedScore> const search{ForcedScore{}, language.structure(brackets)};
  auto const score = [&](std::vector<Token> output) {
    return run<everything>(language.table, sentences<ForcedScore>(output, 1), search)[0].hypotheses[0];
  };
  CHECK(std::isfinite(score({10, 3, 4, 11, eos}).score));
  CHECK(score({10, 3, 4, eos}).score == -std::numeric_limits<double>::infinity());
  CHECK(score({10, 3, 11, 11, eos}).score == -std::numeric_limits<double>::infinity());
}

TEST_CASE("each request may have its own grammar, and one without is free", "[structured]") {
  Language const language;
  using S = Processed<BeamSearch>;
  BeamSearch const beam{.width = 3, .length = {.max = 8}};
  auto const ab = Grammar::from_gbnf("root ::= \"a\" \"b\"+ \"c\"?"),
             cc = Grammar::from_gbnf(R"g(root ::= "cc" | "(" ")")g");
  std::vector<TableRequest<S>> requests;
  for (std::uint64_t i = 0; i < 12; ++i) {
    auto& request = requests.emplace_back(TableRequest<S>{.source = i});
    if (i % 3 != 0) request.search = S{beam, Structure(i % 3 == 1 ? ab : cc, language.trie)};
  }
  auto const results = run<everything>(language.table, requests, S{beam}, Streaming{});
  auto const free =
      run<everything>(language.table, std::vector<TableRequest<BeamSearch>>{{.source = 0}, {.source = 3}}, beam);
  CHECK(results[0].hypotheses[0].tokens == free[0].hypotheses[0].tokens);
  CHECK(results[3].hypotheses[0].tokens == free[1].hypotheses[0].tokens);
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const text = language.text(results[i].hypotheses[0]);
    CAPTURE(text);
    if (i % 3 != 0) CHECK((i % 3 == 1 ? ab : cc).matches(text));
  }
}

TEST_CASE("a grammar goes with other rules", "[structured]") {
  Language const language;
  using Both = LogitsProcessorList;
  auto const grammar = language.structure(R"g(root ::= [abc]{6,9})g");
  StopSequences const stop({.strings = {"ca", "bb"}, .bytes = language.bytes});
  Processed<Greedy> const search{Greedy{.length = {.max = 12}}, Both(grammar, stop)};
  std::vector<TableRequest<Processed<Greedy>>> requests;
  for (std::uint64_t i = 0; i < 40; ++i) requests.push_back({.source = i});
  std::size_t stopped = 0;
  for (auto const& result : run<everything>(language.table, requests, search)) {
    auto const& h = result.hypotheses[0];
    auto const text = language.text(h);
    CAPTURE(text);
    CHECK(h.finished);
    if (h.stop >= 0) ++stopped;
    else CHECK(Grammar::from_gbnf("root ::= [abc]{6,9}").matches(text));
    CHECK(text.find_first_of("()") == std::string::npos);
  }
  CHECK(stopped > 5);
}

TEST_CASE("states are bounded: sentences begin anew, and one that needs more fails alone", "[structured]") {
  Language const language;
  auto const counting = Grammar::from_gbnf("root ::= [abc]{0,2000}");
  BeamSearch const beam{.width = 2, .length = {.max = 60}};
  Structure const roomy(counting, language.trie, {.memory = 64 << 10, .masks = 4});
  for (auto const& result :
       run<everything>(language.table, sentences<BeamSearch>({}, 60), Processed<BeamSearch>{beam, roomy}))
    CHECK(result.failure == Failure::none);
  Structure const tiny(counting, language.trie, {.memory = 1000});
  auto long_beam = beam;
  long_beam.length = {.min = 200, .max = 300};
  for (auto const& result :
       run<everything>(language.table, sentences<BeamSearch>({}, 3), Processed<BeamSearch>{long_beam, tiny})) {
    CHECK(result.failure != Failure::none);
    CHECK(result.message.find("StructureOptions::memory, 1000 bytes") != std::string::npos);
  }
}

TEST_CASE("a beam of four calls tools in valid JSON, whatever model, prompt and format", "[structured]") {
  using json = nlohmann::json;
  auto const* const tools = R"([
    {"type": "function", "function": {"name": "book", "parameters": {"type": "object", "additionalProperties": false,
      "properties": {"city": {"type": "string", "minLength": 1, "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 70},
                     "window": {"type": "boolean"}}, "required": ["city", "days"]}}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {},
      "additionalProperties": false}}}])";
  std::vector<std::string> tokens(3);
  for (auto byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  TokenBytes const bytes(tokens);
  Table const table{.size = 259, .scale = 6, .order = 3};
  TokenTrie const trie(bytes, {.size = 259, .bos = bos, .eos = {eos}, .never = {pad, bos}});
  std::vector<std::uint64_t> prompts(10);
  std::map<std::string, int> called;
  auto const formats = {ToolFormat::llama3,       ToolFormat::hermes,  ToolFormat::qwen_coder,  ToolFormat::deepseek_v3,
                        ToolFormat::deepseek_v31, ToolFormat::mistral, ToolFormat::mistral_v11, ToolFormat::kimi,
                        ToolFormat::glm,          ToolFormat::harmony};
  for (auto const format : formats) {
    for (auto& prompt : prompts)
      prompt = static_cast<std::uint64_t>(format) * 10 + static_cast<std::uint64_t>(&prompt - prompts.data());
    Structure const call(tool_calls(format, tools, {.choice = ToolChoice::required, .parallel = false}), trie);
    TableModel<> model(table);
    auto const results = decode(model, prompts, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 400}}, call);
    for (auto const& result : results) {
      REQUIRE(result.ok());
      for (auto const& hypothesis : result.hypotheses) {
        auto const text = bytes.text(hypothesis.tokens);
        CAPTURE(static_cast<int>(format), text);
        ToolCallParser parser(format, tools);
        std::string name, arguments;
        auto const take = [&](std::vector<ToolCallEvent> const& events) {
          for (auto const& event : events) {
            if (event.kind == ToolCallEvent::Kind::begun) name = event.text;
            if (event.kind == ToolCallEvent::Kind::arguments) arguments += event.text;
          }
        };
        take(parser.append(text)), take(parser.finish());
        ++called[name];
        auto const given = json::parse(arguments, nullptr, false);
        REQUIRE(given.is_object());
        if (name == "now") CHECK(given.empty());
        else {
          REQUIRE(name == "book");
          REQUIRE((given.contains("city") && given.contains("days")));
          REQUIRE((given["city"].is_string() && given["days"].is_number_integer()));
          CHECK((given["days"] >= 1 && given["days"] <= 70));
          CHECK(given.size() == 2 + given.count("window"));
          if (given.contains("window")) CHECK(given["window"].is_boolean());
        }
      }
    }
  }
  CHECK((called["book"] > 50 && called["now"] > 50));
  CHECK(called["book"] + called["now"] == 400);
}
