// SPDX-License-Identifier: Apache-2.0
// draw_schemas COUNT [SEED]: draws COUNT outputs under random schemas and prints a JSON object {"schema": ...,
// "outputs": [...]} for each schema that compiles. For validators that are independent of sluice.
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <cstdint>
#include <grammar/draw_output.hpp>
#include <grammar/schema_validator.hpp>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Gives some strings a format.
void add_formats(json& schema, std::mt19937_64& random) {
  if (schema == json{{"type", "string"}} && random() % 3 == 0)
    schema["format"] = std::vector<std::string>{"uuid", "ipv4", "email"}[random() % 3];
  if (schema.is_object() && schema.contains("enum")) return;
  if (schema.is_structured())
    for (auto& part : schema) add_formats(part, random);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return std::cerr << "usage: draw_schemas COUNT [SEED]\n", 2;
  auto const wanted = std::stol(arguments[1]);
  std::mt19937_64 random(count > 2 ? std::stoull(arguments[2]) : 1);
  auto const tokens = json_tokens();
  auto const size = static_cast<std::int32_t>(tokens.size());
  TokenTrie const trie(TokenBytes(tokens), {.size = size, .bos = size - 1, .eos = {size - 1}});
  std::int64_t drawn = 0, schemas = 0, refused = 0;
  while (drawn < wanted) {
    auto schema = random_schema(random);
    add_formats(schema, random);
    Grammar grammar;
    try {
      grammar = Grammar::from_json_schema(schema.dump(), {.white_space = schemas % 3 == 0 ? 2 : 0});
    } catch (std::invalid_argument const&) {
      ++refused;
      continue;
    }
    ++schemas;
    Structure const structure(grammar, trie);
    auto outputs = json::array();
    for (int i = 0; i < 20 && drawn < wanted; ++i) {
      auto text = draw_output(structure, tokens, random, 20 + static_cast<std::int32_t>(random() % 60));
      if (text != "impossible" && !repeats_name(text) && !exceeds_doubles(text))
        outputs.push_back(std::move(text)), ++drawn;  // else: no text is that short
    }
    std::cout << json{{"schema", schema}, {"outputs", outputs}}.dump() << '\n';
  }
  std::cerr << drawn << " outputs of " << schemas << " schemas, " << refused << " schemas refused\n";
}
