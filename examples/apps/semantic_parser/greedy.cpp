// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/greedy.hpp>

#include <semantic_parser/decoding.hpp>

namespace semantic_parser {

Outcome decode_greedy(Data const& data, std::shared_ptr<Weights const> const& weights, Options const& options) {
  return decode(data, SemanticParser(weights), options, sluice::Greedy{.length = {.max = longest(data)}});
}

}  // namespace semantic_parser
