// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <grammar/mask_comparison.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

auto const* const tools = R"([
  {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}},
  {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}])";

struct Example {
  ToolFormat format;
  std::string before, one, between, two, after;  // calls of get_weather and now, as the model's template writes them
  std::string all() const { return before + one + between + two + after; }
};
auto const* const city = "{\"city\": \"Paris\", \"days\": 2}";

std::vector<Example> examples() {
  auto const args = std::string(city);
  return {
      {ToolFormat::llama3, "", "{\"name\": \"get_weather\", \"parameters\": " + args + "}", "; ",
       "{\"name\": \"now\", \"parameters\": {}}", ""},
      {ToolFormat::hermes, "", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + args + "}\n</tool_call>",
       "\n", "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", ""},
      {ToolFormat::qwen_coder, "",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
       "</function>\n</tool_call>",
       "\n", "<tool_call>\n<function=now>\n</function>\n</tool_call>", ""},
      {ToolFormat::deepseek_v3, "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" + args + "\n```<｜tool▁call▁end｜>", "\n",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
      {ToolFormat::deepseek_v31, "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + args + "<｜tool▁call▁end｜>", "",
       "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
      {ToolFormat::mistral, "[TOOL_CALLS] [", "{\"name\": \"get_weather\", \"arguments\": " + args + "}", ", ",
       "{\"name\": \"now\", \"arguments\": {}}", "]"},
      {ToolFormat::mistral_v11, "", "[TOOL_CALLS]get_weather[ARGS]" + args, "", "[TOOL_CALLS]now[ARGS]{}", ""},
      {ToolFormat::kimi, "<|tool_calls_section_begin|>",
       "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>" + args + "<|tool_call_end|>", "",
       "<|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
       "<|tool_calls_section_end|>"},
      {ToolFormat::glm, "",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
       "<arg_value>2</arg_value>\n</tool_call>",
       "\n", "<tool_call>now\n</tool_call>", ""},
  };
}

/// Events as text, joined: what is settled later does not matter.
struct Read {
  std::string content{}, reasoning{};
  std::vector<std::pair<std::string, std::string>> calls{};
  std::size_t ended = 0;
  void take(std::vector<ToolCallEvent> const& events) {
    for (auto const& [kind, call, text] : events) switch (kind) {
        case ToolCallEvent::Kind::content: content += text; break;
        case ToolCallEvent::Kind::reasoning: reasoning += text; break;
        case ToolCallEvent::Kind::begun:
          REQUIRE(static_cast<std::size_t>(call) == calls.size());
          calls.emplace_back(text, "");
          break;
        case ToolCallEvent::Kind::arguments: calls.at(static_cast<std::size_t>(call)).second += text; break;
        case ToolCallEvent::Kind::ended: ++ended; break;
      }
  }
  friend bool operator==(Read const&, Read const&) = default;
};

/// Whole, byte by byte, and in random pieces.
Read read(std::optional<ToolFormat> format, std::string_view text, std::string_view own = tools,
          std::optional<Reasoning> const& reasoning = {}) {
  Read out;
  ToolCallParser whole(format, own, reasoning);
  out.take(whole.append(text)), out.take(whole.finish());
  std::mt19937_64 random(7);
  for (int round = 0; round < 12; ++round) {
    ToolCallParser parser(format, own, reasoning);
    Read pieces;
    for (auto rest = text; !rest.empty();) {
      auto const size = round == 0 ? 1 : 1 + random() % 9;
      pieces.take(parser.append(rest.substr(0, size)));
      rest.remove_prefix(std::min(size, rest.size()));
    }
    pieces.take(parser.finish());
    REQUIRE(pieces == out);
  }
  return out;
}

std::string why(std::string_view list, ToolCallOptions const& options = {}) {
  try {
    (void)tool_calls(ToolFormat::hermes, list, options);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("tool calls: as models' templates write them, there and back", "[grammar]") {
  for (auto const& one : examples()) {
    INFO(one.all());
    auto const grammar = [&](ToolCallOptions const& options) { return tool_calls(one.format, tools, options); };
    auto const single = one.before + one.one + one.after;
    auto const automatic = grammar({}), required = grammar({.choice = ToolChoice::required});
    auto const none = grammar({.choice = ToolChoice::none}), named = grammar({.name = "now"});
    auto const lone = grammar({.parallel = false});
    CHECK(automatic.matches(one.all()));
    CHECK(automatic.matches("So: <" + one.all()));
    CHECK(automatic.matches("Nothing to call."));
    CHECK(required.matches(one.all()));
    CHECK_FALSE(required.matches("So: " + one.all()));
    CHECK_FALSE(required.matches(""));
    CHECK(none.matches("Nothing to call."));
    CHECK_FALSE(none.matches(one.all()));
    CHECK_FALSE(automatic.matches(one.all().substr(0, one.all().size() - 1)));
    CHECK(named.matches(one.format == ToolFormat::kimi
                            ? "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0"
                              "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
                            : one.before + one.two + one.after));
    CHECK_FALSE(named.matches(single));
    CHECK(lone.matches("a" + single));
    CHECK_FALSE(lone.matches(one.all()));
    auto wrong = one.all();
    wrong.replace(wrong.find("get_weather"), 11, "get_whether");
    CHECK_FALSE(automatic.matches(wrong));

    CHECK(read(one.format, one.all()) == Read{"", "", {{"get_weather", city}, {"now", "{}"}}, 2});
    CHECK(read(one.format, "So: <" + single) == Read{"So: <", "", {{"get_weather", city}}, 1});
    CHECK(read(one.format, "No [TOOL, <tool, <｜tool, <|tool {\"nam") ==
          Read{"No [TOOL, <tool, <｜tool, <|tool {\"nam", "", {}, 0});
    // An output that stops within a call.
    auto const cut = one.before + one.one.substr(0, one.one.rfind("2") + 1);
    CHECK(read(one.format, cut).calls.size() == 1);
    CHECK(read(one.format, cut).ended == 0);
  }
}

TEST_CASE("tool calls: harmony", "[grammar]") {
  auto const grammar = [](ToolCallOptions const& options = {}) {
    return tool_calls(ToolFormat::harmony, tools, options);
  };
  std::string const think = "<|channel|>analysis<|message|>Need <it>.<|end|><|start|>assistant";
  auto const call = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>" + std::string(city);
  auto const final = std::string("<|channel|>final<|message|>Sunny.");
  CHECK(grammar().matches(think + call));
  CHECK(grammar().matches(think + final));
  CHECK(grammar().matches(final));
  CHECK_FALSE(grammar().matches("Sunny."));
  CHECK(grammar({.choice = ToolChoice::required}).matches(think + think + call));
  CHECK_FALSE(grammar({.choice = ToolChoice::required}).matches(think + final));
  CHECK_FALSE(grammar({.choice = ToolChoice::none}).matches(call));
  CHECK_FALSE(grammar({.name = "now"}).matches(call));
  // <|call|> ends the output.
  CHECK(read(ToolFormat::harmony, think + call + "<|call|>") == Read{"", "Need <it>.", {{"get_weather", city}}, 1});
  CHECK(read(ToolFormat::harmony, think + final + "<|return|>") == Read{"Sunny.", "Need <it>.", {}, 0});
}

TEST_CASE("tool calls: the parser bears what models write", "[grammar]") {
  CHECK(read(ToolFormat::hermes,
             "<tool_call>{\"arguments\":{\"a\": \"}\\\"\"},\"id\": [1], \"name\":\"f\"}</tool_call> ok") ==
        Read{"ok", "", {{"f", "{\"a\": \"}\\\"\"}"}}, 1});
  CHECK(read(ToolFormat::llama3,
             "{ \"name\" : \"f\",\n\"parameters\":{}}\n{\"name\": \"g\", \"parameters\": {\"x\": [1, {}]}}") ==
        Read{"", "", {{"f", "{}"}, {"g", "{\"x\": [1, {}]}"}}, 2});
  CHECK(read(ToolFormat::llama3, "a {b} {\"x\": 1}") == Read{"a {b} {\"x\": 1}", "", {}, 0});
  CHECK(read(ToolFormat::mistral, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \"123456789\"}]") ==
        Read{"", "", {{"f", "{}"}}, 1});
  // Strings that look like other values: the schema decides.
  auto const* const own = R"([{"name": "f", "parameters": {"properties": {"zip": {"type": "string"}}}}])";
  auto const call =
      std::string("<tool_call>\n<function=f>\n<parameter=zip>\n01234\n</parameter>\n<parameter=n>\n[1]\n</parameter>\n"
                  "<parameter=t>\n two\nlines \n</parameter>\n</function>\n</tool_call>");
  CHECK(read(ToolFormat::qwen_coder, call, own) ==
        Read{"", "", {{"f", R"({"zip": "01234", "n": [1], "t": " two\nlines "})"}}, 1});
}

TEST_CASE("tool calls: marks that are control tokens", "[grammar]") {
  std::vector<std::string> tokens{"", "", "", "", ""};
  std::vector<std::pair<std::string, Token>> const names{{"<|tool_calls_section_begin|>", 0},
                                                         {"<|tool_call_begin|>", 1},
                                                         {"<|tool_call_argument_begin|>", 2},
                                                         {"<|tool_call_end|>", 3},
                                                         {"<|tool_calls_section_end|>", 4}};
  for (int c = 32; c < 127; ++c) tokens.emplace_back(1, static_cast<char>(c));
  tokens.emplace_back();
  TokenTrie const trie(TokenBytes(tokens), vocabulary_of(tokens), names);
  Structure const structure(tool_calls(ToolFormat::kimi, tools, {.choice = ToolChoice::required}), trie);
  auto state = structure.start();
  ToolCallParser parser(ToolFormat::kimi);
  Read out;
  auto const feed = [&](Token token) {
    REQUIRE(structure.may_follow(state, Limits::unlimited)->contains(token));
    state = structure.next(state, token);
    out.take(parser.append(trie.spelling(token)));
  };
  auto const spell = [&](std::string_view text) {
    for (auto const c : text) feed(static_cast<Token>(c) - 32 + 5);
  };
  feed(0), feed(1), spell("functions.now:0"), feed(2), spell("{}"), feed(3);
  CHECK_FALSE(structure.complete(state));
  CHECK_FALSE(structure.may_follow(state, Limits::unlimited)->contains(0));
  feed(4);
  CHECK(structure.complete(state));
  CHECK(out == Read{"", "", {{"now", "{}"}}, 1});
}

TEST_CASE("tool calls: what a model thinks comes before them", "[grammar]") {
  auto const thought = [](std::string_view text, std::optional<ToolFormat> format = ToolFormat::hermes,
                          Reasoning const& reasoning = {}) { return read(format, text, tools, reasoning); };
  std::string const call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  Read const both{"Yes.", "a<b", {{"now", "{}"}}, 1};
  CHECK(thought("a<b</think>\n\nYes." + call) == both);
  CHECK(thought("<think>a<b</think>Yes." + call) == both);
  // Calls within are thoughts; marks that break off are what they are; a second mark is content.
  CHECK(thought("<think>\n" + call + "</thi</think>\nYes") == Read{"Yes", "\n" + call + "</thi"});
  CHECK(thought("a</think>\n</think>") == Read{"</think>", "a"});
  CHECK(thought("<think>never ends </thin") == Read{"", "never ends </thin"});
  CHECK(thought("<thin") == Read{"", "<thin"});
  CHECK(thought("") == Read{});
  CHECK(thought("a</think>\n\n") == Read{"", "a"});
  CHECK(thought("a</think>\nb", ToolFormat::hermes, {.lines = false}) == Read{"\nb", "a"});
  CHECK(thought("[THINK]a[/THINK]" + call, std::nullopt, {.end = "[/THINK]"}) == Read{call, "a"});
  CHECK(thought("<begin>a<end>b", std::nullopt, {.begin = "<begin>", .end = "<end>"}) == Read{"b", "a"});
  CHECK(thought("a<end>b", std::nullopt, {.end = "<end>"}) == Read{"b", "a"});
  for (auto const& one : examples()) {
    INFO(one.all());
    CHECK(thought("a " + one.one + "</think>\n" + one.all(), one.format) ==
          Read{"", "a " + one.one, {{"get_weather", city}, {"now", "{}"}}, 2});
  }
  CHECK_THROWS_WITH(thought("", ToolFormat::hermes, {.end = ""}), "sluice: reasoning.end = : must not be empty");
}

TEST_CASE("tool calls: names of formats, and what is refused", "[grammar]") {
  CHECK(tool_format("qwen3_coder") == ToolFormat::qwen_coder);
  CHECK(tool_format("openai") == ToolFormat::harmony);
  CHECK_THROWS_WITH(tool_format("pythonic"),
                    "sluice: tool format = pythonic: must be one of llama3_json, hermes, qwen3_coder, deepseek_v3, "
                    "deepseek_v31, mistral, mistral_v11, kimi_k2, glm45, openai");
  CHECK(why("{}") == "sluice: tools, line 1, column 1: must be an array");
  CHECK(why(R"([{"type": "web"}])") == "sluice: tools, line 1, column 11: type = web: must be function");
  CHECK(why(R"([{"function": {}}])") == "sluice: tools, line 1, column 15: name: must be a string that is not empty");
  CHECK(why(R"([{"name": "a"}, {"name": "a"}])") == "sluice: tools, line 1, column 26: name = a: comes twice");
  CHECK(why(R"([{"name": "a", "parameters": 3}])") ==
        "sluice: tools, line 1, column 30: parameters: must be an object");
  CHECK(why("[]", {.choice = ToolChoice::required}) == "sluice: tools = none: a call is required");
  CHECK(why(tools, {.name = "later"}) == "sluice: options.name = later: is no tool's name");
  CHECK(why("[]") == "accepted");
}
