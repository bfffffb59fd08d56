// SPDX-License-Identifier: Apache-2.0
// structured_output: outputs that obey a JSON schema, a grammar (GBNF) or a regular expression.
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include "../bigrams.hpp"

#include <iostream>

int main() {
  Bigrams model("sure : { \"drink\": \"tea\" , \"cups\": 2 } at 1 2 : 4 5 .");
  auto pieces = model.words();  // the bytes of each token
  pieces[0].clear();            // the end of a text is no text
  sluice::TokenBytes const bytes(pieces);
  sluice::TokenTrie const trie(bytes, model.vocabulary());  // made once for a model

  sluice::BeamSearch const beam{.width = 4, .length = {.max = 30}};
  auto const show = [&](sluice::LogitsProcessorList const& processors) {
    auto const result = sluice::decode(model, std::vector<std::monostate>(1), beam, processors)[0];
    std::cout << (result.ok() ? bytes.text(result.hypotheses.front().tokens) : result.message) << '\n';
  };
  auto const obeying = [&](sluice::Grammar const& grammar) { return sluice::Structure(grammar, trie); };
  show({});
  show(obeying(sluice::Grammar::from_json_schema(R"({
    "type": "object",
    "properties": {"drink": {"enum": ["tea", "coffee"]}, "cups": {"type": "integer", "minimum": 1, "maximum": 8}},
    "required": ["drink", "cups"],
    "additionalProperties": false
  })",
                                                 {.order = sluice::JsonOrder::schema, .plain_numbers = true})));
  show(obeying(sluice::Grammar::from_gbnf("root ::= \"{\" item (\",\" item)+ \"}\"\nitem ::= [1-9] [0-9]?")));
  show(obeying(sluice::Grammar::from_regex("[0-2]\\d:[0-5]\\d")));
  return 0;
}
