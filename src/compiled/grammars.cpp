// SPDX-License-Identifier: Apache-2.0
// Grammars, and the masks of tokens that they allow, of the compiled library.
#include <sluice/grammar/detail/grammar_definition.hpp>
#include <sluice/grammar/detail/structure_definition.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/lark.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

template Grammar Grammar::from_gbnf<void>(std::string_view, GrammarLimits const&, Grammar::Named const&);
template Grammar Grammar::from_regex<void>(std::string_view, GrammarLimits const&);
template Grammar Grammar::from_json_schema<void>(std::string_view, JsonSchemaOptions const&);
template Grammar Grammar::behind_space<void>() const;
template std::vector<std::byte> Grammar::to_bytes<void>() const;
template Grammar Grammar::from_bytes<void>(std::span<std::byte const>);
template bool Grammar::matches<void>(std::string_view) const;

template Grammar lark_grammar<void>(std::string_view, JsonSchemaOptions const&, Grammar::Named const&);
template Grammar after_reasoning<void>(Grammar const&, Reasoning const&);
template Grammar structural_tag<void>(std::string_view, JsonSchemaOptions const&);
template Grammar tool_calls<void>(ToolFormat, std::string_view, ToolCallOptions const&);

template Structure::State Structure::initial<void>(Sentence const&) const;
template Structure::State Structure::start<void>() const;
template Structure::State Structure::next<void>(Structure::State const&, Token) const;
template std::shared_ptr<TokenSet const> Structure::may_follow<void>(Structure::State const&, std::int32_t) const;
template bool Structure::complete<void>(Structure::State const&) const;
template std::vector<std::pair<std::string, std::string>> Structure::captures<void>(std::span<Token const>) const;
template void Structure::require_possible<void>(Structure::State const&, Output const&, std::int32_t) const;
template std::pair<std::int32_t, std::int32_t> Structure::sizes<void>() const;
template std::shared_ptr<Structure::Data> Structure::make<void>(Grammar, TokenTrie, StructureOptions const&);

}  // namespace sluice::inline v0
