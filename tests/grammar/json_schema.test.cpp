// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <grammar/answers.hpp>
#include <grammar/draw_output.hpp>
#include <grammar/schema_validator.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
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
      {R"({"type":["integer","null"]})",
       {"0", "-12", "-0", "1.0", "1e3", "20.00e+1", "12345678901234567890", "null"},
       {"1.5", "00", "1e-3", "true"}},
      {R"({"enum":["a\n","é",1.50,null,{"x":[1]}]})",
       {"\"a\\n\"", "\"a\\u000A\"", "\"é\"", "\"\\u00E9\"", "1.50", "1.5", "1.5e0", "null", "{\"x\":[1]}"},
       {"\"a\n\"", "1", "1.51", "\"\\u0061\\n\""}},
      {R"({"const":[]})", {"[]"}, {"{}"}},
      {R"({"type":"integer","enum":[1e5000,1e-5000,10e-1]})", {"1e5000", "10e-1", "1"}, {"1e-5000"}},
      {R"({"allOf":[{"const":1e5000},{"enum":[2,10e4999]}]})", {"1e5000"}, {"2"}},
      {R"({"oneOf":[{"const":1e5000},{"const":1e4999}]})", {"1e5000", "1e4999"}, {"1"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"const":"x"}},"required":["b"],"additionalProperties":false})",
       {R"({"a":1,"b":"x"})", R"({"b":"x","a":1})", R"({"b":"x"})"},
       {R"({"a":1})", R"({"b":"x","c":1})", R"({"b":"x",})", "{}"}},
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
      {R"({"allOf":[{"format":"date"},{"format":"date"},{"format":"date-time"}]})", {"1"}, {"\"2020-02-02\""}},
      {R"({"allOf":[{"format":"date"},{"type":"string","format":"date"}]})", {"\"2020-02-02\""}, {"\"2020\"", "1"}},
      {R"({"type":"string","pattern":"^(\\S+ ){0,99}\\S+$","minLength":2,"maxLength":9})",
       {"\"ab\"", "\"a b c d e\"", "\"\\u00e9 \\\"\"", "\"123456789\""},
       {"\"a\"", "\"a  b\"", "\"a b \"", "\"1234567890\"", "\"12345678 \""}},
      {R"({"type":"string","pattern":"^a\"?[\\n\\\\]+"})",
       {"\"a\\\"\\n...\"", "\"a\\\\\"", "\"a\\u000a\""},
       {"\"a\"", "\"ba\\n\"", "\"a\n\""}},
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
    answers(grammar, one.yes, one.no);
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
      if (text.find('e') != std::string::npos) continue;
      CHECK(grammar.matches(text) == valid(schema, schema, json::parse(text)));
      char power[64];  // the same number, with an exponent
      std::snprintf(power, sizeof power, "%.12e", json::parse(text).get<double>());
      if (!integers) CHECK(grammar.matches(power) == valid(schema, schema, json::parse(text)));
    }
  }
}

TEST_CASE("what is drawn under random schemas is complete, JSON, and valid", "[json_schema]") {
  std::mt19937_64 random(11);
  auto const tokens = json_tokens();
  auto const size = static_cast<std::int32_t>(tokens.size());
  TokenTrie const trie(TokenBytes(tokens), {.size = size, .bos = size - 1, .eos = {size - 1}});
  int drawn = 0, compiled = 0;
  for (int round = 0; round < 400; ++round) {
    auto const schema = random_schema(random);
    INFO(schema.dump());
    Grammar grammar;
    try {
      grammar = Grammar::from_json_schema(schema.dump(), {.white_space = round % 3 == 0 ? 2 : 0});
    } catch (std::invalid_argument const& e) {
      CAPTURE(e.what());
      auto const why = std::string(e.what());
      REQUIRE((why.find("no text obeys") != std::string::npos || why.find("not supported") != std::string::npos ||
               why.find("uniqueItems is supported for") != std::string::npos));
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
      if (repeats_name(text) || exceeds_doubles(text)) continue;
      REQUIRE(valid(schema, schema, instance));
    }
  }
  CHECK(compiled > 250);
  CHECK(drawn > 2000);
}

TEST_CASE("an order of members, and white space where it is wanted", "[json_schema]") {
  std::string const schema =
      R"({"type":"object","properties":{"b":{"type":"array","items":{"type":"integer"}},"a":{}}})";
  auto const compact = Grammar::from_json_schema(schema, {.order = JsonOrder::schema});
  CHECK(Grammar::from_json_schema(schema).matches(R"({"c":1,"a":null,"b":[1,2]})"));
  CHECK(compact.matches(R"({"b":[1,2],"a":null,"c":1})"));
  CHECK_FALSE(compact.matches(R"({"a":null,"b":[1,2]})"));
  CHECK_FALSE(compact.matches(R"({"b": [1,2]})"));
  auto const free = Grammar::from_json_schema(schema, {.white_space = -1});
  CHECK(free.matches("{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {\"x\" : [ ] } }"));
  auto const some = Grammar::from_json_schema(schema, {.white_space = 1});
  CHECK(some.matches(R"({ "b" : [ 1 , 2 ] })"));
  CHECK_FALSE(some.matches(R"({  "b":[1]})"));
  auto const tidy = Grammar::from_json_schema(schema, {.white_space = 5, .tidy = true});
  CHECK(tidy.matches(R"({"b":[1,2],"a":null})"));
  CHECK(tidy.matches(R"({ "b": [ 1, 2 ], "a": { "x": [ ] } })"));
  CHECK(tidy.matches("{\n  \"b\": [\n    1,\n\t2\n  ],\n  \"a\":\n1\n}"));
  for (auto const* const no : {R"( {})", "{}\n", R"({"b" :[1]})", R"({"b":[1 ,2]})", R"({"b":  [1]})",
                               "{\n     \"b\":[1]}", "{ \n\"b\":[1]}", "{\n\n\"b\":[1]}"})
    CHECK_FALSE(tidy.matches(no));
  CHECK(Grammar::from_json_schema(schema, {.white_space = 1, .tidy = true}).matches(R"({ "b": [ 1, 2 ] })"));
  CHECK_FALSE(Grammar::from_json_schema(schema, {.white_space = 1, .tidy = true}).matches("{\n}"));
  CHECK(Grammar::from_json_schema(schema, {.white_space = -1, .tidy = true}).matches("{\n               \"b\":[1]}"));
}

TEST_CASE("what a schema leaves open has an end where one is wanted", "[json_schema]") {
  auto const matches = [](std::string const& schema, std::string const& text, bool plain = true) {
    return Grammar::from_json_schema(schema, {.plain_numbers = plain, .digits = 3, .characters = 4}).matches(text);
  };
  for (auto const plain : {false, true}) {
    for (auto const* const yes : {"0", "999", "-123", "12.345", "0.5"})
      CHECK(matches(R"({"type":"number"})", yes, plain));
    for (auto const* const no : {"1234", "-1234", "1.2345", "1234.5"})
      CHECK_FALSE(matches(R"({"type":"number"})", no, plain));
  }
  CHECK(matches(R"({"type":"number"})", "1.234e30", false));
  CHECK(matches(R"({"type":"integer"})", "999"));
  CHECK_FALSE(matches(R"({"type":"integer"})", "1000"));
  CHECK_FALSE(matches("true", "1000"));
  // Open on one side; closed on both; a set that has no short number.
  CHECK(matches(R"({"type":"integer","minimum":5})", "999"));
  CHECK_FALSE(matches(R"({"type":"integer","minimum":5})", "1000"));
  CHECK_FALSE(matches(R"({"type":"integer","multipleOf":5})", "1000"));
  CHECK(matches(R"({"type":"integer","minimum":5,"maximum":123456})", "123456"));
  CHECK(matches(R"({"type":"number","minimum":5,"maximum":123456})", "123455.125"));
  CHECK_FALSE(matches(R"({"type":"number","minimum":5,"maximum":123456})", "123455.1251"));
  CHECK(matches(R"({"type":"integer","minimum":123456})", "123457"));
  CHECK(matches(R"({"enum":[123456,1.23456]})", "1.23456"));

  CHECK(matches(R"({"type":"string"})", R"("abc\n")"));
  CHECK_FALSE(matches(R"({"type":"string"})", R"("abcde")"));
  CHECK(matches(R"({"type":"string","minLength":6})", R"("abcdef")"));
  CHECK_FALSE(matches(R"({"type":"string","minLength":6})", R"("abcdefg")"));
  CHECK(matches(R"({"type":"string","maxLength":6})", R"("abcdef")"));
  CHECK(matches(R"({"type":"string","pattern":"^a+$"})", R"("aaaaaaaa")"));
  CHECK(matches(R"({"const":"abcdefg"})", R"("abcdefg")"));
  CHECK(matches(R"({"type":"object"})", R"({"abcd":"efgh"})"));
  CHECK_FALSE(matches(R"({"type":"object"})", R"({"abcde":1})"));
  CHECK_FALSE(matches(R"({"type":"object"})", R"({"a":["abcde"]})"));
  CHECK(matches(R"({"type":"object","properties":{"abcde":{}}})", R"({"abcde":1})"));
  CHECK_THROWS_MATCHES(Grammar::from_json_schema("true", {.digits = 301}), std::invalid_argument,
                       Catch::Matchers::Message("sluice: options.digits = 301: must be in [0, 300]"));
  CHECK_THROWS_AS(Grammar::from_json_schema("true", {.characters = -1}), std::invalid_argument);
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
      {"{\"uniqueItems\":true}", "column 16: uniqueItems is supported for items of few values"},
      {"{\"not\":{\"uniqueItems\":true}}", "uniqueItems under `not` is not supported"},
      {R"({"items":{"type":"integer","minimum":0,"maximum":13},"uniqueItems":true,"type":"array"})",
       "uniqueItems is supported for items of few values"},
      {"{\"type\":\"text\"}", "column 9: is no type of JSON"},
      {"{\"$ref\":\"other.json\"}", "to another document is not supported: other.json"},
      {"{\"$ref\":\"#/$defs/x\"}", "column 9: $ref leads nowhere: #/$defs/x"},
      {"{\"$ref\":\"#anchor\"}", "$ref leads nowhere: #anchor"},
      {"{\"$schema\":\"http://json-schema.org/draft-03/schema#\"}", "the dialect"},
      {"{\"type\":\"string\",\"pattern\":\"(a)\\\\1\"}", "pattern, line 1, column 4: back-references"},
      {"{\"minItems\":-1}", "must be a whole number"},
      {"{\"minItems\":1.5}", "must be a whole number"},
      {R"({"prefixItems":[{"type":"integer"}],"items":[{"type":"string"}]})",
       "column 16: prefixItems beside an array of items is not supported"},
      {R"({"properties":{"a":{"items":[],"prefixItems":[{"type":"integer"}]}}})",
       "column 46: prefixItems beside an array of items is not supported"},
      {R"({"oneOf":[{"const":1e5000},{"const":10e4999}]})", "no text obeys"},
      {R"({"allOf":[{"const":1e5000},{"const":1e4999}]})", "no text obeys"},
      {"{\"const\":1e1234567890123456}", "column 10: a number whose exponent has more than 15 digits"},
      {"{\"minimum\":\"1\"}", "must be a number"},
      {"{\"multipleOf\":0}", "must be more than 0"},
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
  for (int i = 0; i < 30; ++i) {
    auto const name = "n" + std::to_string(i);
    product["allOf"].push_back({{"anyOf", {{{"required", {name}}}, {{"minProperties", i + 40}}}}});
  }
  CHECK(problem(product.dump()).find("combinations of schemas") != std::string::npos);
  json doubling{{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < 40; ++i) {
    json const next{{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
    doubling["$defs"]["d" + std::to_string(i)] = {{"anyOf", {next, next}}};
  }
  doubling["$defs"]["d40"] = {{"type", "string"}};
  CHECK(problem(doubling.dump()).find("references lead to too many ways") != std::string::npos);
}

TEST_CASE("keywords in combination", "[json_schema]") {
  struct Case {
    std::string schema;
    std::vector<std::string> yes, no;
  };
  std::vector<Case> const cases{
      {R"({"x-own":{"a":1},"type":"string","format":"own","title":"T"})", {"\"a\""}, {"1"}},
      {R"({"patternProperties":{"^a":{"type":"integer"},"b$":{"minimum":3}},"additionalProperties":{"type":"null"}})",
       {"{}", R"({"a":1,"ab":3,"b":4,"c":null,"b2":null})", R"({"b":"x"})"},
       {R"({"a":null})", R"({"ab":2})", R"({"c":1})"}},
      {R"({"propertyNames":{"pattern":"^[a-c]+$","maxLength":2},"minProperties":1,"maxProperties":2})",
       {R"({"a":1})", R"({"ab":1,"c":2})"},
       {"{}", R"({"abc":1})", R"({"d":1})", R"({"a":1,"b":1,"c":1})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2,"type":"object"})",
       {R"({"a":1,"c":2})", R"({"b":1,"c":2,"a":0})"},
       {"{}", R"({"b":1})", R"({"b":1,"d":1})"}},
      {R"({"type":"object","dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"a":false}}}})",
       {"{}", R"({"a":1,"b":2})", R"({"c":1,"d":1})", R"({"b":2,"a":1})"},
       {R"({"a":1})", R"({"a":1,"b":2,"c":3})"}},
      {R"({"type":"object","properties":{"k":{"enum":["x","y"]}},"required":["k"],"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["n"]},"else":{"properties":{"n":false}}})",
       {R"({"k":"x","n":1})", R"({"k":"y"})", R"({"k":"y","m":1})"},
       {R"({"k":"x"})", R"({"k":"y","n":1})", R"({"k":"z","n":1})"}},
      {R"({"not":{"type":["object","array","string"]}})", {"1", "null", "true"}, {"{}", "[]", "\"\""}},
      {R"({"type":"object","not":{"required":["a","b"]}})",
       {"{}", R"({"a":1})", R"({"b":1,"c":1})"},
       {R"({"a":1,"b":1})"}},
      {R"({"type":"object","not":{"additionalProperties":{"type":"integer"}}})",
       {R"({"a":"x"})", R"({"a":1,"b":null,"c":2})"},
       {"{}", R"({"a":1})"}},
      {R"({"type":"string","not":{"pattern":"^a"},"maxLength":3})", {"\"b\"", "\"\"", "\"ba\""}, {"\"a\"", "\"bbbb\""}},
      {R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":5})",
       {"\"ab\"", "\"abcde\""},
       {"\"a\"", "\"abcdef\"", "\"AB\""}},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}],"type":"string","maxLength":3})",
       {"\"ab\"", "\"bca\""},
       {"\"a\"", "\"abcd\""}},
      {R"({"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"})",
       {"\"1.5\"", "\"-07\""},
       {"\"-\"", "\"\"", "\"1a\""}},
      {R"({"type":"string","pattern":"^(?=.*[A-Z])(?=.*\\d).{4,}$"})",
       {"\"Ab12\"", "\"12cD\""},
       {"\"ab12\"", "\"ABCD\"", "\"A1b\""}},
      {"{\"type\":\"string\",\"pattern\":\"^(a|b$)\"}", {"\"ax\"", "\"b\""}, {"\"bx\"", "\"c\""}},
      {R"({"type":"string","format":"date","maxLength":10,"pattern":"^20"})", {"\"2024-02-29\""}, {"\"1999-01-01\""}},
      {R"({"oneOf":[{"multipleOf":3},{"multipleOf":5}],"type":"integer"})",
       {"3", "5", "-6", "10.0", "9e0"},
       {"15", "0", "7", "30"}},
      {R"({"oneOf":[{"minimum":3},{"type":"integer"}]})", {"2", "3.5", "-1", "null"}, {"3", "4", "2.5"}},
      {R"({"multipleOf":0.01,"minimum":0,"type":"number"})",
       {"1.25", "0", "-0", "1.250", "3", "1e2"},
       {"1.255", "-1.25"}},
      {R"({"multipleOf":7.5})", {"15", "7.5", "-22.5", "0", "\"a\""}, {"7", "7.51", "5"}},
      {R"({"multipleOf":300,"type":"integer"})", {"600", "0", "-900.0", "3e2", "3e3"}, {"100", "30", "1e3"}},
      {R"({"minimum":1e3,"exclusiveMaximum":12345678901234567890,"type":"number"})",
       {"1000", "1e3", "1.2e19", "12345678901234567889.9"},
       {"999.9", "9.99e2", "12345678901234567890", "1.3e19", "1e20"}},
      {R"({"minimum":0,"type":"number"})", {"1e3", "-0", "-0.0e5", "123.4e-5"}, {"-1", "-1e-7"}},
      {R"({"type":"array","items":{"enum":["a","b",1]},"uniqueItems":true,"minItems":1})",
       {R"(["a"])", R"(["b","a",1])", R"([1.0,"a"])"},
       {"[]", R"(["a","a"])", R"(["a",1,1.0])"}},
      {R"({"type":"array","items":{"type":"integer","minimum":2,"exclusiveMaximum":14},"uniqueItems":true})",
       {"[]", "[2]", "[13,2,3]", "[2,3.0,4]", "[13,12,11,10,9,8,7,6,5,4,3,2]"},
       {"[2,2]", "[2,2.0]", "[14]", "[1]", "[2,3,2]", "[2,3,4,20e-1]"}},
      {R"({"type":"array","items":{"type":["boolean","integer"],"minimum":-20,"maximum":20},"uniqueItems":true,"maxItems":2})",
       {"[]", "[true,-20]", "[0,false]", "[20,-0]"},
       {"[0,-0]", "[true,true]", "[1,2,3]", "[21]"}},
      {R"({"properties":{"ab":{"type":"null"},"abc":{"type":"null"},"b":{"type":"null"}},"additionalProperties":{"type":"integer"},"type":"object"})",
       {R"({"ab":null,"a":1})", R"({"":1})", R"({"abcd":1,"abc":null})", R"({"\u00e9":1})", R"({"ab\n":1,"\"":2})",
        R"({"\ud83d\ude00":1,"é":2})", R"({"bb":1,"b":null})"},
       {R"({"ab":1})", R"({"abc":1})", R"({"b":1})", R"({"a":null})", R"({"abcd":null})", R"({"\n":null})"}},
      {R"({"type":"string","pattern":"^(?:\\S+\\s+){0,3}\\S+$"})",
       {R"("a")", R"("a b  c\t d")", R"("\u00e9 é")", R"("a\u2003b c d")"},
       {R"("")", R"("a ")", R"("a b c d e")", R"("a\u2003b c d e")", R"(" a")"}},
      {R"({"multipleOf":0.5,"type":"number"})", {"1e308", "1e+308", "0.5", "1.5", "3e2"}, {"0.25", "1e309"}},
      {R"({"type":"array","contains":{"type":"integer"},"minContains":2,"maxContains":3,"items":{"type":["integer","null"]}})",
       {"[1,2]", "[null,1,null,2,3]"},
       {"[1]", "[1,2,3,4]", "[1,2,true]"}},
      {R"({"type":"array","not":{"items":{"type":"integer"}}})", {"[null]", "[1,\"a\",2]"}, {"[]", "[1,2]"}},
      {R"({"properties":{"a":{}},"allOf":[{"properties":{"b":{}}}],"unevaluatedProperties":false,"type":"object"})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"c":1})"}},
      {R"({"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"unevaluatedProperties":{"type":"null"},"type":"object"})",
       {R"({"a":1})", R"({"a":1,"b":2})", R"({"b":1,"a":null})"},
       {R"({"a":2,"b":1})", R"({"a":1,"c":1})", "{}"}},
      {R"({"prefixItems":[{"type":"null"}],"unevaluatedItems":{"type":"integer"},"type":"array"})",
       {"[]", "[null,1]"},
       {"[1]", "[null,null]"}},
      {R"({"enum":[{"a":1,"b":2},{"a":1},[1,2],3],"maxProperties":1,"maxItems":1})",
       {R"({"a":1})", "3"},
       {R"({"a":1,"b":2})", "[1,2]"}},
      {R"({"type":"object","not":{"const":{"a":[1]}}})",
       {"{}", R"({"a":[2]})", R"({"a":[1],"b":0})"},
       {R"({"a":[1]})", R"({"a":[1.0]})"}},
      {R"({"$id":"http://a.b/c","$ref":"d#e","$defs":{"x":{"$id":"d","$defs":{"y":{"$anchor":"e","type":"null"}}}}})",
       {"null"},
       {"1"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"integer"}},"properties":{"p":{"$ref":"#/definitions/a","type":"string"}}})",
       {R"({"p":1})"},
       {R"({"p":"a"})"}},
      {R"({"definitions":{"a":{"minimum":2}},"properties":{"p":{"$ref":"#/definitions/a","type":"integer"}}})",
       {R"({"p":2})"},
       {R"({"p":1})", R"({"p":"a"})"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,"exclusiveMinimum":true,"type":["integer"]})",
       {"4"},
       {"3", "5.0"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","const":1})", {"2"}, {"x"}},
      {R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#/$defs/t","$defs":{"t":{"$id":"t","$dynamicAnchor":"n","type":"array","items":{"$dynamicRef":"#n"}}}})",
       {"[]", "[[],[[]]]"},
       {"[1]"}},
      {R"({"properties":{"a\"b/\u00e9":{"type":"integer"}},"required":["a\"b/\u00e9"],"additionalProperties":false})",
       {"{\"a\\\"b/é\":1}", "{\"a\\u0022b\\/\\u00e9\":1}"},
       {"{\"ab\":1}"}},
      {R"({"type":"string","maxLength":32768})", {"\"a\""}, {"1"}},
      {R"({"type":"array","maxItems":10000000,"minItems":2})", {"[1,2]"}, {"[1]"}},
  };
  for (auto const& one : cases) {
    INFO(one.schema);
    auto const grammar = Grammar::from_json_schema(one.schema);
    answers(grammar, one.yes, one.no);
  }
}

TEST_CASE("what is ignored is listed", "[json_schema]") {
  auto const grammar =
      Grammar::from_json_schema(R"({"x-b":1,"properties":{"a":{"x-a":{},"title":"t","format":"own"}}})");
  CHECK(grammar.ignored() == std::vector<std::string>{"format \"own\"", "x-a", "x-b"});
  std::string const set = R"({"type":"array","items":{"type":"string"},"uniqueItems":true})";
  CHECK(problem(set).find("uniqueItems") != std::string::npos);
  auto const loose = Grammar::from_json_schema(set, {.lenient = true});
  CHECK(loose.ignored() == std::vector<std::string>{"uniqueItems"});
  CHECK(loose.matches(R"(["a","b"])"));
}

TEST_CASE("formats are those of their RFCs", "[json_schema]") {
  struct Case {
    std::string format;
    std::vector<std::string> yes, no;
  };
  std::vector<Case> const cases{
      {"date-time",
       {"2024-02-29t23:59:59.5z", "1998-12-31T23:59:60Z"},
       {"1998-12-31T23:58:60Z", "2024-02-30T00:00:00Z"}},
      {"duration", {"P4DT12H30M5S", "P1Y", "PT36H", "P4W", "P1Y2M3D"}, {"P", "PT", "P1Y2W", "P1D2H", "4D", "P2S"}},
      {"email",
       {"a.b+c@x-y.org", "\"a b\"@example.org", "a@[127.0.0.1]", "a@[IPv6:::1]"},
       {"a@", "@b", ".a@b", "a..b@c", "a@[127.0.0.300]"}},
      {"idn-email", {"실례@실례.테스트"}, {"2962"}},
      {"hostname",
       {"www.example.com", "a", "xn--4gbwdl.xn--wgbh1c", std::string(63, 'a') + ".b"},
       {"", "-a", "a-", "a_b", "a..b", std::string(64, 'a'),
        std::string(126, 'a').replace(60, 1, ".") + "." + std::string(126, 'b').replace(60, 1, ".") + ".c"}},
      {"ipv4", {"127.0.0.1"}, {"127.0.0", "256.0.0.1", "01.2.3.4"}},
      {"ipv6",
       {"::", "::1", "1:2:3:4:5:6:7:8", "1::8", "::ffff:192.168.0.1", "1:2:3:4:5:6:7::"},
       {"1:2:3", "::1::", "12345::", "1:2:3:4:5:6:7:8:9", "::1%eth0", "1:2:3:4:5:6:7:8::"}},
      {"uri",
       {"http://foo.bar/?baz=qux#quux", "urn:a:b", "mailto:a@b.c", "http://[::1]:80/",
        "ldap://[2001:db8::7]/c=GB?objectClass?one"},
       {"//foo", "/abc", "a b:c", "http:// a", "http://a/%zz", "\\\\x", "http://example.com/a|b"}},
      {"uri-reference", {"http://a/b", "//a/b", "/a", "a/b", "#f", ""}, {"\\\\x", "#a#b", "1:2:a b"}},
      {"iri", {"http://ƒøø.ßår/?∂éœ=πîx#πîüx"}, {"/abc", "http://2001:0db8:85a3:0000:0000:8a2e:0370:7334 x"}},
      {"iri-reference", {"âππ"}, {"\\\\x"}},
      {"uri-template", {"http://a/{x}/{+y,z:3}{?q*}", "a"}, {"http://a/{x", "{}"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000"}},
      {"json-pointer", {"", "/a/b~0~1", "//"}, {"a", "/~2", "/~"}},
      {"relative-json-pointer", {"0", "1/a", "2#"}, {"/a", "01", "-1", "1#/a"}},
      {"regex", {"", "^(a|b)*$", "[^\\]]{2,}?", "(?:a(?=b))", "\\d+\\.\\u00e9"}, {"(", "a)", "[a", "*a", "\\a"}},
  };
  for (auto const& one : cases) {
    CAPTURE(one.format);
    auto const grammar = Grammar::from_json_schema(json{{"type", "string"}, {"format", one.format}}.dump());
    for (auto const& text : one.yes) {
      CAPTURE(text);
      CHECK(grammar.matches(json(text).dump()));
    }
    for (auto const& text : one.no) {
      CAPTURE(text);
      CHECK_FALSE(grammar.matches(json(text).dump()));
    }
  }
}

TEST_CASE("texts are written in the style that is asked for", "[json_schema]") {
  std::string const schema =
      R"({"properties":{"a":{"const":"a/é"},"b":{"type":"array","items":{"type":"integer"}}},"required":["a"],"additionalProperties":false})";
  auto const spaced = Grammar::from_json_schema(schema, {.item_separator = ", ", .key_separator = ": "});
  CHECK(spaced.matches(R"({"a": "a/é", "b": [1, 2]})"));
  CHECK_FALSE(spaced.matches(R"({"a":"a/é","b":[1,2]})"));
  auto const plain = Grammar::from_json_schema(schema);
  CHECK(plain.matches(R"({"b":[1],"a":"a\/\u00e9"})"));
  CHECK_FALSE(plain.matches(R"({"\u0061":"a/é"})"));
  auto const any = Grammar::from_json_schema(schema, {.escapes = JsonEscapes::any});
  CHECK(any.matches(R"({"\u0061":"\u0061/é"})"));
  CHECK_FALSE(any.matches(R"({"\u0061":"\u0062/é"})"));
  auto const free = Grammar::from_json_schema(schema, {.white_space = -1});
  CHECK(free.matches(" {\n \"a\" : \"a/é\" }\n"));
  CHECK_FALSE(plain.matches(" {\"a\":\"a/é\"}"));
  CHECK_THROWS_AS(Grammar::from_json_schema(schema, {.item_separator = ";"}), std::invalid_argument);
}

// nlohmann's dump(n) writes what Python's json.dumps(indent=n) does.
TEST_CASE("JSON is indented as its writers do it", "[json_schema]") {
  auto const* const tree = R"({"type": "object", "properties": {"name": {"type": "string"}, "kids": {"type": "array",
    "items": {"$ref": "#"}}, "pair": {"prefixItems": [{"type": "integer"}, {"type": "null"}]}, "fixed": {"const": {"a": [1, {}]}}},
    "additionalProperties": {"type": "array", "contains": {"type": "boolean"}, "uniqueItems": false}})";
  auto const* const closed =
      R"({"type": "object", "properties": {"name": {}, "kids": {"maxItems": 2}, "pair": {}, "x": {"minItems": 1},
    "fixed": {"enum": [{"a": [1, {}]}, []]}, "7": {}}, "minProperties": 1, "additionalProperties": false})";
  std::vector<json> const values{
      json::parse(
          R"({"name": "a", "kids": [{"name": "b", "kids": []}, {"kids": [{}, {"name": "\n"}]}], "pair": [1, null]})"),
      json::parse(R"({"fixed": {"a": [1, {}]}, "x": [1, true, [[]], {"y": {"z": 0}}]})"),
      json::parse(R"({"pair": [1, null, [2, {"u": [[], [[3]]]}]], "kids": []})"), json::parse("{\"name\": \"\"}")};
  for (auto const* const schema : {tree, closed})
    for (auto const indent : {0, 1, 4}) {
      auto const grammar = Grammar::from_json_schema(schema, {.indent = indent});
      for (auto const& value : values) {
        CAPTURE(schema, indent, value.dump());
        CHECK(grammar.matches(value.dump(indent)));
        CHECK_FALSE(grammar.matches(value.dump()));
        CHECK_FALSE(grammar.matches(value.dump(indent + 1)));
        CHECK_FALSE(grammar.matches(value.dump(indent) + "\n"));
        auto text = value.dump(indent);
        text.insert(text.rfind('\n'), " ");
        CHECK_FALSE(grammar.matches(text));
      }
    }
  auto const any = Grammar::from_json_schema("{}", {.indent = 2, .item_separator = ", ", .key_separator = ":"});
  CHECK(any.matches("{\n  \"a\": [\n    1, \n    2\n  ], \n  \"b\": {}\n}"));
  CHECK(any.matches("[]"));
  CHECK_FALSE(any.matches("[\n]"));
  CHECK_FALSE(any.matches("[\n\n]"));
  CHECK(Grammar::from_json_schema("{}", {.indent = 0, .key_separator = " : "}).matches("{\n\"a\" : 1\n}"));
  json deep = 1;
  for (auto i = 0; i < 24; ++i) deep = json::array({deep});
  CHECK(any.matches(deep.dump(2)));
  CHECK_FALSE(any.matches(json::array({deep}).dump(2)));
  CHECK(problem("{}", {.indent = -2}).find("options.indent = -2: must be in [-1, 16]") != std::string::npos);
  CHECK(problem("{}", {.white_space = 1, .indent = 2}).find("options.white_space = 1: must be 0 beside") !=
        std::string::npos);
}

TEST_CASE("plain numbers have no exponents, and no zeros at the end of a fraction", "[json_schema]") {
  for (auto const& [schema, yes, no] :
       {std::tuple(R"({"type": "integer"})", std::vector{"5", "-12", "0"}, std::vector{"5.0", "5e0", "1.5", "05"}),
        std::tuple(R"({"type": "integer", "minimum": 1, "maximum": 99})", std::vector{"1", "42", "99"},
                   std::vector{"42.0", "4e1", "0", "100"}),
        std::tuple(R"({"type": "number"})", std::vector{"5", "1.5", "-0.25"}, std::vector{"1.50", "5.0", "1e3"}),
        std::tuple(R"({"type": "number", "multipleOf": 0.5})", std::vector{"5", "1.5"},
                   std::vector{"1.50", "1.2", "5e0"})}) {
    INFO(schema);
    auto const plain = Grammar::from_json_schema(schema, {.plain_numbers = true});
    for (auto const* const text : yes) CHECK(plain.matches(text));
    for (auto const* const text : no) CHECK_FALSE(plain.matches(text));
  }
}

TEST_CASE("the schemas of pydantic's types are accepted, with what they mean", "[json_schema]") {
  std::ifstream file(SLUICE_SOURCE_DIR
                     "/tests/grammar/data/pydantic.jsonl");  // as the version in its first line wrote it
  std::string line;
  REQUIRE(std::getline(file, line));
  REQUIRE(json::parse(line).contains("pydantic"));
  auto types = 0;
  for (; std::getline(file, line); ++types) {
    auto const one = json::parse(line);
    INFO(line);
    auto const grammar = Grammar::from_json_schema(nlohmann::ordered_json::parse(line).at("schema").dump());
    CHECK(grammar.matches(one.at("valid").get<std::string>()));
    CHECK_FALSE(grammar.matches(one.at("invalid").get<std::string>()));
  }
  CHECK(types > 100);
}

TEST_CASE("equal values are accepted, however they are written", "[json_schema]") {
  struct Case {
    std::string schema;
    std::vector<std::string> yes, no;
  };
  std::vector<Case> const cases{
      {R"({"type":"object"})",
       {"{\"\\u00e9\":1}", "{\"a\\/b\":1}", "{\"\\u001F\":1}"},
       {"{\"\\ud800\":1}", "{\"\x1F\":1}"}},
      {R"({"additionalProperties":{"type":"integer"}})",
       {"{\"\\u001F\":1}", "{\"a\":1,\"a\":2}"},
       {"{\"\\u001F\":\"\"}"}},
      {R"({"type":"number"})", {"1e100", "1.7976931348623157e+308", "1E-05", "-0.0"}, {"1e", ".5", "+1", "0x1"}},
      {R"({"const":-2.0})", {"-2", "-2.0", "-2e0", "-2.000E+00"}, {"2", "-2.01", "-20"}},
      {R"({"enum":[0]})", {"0", "0.0", "-0", "0e7"}, {"1", "0.1"}},
      {R"({"type":"integer","const":1.0})", {"1", "1.0"}, {"1.1", "10"}},
      {R"({"const":120})", {"120", "120.0", "1.2e2", "1.20E+02"}, {"12", "1.2e1", "1.2e3"}},
      {R"({"type":"integer","minimum":10,"maximum":99})",
       {"10", "99.0", "1e1", "5E+1"},
       {"9", "100", "1e2", "1e0", "10.5"}},
      {R"({"allOf":[{"$ref":"#/$defs/B"},{"properties":{"a":{"type":"integer"}}}],"$defs":{"B":{"properties":{"b":{"type":"integer"}}}}})",
       {R"({"b":1,"a":1})", R"({"a":1,"b":1})"},
       {R"({"b":"x"})"}},
      {R"({"const":{"foo":1,"baz":2}})", {R"({"foo":1,"baz":2})", R"({"baz":2.0,"foo":1})"}, {R"({"foo":1})"}},
      {R"({"type":"string","pattern":"^\\s$"})", {"\"\\u0009\"", "\"\\t\"", "\" \""}, {"\"\\u0041\""}},
      {R"({"const":"a/b"})", {R"("a/b")", R"("a\/b")"}, {R"("ab")"}},
      {R"({"type":"string","pattern":"^\ud83d\ude00$"})",
       {"\"😀\"", "\"\\ud83d\\uDE00\""},
       {"\"\\ud83d\"", "\"\\ude00\\ud83d\""}},
      {R"({"oneOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]}],"properties":{"a":{"type":"integer"}}})",
       {R"({"b":1,"a":1})", R"({"a":1,"b":1})"},
       {R"({"a":1})"}},
  };
  for (auto const& one : cases) {
    INFO(one.schema);
    auto const grammar = Grammar::from_json_schema(one.schema);
    answers(grammar, one.yes, one.no);
  }
  // In the order of the schema: that in which its parts apply.
  auto const ordered = [](std::string const& schema) {
    return Grammar::from_json_schema(schema, {.order = JsonOrder::schema});
  };
  CHECK(ordered(cases[8].schema).matches(R"({"b":1,"a":1})"));
  CHECK_FALSE(ordered(cases[8].schema).matches(R"({"a":1,"b":1})"));
  CHECK(ordered(cases[13].schema).matches(R"({"b":1,"a":1})"));
  auto const integer = Grammar::from_json_schema(
      R"({"type":"integer","minimum":12345678901234567890,"exclusiveMaximum":12345678901234567892})");
  CHECK(integer.matches("12345678901234567890"));
  CHECK(integer.matches("12345678901234567891"));
  CHECK_FALSE(integer.matches("12345678901234567892"));
  CHECK_FALSE(integer.matches("12345678901234567889"));
}

TEST_CASE("what generators of schemas write", "[json_schema]") {
  auto const grammar = Grammar::from_json_schema(R"({
    "$defs": {
      "Cat": {"properties": {"kind": {"const": "cat", "enum": ["cat"], "type": "string"}, "meows": {"type": "integer"}},
              "required": ["kind", "meows"], "title": "Cat", "type": "object"},
      "Dog": {"properties": {"kind": {"const": "dog", "type": "string"}, "barks": {"type": "number"}},
              "required": ["kind", "barks"], "title": "Dog", "type": "object"}},
    "properties": {
      "pet": {"discriminator": {"mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}, "propertyName": "kind"},
              "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
      "tags": {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "integer"}},
      "note": {"anyOf": [{"maxLength": 200, "type": "string"}, {"type": "null"}], "default": null}},
    "required": ["pet"], "type": "object", "x-origin": "tool"})");
  CHECK(grammar.matches(R"({"pet":{"kind":"cat","meows":3},"note":null})"));
  CHECK(grammar.matches(R"({"tags":{"a":1},"pet":{"barks":0.5,"kind":"dog"}})"));
  CHECK_FALSE(grammar.matches(R"({"pet":{"kind":"dog","meows":3}})"));
  CHECK_FALSE(grammar.matches(R"({"pet":{"kind":"cow","meows":3}})"));
  CHECK_FALSE(grammar.matches(R"({"pet":{"kind":"cat","meows":3},"tags":{"a":"b"}})"));
  CHECK(grammar.ignored() == std::vector<std::string>{"discriminator", "x-origin"});
}
