// SPDX-License-Identifier: Apache-2.0
/// \file
/// Typical grammars and JSON schemas.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Name and text.
inline std::vector<std::pair<std::string, std::string>> schemas() {
  return {
      {"any JSON", R"({})"},
      {"tool call", R"({"type":"object","properties":{"name":{"enum":["search","weather","calculator","calendar"]},
        "arguments":{"type":"object"}},"required":["name","arguments"],"additionalProperties":false})"},
      {"person", R"({"type":"object","properties":{"first_name":{"type":"string","minLength":1,"maxLength":60},
        "last_name":{"type":"string","minLength":1,"maxLength":60},"age":{"type":"integer","minimum":0,"maximum":150},
        "email":{"type":"string","format":"email"},"married":{"type":"boolean"},
        "children":{"type":"array","items":{"type":"string"},"maxItems":12}},
        "required":["first_name","last_name","age"],"additionalProperties":false})"},
      {"order", R"({"type":"object","properties":{"order_id":{"type":"string","format":"uuid"},
        "date":{"type":"string","format":"date"},"customer":{"$ref":"#/$defs/customer"},
        "lines":{"type":"array","minItems":1,"maxItems":50,"items":{"$ref":"#/$defs/line"}},
        "total":{"type":"number","minimum":0},"currency":{"enum":["EUR","USD","GBP","CHF","JPY"]},
        "notes":{"type":"string","maxLength":500}},"required":["order_id","date","customer","lines","total","currency"],
        "additionalProperties":false,"$defs":{"customer":{"type":"object","properties":{"name":{"type":"string"},
        "street":{"type":"string"},"postcode":{"type":"string","pattern":"^[0-9]{5}$"},"city":{"type":"string"}},
        "required":["name","city"],"additionalProperties":false},"line":{"type":"object","properties":{
        "article":{"type":"string","pattern":"^[A-Z]{3}-[0-9]{4,8}$"},"quantity":{"type":"integer","minimum":1,"maximum":999},
        "price":{"type":"number","exclusiveMinimum":0}},"required":["article","quantity","price"],
        "additionalProperties":false}}})"},
      {"tree", R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":"number"},
        "left":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]},"right":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},
        "required":["value","left","right"],"additionalProperties":false}}})"},
      {"GeoJSON geometry", R"({"oneOf":[{"$ref":"#/$defs/point"},{"$ref":"#/$defs/line"},{"$ref":"#/$defs/polygon"}],
        "$defs":{"position":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":3},
        "point":{"type":"object","properties":{"type":{"const":"Point"},"coordinates":{"$ref":"#/$defs/position"}},
        "required":["type","coordinates"],"additionalProperties":false},
        "line":{"type":"object","properties":{"type":{"const":"LineString"},"coordinates":{"type":"array","minItems":2,
        "items":{"$ref":"#/$defs/position"}}},"required":["type","coordinates"],"additionalProperties":false},
        "polygon":{"type":"object","properties":{"type":{"const":"Polygon"},"coordinates":{"type":"array",
        "items":{"type":"array","minItems":4,"items":{"$ref":"#/$defs/position"}}}},"required":["type","coordinates"],
        "additionalProperties":false}}})"},
      {"review", R"({"type":"object","properties":{"sentiment":{"enum":["positive","neutral","negative"]},
        "confidence":{"type":"number","minimum":0,"maximum":1},"topics":{"type":"array","items":{"enum":["price","quality",
        "delivery","service","packaging"]},"maxItems":5},"summary":{"type":"string","maxLength":200}},
        "required":["sentiment","confidence","summary"],"additionalProperties":false})"},
      {"package", R"({"type":"object","properties":{"name":{"type":"string","pattern":"^[a-z][a-z0-9._-]*$"},
        "version":{"type":"string","pattern":"^\\d+\\.\\d+\\.\\d+(-[0-9A-Za-z.-]+)?$"},"private":{"type":"boolean"},
        "scripts":{"type":"object","additionalProperties":{"type":"string"}},
        "dependencies":{"$ref":"#/$defs/versions"},"devDependencies":{"$ref":"#/$defs/versions"},
        "engines":{"$ref":"#/$defs/versions"},"license":{"type":"string"},"keywords":{"type":"array","items":{"type":"string"}}},
        "required":["name","version"],"$defs":{"versions":{"type":"object","additionalProperties":{"type":"string"}}}})"},
      {"calendar", R"({"type":"array","items":{"type":"object","properties":{"title":{"type":"string","minLength":1},
        "start":{"type":"string","format":"date-time"},"end":{"type":"string","format":"date-time"},
        "attendees":{"type":"array","items":{"type":"string","format":"email"}},
        "repeat":{"anyOf":[{"type":"null"},{"type":"object","properties":{"every":{"type":"integer","minimum":1,"maximum":365},
        "unit":{"enum":["day","week","month","year"]}},"required":["every","unit"],"additionalProperties":false}]}},
        "required":["title","start","end"],"additionalProperties":false}})"},
      {"expression",
       R"({"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[{"type":"number"},{"type":"string","pattern":"^[a-z]$"},
        {"type":"object","properties":{"op":{"enum":["+","-","*","/"]},"args":{"type":"array","minItems":2,"maxItems":8,
        "items":{"$ref":"#/$defs/e"}}},"required":["op","args"],"additionalProperties":false}]}}})"}};
}

inline std::string const json_gbnf = R"g(
root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,3})? ws
ws ::= [ \t\n]{0,20}
)g";

}  // namespace bench
