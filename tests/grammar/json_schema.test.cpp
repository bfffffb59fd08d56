// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <grammar/draw_output.hpp>
#include <grammar/schema_validator.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;

namespace {

std::string problem(std::string const& schema, JsonSchemaOptions const& options = {}) {
  try {
    (void)Grammar::from_json_schema(schema, options);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what a schema accepts is what matches", "[json_schema]") {
  struct Case {
    std::string schema;
    std::vector<std::string> yes, no;
  };
  std::vector<Case> const cases{
      {"{}",
       {"null", "[1,{\"a\":[]}]", "\"\\u00e9\\ud83d\\ude00\"", "-1.5E+3", "{\"a\":1,\"b\":2}"},
       {"", "[1,]", "01", "\"\\ud800\"", "\"\n\"", "[1, 2]"}},
      {R"({"type":["integer","null"]})", {"0", "-12", "null"}, {"1.5", "00", "1e3", "true"}},
      {R"({"enum":["a\n","é",1.50,null,{"x":[1]}]})",
       {"\"a\\n\"", "\"é\"", "1.50", "null", "{\"x\":[1]}"},
       {"\"a\n\"", "1"}},
      {R"({"const":[]})", {"[]"}, {"{}"}},
      {R"({"type":"integer","enum":[1e5000,1e-5000,10e-1]})", {"1e5000", "10e-1"}, {"1e-5000", "10e4999"}},
      {R"({"allOf":[{"const":1e5000},{"enum":[2,10e4999]}]})", {"10e4999"}, {"2", "1e5000"}},
      {R"({"oneOf":[{"const":1e5000},{"const":1e4999}]})", {"1e5000", "1e4999"}, {"1"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"const":"x"}},"required":["b"],"additionalProperties":false})",
       {R"({"a":1,"b":"x"})", R"({"b":"x"})"},
       {R"({"a":1})", R"({"b":"x","a":1})", R"({"b":"x","c":1})", R"({"b":"x",})", "{}"}},
      {R"({"type":"object","properties":{"ab":{"type":"null"}},"additionalProperties":{"type":"boolean"}})",
       {"{}", R"({"ab":null,"a":true,"abc":false})", R"({"é":true})", R"({"":true})"},
       {R"({"ab":true})", R"({"a":null})", "{\"\\u0061b\":true}"}},
      {R"({"type":"object","required":["z"]})", {R"({"z":0})", R"({"z":0,"y":[]})"}, {"{}", R"({"y":1})"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":{"type":"null"},"minItems":1,"maxItems":3})",
       {"[1]", "[1,true]", "[1,false,null]"},
       {"[]", "[true]", "[1,true,null,null]", "[1,true,1]"}},
      {R"({"type":"array","items":[{"type":"integer"}],"additionalItems":false})", {"[]", "[1]"}, {"[1,1]", "[null]"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"é😀\"", "\"\\n\\\\a\"", "\"\\u00e9x\""},
       {"\"a\"", "\"abcd\""}},
      {R"({"type":"string","pattern":"^a\"?[\\n\\\\]+"})",
       {"\"a\\\"\\n...\"", "\"a\\\\\""},
       {"\"a\"", "\"a\\u000a\"", "\"ba\\n\""}},
      {R"({"type":"string","pattern":"^\\S+$"})",  // ECMA-262's spaces
       {"\"ab\""},
       {"\"a b\"", "\"\xC2\xA0\"", "\"\xE2\x80\xA8\"", "\"\xEF\xBB\xBF\"", "\"\\u000b\"", "\"\""}},
      {R"({"type":"string","pattern":"^[\\s]$"})",
       {"\" \"", "\"\xC2\xA0\"", "\"\xE3\x80\x80\"", "\"\xEF\xBB\xBF\"", "\"\\u000b\""},
       {"\"a\"", "\"\""}},
      {R"({"type":"string","pattern":"b|c$"})", {"\"abx\"", "\"xc\""}, {"\"cx\"", "\"\""}},
      {R"({"format":"date","type":"string"})",
       {"\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\""},
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-04-31\"", "\"2024-13-01\""}},
      {R"({"format":"date-time","type":"string"})",
       {"\"2024-02-29T23:59:59.5+01:00\"", "\"2024-02-28T00:00:00Z\""},
       {"\"2024-02-29 00:00:00Z\"", "\"2024-02-29T24:00:00Z\""}},
      {R"({"format":"uuid","type":"string"})",
       {"\"123e4567-e89b-12d3-a456-426614174000\""},
       {"\"123e4567e89b12d3a456426614174000\""}},
      {R"({"format":"email","type":"string"})", {"\"a.b+c@x-y.org\""}, {"\"a@\"", "\"@b\"", "\"a b@c\"", "\".a@b\""}},
      {R"({"anyOf":[{"type":"integer"},{"type":"string"}],"minimum":3})", {"3", "\"a\""}, {"2", "null"}},
      {R"({"oneOf":[{"type":"null"},{"type":"object","properties":{"k":{"const":1}},"required":["k"]},{"type":"object","properties":{"k":{"const":2},"l":{}},"required":["k"]}]})",
       {"null", R"({"k":1})", R"({"k":2,"l":3})"},
       {R"({"k":3})", "{}"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"minimum":1}},"required":["a"]},{"properties":{"a":{"type":"integer","maximum":2},"b":false}}]})",
       {R"({"a":1})", R"({"a":2,"c":0})"},
       {R"({"a":3})", R"({"a":1.5})", R"({"a":1,"b":0})", "[]"}},
      {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}},"required":["b"]}],"type":["object","null"]})",
       {"null"},
       {R"({"b":1})", "{}"}},
      {R"({"$ref":"#/$defs/list","$defs":{"list":{"type":["object","null"],"properties":{"next":{"$ref":"#/$defs/list"}},"required":["next"],"additionalProperties":false}}})",
       {"null", R"({"next":null})", R"({"next":{"next":{"next":null}}})"},
       {"{}", R"({"next":{}})"}},
      {R"({"$ref":"#/definitions/a~1b%20c","definitions":{"a/b c":{"type":"array","items":{"$ref":"#"}}}})",
       {"[]", "[[],[[]]]"},
       {"[1]"}},
      {R"({"$ref":"#"})", {"null", "[1]"}, {"x"}},
      {R"({"anyOf":[true,{"$ref":"#"}]})", {"1"}, {"x"}},
      {R"({"type":"object","properties":{"a":false}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
  };
  for (auto const& one : cases) {
    INFO(one.schema);
    auto const grammar = Grammar::from_json_schema(one.schema);
    for (auto const& text : one.yes) {
      CAPTURE(text);
      CHECK(grammar.matches(text));
    }
    for (auto const& text : one.no) {
      CAPTURE(text);
      CHECK_FALSE(grammar.matches(text));
    }
  }
}

TEST_CASE("numbers between bounds", "[json_schema]") {
  std::mt19937_64 random(5);
  auto const number = [&](bool fraction) {
    auto const digits = std::uniform_int_distribution(1, 4)(random);
    auto text = std::to_string(random() % static_cast<std::uint64_t>(std::pow(10, digits)));
    if (fraction && random() % 2 == 0) text += "." + std::to_string(random() % 100);
    return (random() % 2 == 0 ? "-" : "") + text;
  };
  for (int round = 0; round < 400; ++round) {
    auto const integers = random() % 2 == 0;
    json schema{{"type", integers ? "integer" : "number"}};
    std::string const low = random() % 2 == 0 ? "minimum" : "exclusiveMinimum",
                      high = random() % 2 == 0 ? "maximum" : "exclusiveMaximum";
    if (random() % 4 != 0) schema[low] = json::parse(number(true));
    if (random() % 4 != 0) schema[high] = json::parse(number(true));
    INFO(schema.dump());
    Grammar grammar;
    try {
      grammar = Grammar::from_json_schema(schema.dump());
    } catch (std::invalid_argument const& e) {
      CHECK(std::string(e.what()).find("no text obeys") != std::string::npos);
      for (int i = 0; i < 50; ++i) CHECK_FALSE(valid(schema, schema, json::parse(number(!integers))));
      continue;
    }
    for (int i = 0; i < 80; ++i) {
      auto text = number(!integers);
      if (i % 4 == 0 && schema.contains(low)) text = schema[low].dump();
      if (i % 4 == 1 && schema.contains(high)) text = schema[high].dump();
      if (i % 8 > 3 && !integers && text.find('.') != std::string::npos) text += random() % 2 == 0 ? "0" : "01";
      CAPTURE(text);
      if (text.find('e') != std::string::npos) continue;  // bounded numbers have no exponent
      auto const canonical = !integers || text.find('.') == std::string::npos;
      CHECK(grammar.matches(text) == (canonical && valid(schema, schema, json::parse(text))));
    }
  }
}

TEST_CASE("what is drawn under random schemas is complete, JSON, and valid", "[json_schema]") {
  std::mt19937_64 random(11);
  auto const tokens = json_tokens();
  auto const size = static_cast<std::int32_t>(tokens.size());
  TokenTrie const trie(TokenBytes(tokens), {.size = size, .bos = size - 1, .eos = {size - 1}});
  int drawn = 0, refused = 0, compiled = 0;
  for (int round = 0; round < 400; ++round) {
    auto const schema = random_schema(random);
    INFO(schema.dump());
    Grammar grammar;
    try {
      grammar = Grammar::from_json_schema(schema.dump(), {.white_space = round % 3 == 0 ? 2 : 0});
    } catch (std::invalid_argument const& e) {
      CAPTURE(e.what());
      auto const why = std::string(e.what());
      REQUIRE((why.find("no text obeys") != std::string::npos || why.find("oneOf is supported") != std::string::npos ||
               why.find("beside enum or const is not supported") != std::string::npos));
      ++refused;
      continue;
    }
    ++compiled;
    Structure const structure(grammar, trie);
    for (int i = 0; i < 12; ++i) {
      auto const text = draw_output(structure, tokens, random, 20 + static_cast<std::int32_t>(random() % 60));
      CAPTURE(text);
      if (text == "impossible") continue;  // no text is that short
      ++drawn;
      REQUIRE(grammar.matches(text));
      auto const instance = json::parse(text, nullptr, false);
      REQUIRE_FALSE(instance.is_discarded());
      REQUIRE(valid(schema, schema, instance));
    }
  }
  CHECK(compiled > 250);
  CHECK(drawn > 2000);
}

TEST_CASE("an order of members, and white space where it is wanted", "[json_schema]") {
  std::string const schema =
      R"({"type":"object","properties":{"b":{"type":"array","items":{"type":"integer"}},"a":{}}})";
  auto const compact = Grammar::from_json_schema(schema);
  CHECK(compact.matches(R"({"b":[1,2],"a":null,"c":1})"));
  CHECK_FALSE(compact.matches(R"({"a":null,"b":[1,2]})"));
  CHECK_FALSE(compact.matches(R"({"b": [1,2]})"));
  auto const free = Grammar::from_json_schema(schema, {.white_space = -1});
  CHECK(free.matches("{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {\"x\" : [ ] } }"));
  auto const some = Grammar::from_json_schema(schema, {.white_space = 1});
  CHECK(some.matches(R"({ "b" : [ 1 , 2 ] })"));
  CHECK_FALSE(some.matches(R"({  "b":[1]})"));
}

TEST_CASE("what a schema says and is not supported is refused by name and place, never passed over", "[json_schema]") {
  std::vector<std::pair<std::string, std::string>> const cases{
      {"", "schema, line 1, column 1: a value is missing"},
      {"{", "a name is missing"},
      {"{\"type\":\"integer\",}", "column 19: a name is missing"},
      {"{\"type\":\n \"integer\" 1}", "line 2, column 12: , or } is missing"},
      {"{\"a\":1,\"a\":2}", "column 8: the name \"a\" comes twice"},
      {"{\"const\":01}", ", or } is missing"},
      {"{\"const\":\"\\ud800\"}", "half a surrogate pair"},
      {"{} {}", "something follows the value"},
      {"[]", "column 1: a schema must be an object, true or false"},
      {"{\"not\":{}}", "column 8: the keyword \"not\" is not supported"},
      {"{\"properties\":{\"a\":{\"multipleOf\":2}}}", "the keyword \"multipleOf\" is not supported"},
      {"{\"if\":{}}", "\"if\" is not supported"},
      {"{\"patternProperties\":{}}", "\"patternProperties\" is not supported"},
      {"{\"uniqueItems\":true}", "\"uniqueItems\" is not supported"},
      {"{\"x-own\":1}", "\"x-own\" is not supported"},
      {"{\"type\":\"text\"}", "column 9: is no type of JSON"},
      {"{\"$ref\":\"other.json\"}", "to another document is not supported"},
      {"{\"$ref\":\"#/$defs/x\"}", "column 9: $ref leads nowhere: #/$defs/x"},
      {"{\"$ref\":\"#anchor\"}", "to an anchor is not supported"},
      {"{\"enum\":[1,2],\"minimum\":2}", "minimum beside enum or const is not supported"},
      {"{\"type\":\"string\",\"format\":\"hostname\"}", "the format \"hostname\" is not supported"},
      {"{\"type\":\"string\",\"pattern\":\"a\",\"minLength\":3}", "of one string are not supported together"},
      {"{\"type\":\"string\",\"pattern\":\"(a)\\\\1\"}", "pattern, line 1, column 4: back-references"},
      {"{\"oneOf\":[{\"minimum\":3},{\"type\":\"integer\"}]}", "not so schemas 0 and 1"},
      {"{\"minItems\":-1}", "must be a whole number"},
      {"{\"minItems\":1.5}", "must be a whole number"},
      {"{\"maxItems\":1e5000}", "column 13: is more than limits.repetition"},
      {R"({"prefixItems":[{"type":"integer"}],"items":[{"type":"string"}]})",
       "column 16: prefixItems beside an array of items is not supported"},
      {R"({"properties":{"a":{"items":[],"prefixItems":[{"type":"integer"}]}}})",
       "column 46: prefixItems beside an array of items is not supported"},
      {R"({"prefixItems":[{"type":"integer"}],"additionalItems":false})",
       "column 16: prefixItems beside additionalItems is not supported"},
      {R"({"oneOf":[{"const":1e5000},{"const":10e4999}]})", "not so schemas 0 and 1"},
      {R"({"oneOf":[{"const":-0.1e-5000},{"enum":[2,-100e-5003]}]})", "not so schemas 0 and 1"},
      {R"({"oneOf":[{"type":"integer"},{"const":1e5000}]})", "not so schemas 0 and 1"},
      {R"({"allOf":[{"const":1e5000},{"const":1e4999}]})", "no text obeys"},
      {"{\"const\":1e1234567890123456}", "column 10: a number whose exponent has more than 15 digits"},
      {"{\"maxItems\":1000000}", "more than limits.repetition"},
      {"{\"minimum\":\"1\"}", "a bound must be a number"},
      {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "no text obeys"},
      {"false", "no text obeys"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}}})",
       "no text obeys"},
      {"{\"allOf\":[]}", "must be an array of schemas"},
      {"{\"minLength\":\"a\"}", "must be a whole number"},
      {std::string(1000, '[') + std::string(1000, ']'), "limits.nesting"},
  };
  for (auto const& [schema, why] : cases) {
    auto const what = problem(schema);
    CAPTURE(schema, what, why);
    CHECK(what.find(why) != std::string::npos);
  }
}

TEST_CASE("large schemas are compiled, or refused, in time", "[json_schema]") {
  json many{{"type", "object"}, {"required", json::array()}, {"additionalProperties", false}};
  for (int i = 0; i < 3000; ++i) many["properties"]["p" + std::to_string(i)] = {{"type", "integer"}, {"minimum", i}};
  CHECK(Grammar::from_json_schema(many.dump()).matches(R"({"p1":1,"p2":2,"p3":7})"));
  many.erase("additionalProperties");
  CHECK(Grammar::from_json_schema(many.dump()).matches(R"({"p1":1,"q":2})"));
  json items{{"type", "array"}, {"prefixItems", json::array()}};
  for (int i = 0; i < 5000; ++i) items["prefixItems"].push_back({{"const", i}});
  CHECK(Grammar::from_json_schema(items.dump()).matches("[0,1,2]"));
  CHECK(Grammar::from_json_schema(R"({"type":"string","maxLength":20000})")
            .matches("\"" + std::string(20'000, 'a') + "\""));
  json choices{{"anyOf", json::array()}};
  for (int i = 0; i < 500; ++i) choices["anyOf"].push_back({{"const", "c" + std::to_string(i)}});
  CHECK(Grammar::from_json_schema(choices.dump()).matches("\"c77\""));
  json product{{"allOf", json::array()}};
  for (int i = 0; i < 30; ++i)
    product["allOf"].push_back({{"anyOf", {{{"minimum", i}}, {{"maximum", i}}, {{"minLength", i}}}}});
  CHECK(problem(product.dump()).find("combinations of schemas") != std::string::npos);
}
