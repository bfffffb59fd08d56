// SPDX-License-Identifier: Apache-2.0
/// \file
/// How prompts are continued.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/search/sample.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <http/bias_field.hpp>
#include <http/completion.hpp>
#include <http/fields.hpp>
#include <http/offer.hpp>
#include <http/task.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace serve {

/// What outputs are to match, not compiled yet.
struct GrammarSource {
  enum class Kind : std::uint8_t { json_schema, structural_tag, tool_calls, gbnf, lark, regex, any };
  Kind kind = Kind::json_schema;
  std::string
      field{};  ///< `json_schema`, `response_format`, `grammar`, `lark`, `regex`, `tools` or `thinking_token_budget`
  std::string text{};
  sluice::JsonSchemaOptions json{};  ///< of schemas
  Tools tools{};                     ///< of tool_calls
  sluice::ToolFormat format = sluice::ToolFormat::hermes;
  std::optional<sluice::Reasoning> behind{};  ///< it begins after this
};

struct ContinuationSettings final : Settings {
  Completion wants{};
  std::int32_t outputs = 1;  ///< number of outputs generated, of which the best are returned
  std::int32_t most = 16;    ///< maximum number of tokens of each
  std::uint64_t seed = 0;
  std::vector<std::pair<sluice::Token, float>> biases{};
  BiasField phrases{};      ///< boosted
  sluice::Sample sample{};  ///< the samplers; its other members are set from those above
  sluice::Penalties penalties{};
  sluice::Dry dry{};
  std::optional<GrammarSource> grammar{};
  sluice::Watermark watermark{};  ///< off: outputs are not marked
  bool remember = true;           ///< takes part in what is remembered of outputs
  bool guesses = false;           ///< blockwise, where the search allows it

  bool samples() const { return wants.temperature.value_or(1) > 0; }
};

/// The most recently used grammars. Any thread may call.
class Grammars {
 public:
  explicit Grammars(sluice::TokenTrie tokens) : tokens_(std::move(tokens)) {}

  /// Compiles it, unless it is known.
  /// \throws BadField  for invalid ones
  sluice::Structure of(GrammarSource const& source);

 private:
  static constexpr std::size_t most = 16;

  std::optional<sluice::Structure> find(std::string const& key);

  sluice::TokenTrie tokens_;
  std::mutex mutex_;
  std::deque<std::pair<std::string, sluice::Structure>> known_;  // most recently used first
};

/// The samplers of a request, under llama-server's names.
/// \throws BadField  for invalid values
void read_samplers(Fields& fields, ContinuationSettings& settings);

/// \param vocabulary  how many tokens there are
/// \param format      of calls of tools
/// \param reasoning   how what is thought ends, and its budget unless the request has one
/// \throws BadField  for invalid values
ContinuationSettings continuation_settings(Completion const& completion, Fields& fields, Bounds const& bounds,
                                           std::int32_t vocabulary, Offer const& offer,
                                           sluice::JsonSchemaOptions const& json, sluice::ToolFormat format,
                                           sluice::Reasoning const& reasoning);

}  // namespace serve
