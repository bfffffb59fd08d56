// SPDX-License-Identifier: Apache-2.0
/// \file
/// What Structure does: in each program, or once in the compiled library.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/captures.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/token_classes.hpp>
#include <sluice/grammar/detail/token_masks.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

struct Structure::Data {
  SLUICE_LAZY Data(Grammar const& its_grammar, detail::TokenNodes its_trie, StructureOptions const& its_options)
      : trie(std::move(its_trie)),
        bound(detail::TokenBinder::bind(its_grammar.automaton(), trie)),
        options(its_options),
        counts(*bound.automaton, bound.classes == nullptr ? trie : bound.classes->trie) {}
  SLUICE_LAZY std::shared_ptr<detail::TokenMasks> fresh_masks() {
    return std::make_shared<detail::TokenMasks>(
        *bound.automaton, counts, bound.classes == nullptr ? trie : bound.classes->trie, options.memory,
        static_cast<std::size_t>(options.ambiguity), static_cast<std::size_t>(options.masks),
        options.certain == CertainText::longest, bound.classes);
  }
  static constexpr auto ended = detail::TokenMasks::ended;
  static_assert(detail::Pushdown::dead == dead);

  detail::TokenNodes trie;  // as given
  detail::TokenBinder::Bound bound;
  StructureOptions options;
  detail::SharedCounts counts;
  std::mutex mutex;                           // guards what is below
  std::shared_ptr<detail::TokenMasks> masks;  // for new sentences
};

template <class Void>
// NOLINTNEXTLINE(performance-unnecessary-value-param): the grammar is moved, which the linter misses; a trie is a pointer
std::shared_ptr<Structure::Data> Structure::make(Grammar grammar, TokenTrie tokens, StructureOptions const& options) {
  require(options.masks >= 1, "options.masks", options.masks, "must be at least 1");
  require(options.ambiguity >= 1, "options.ambiguity", options.ambiguity, "must be at least 1");
  if (grammar.trivial()) return nullptr;
  require(!tokens.empty(), "tokens", "none", "a grammar needs the tokens' bytes: TokenTrie(bytes, vocabulary)");
  auto data = std::make_shared<Data>(std::move(grammar), tokens.data(), options);
  if (options.eager) {
    data->masks = data->fresh_masks();
    data->masks->prepare();
  }
  return data;
}

template <class Void>
Structure::State Structure::initial(Sentence const& sentence) const {
  if (data_ == nullptr) return {};
  auto const &own = data_->trie.vocabulary(), &other = *sentence.vocabulary;
  require(own.size == other.size, "vocabulary.size", other.size,
          "the grammar's tokens are of a vocabulary of " + std::to_string(own.size));
  require(own.eos == other.eos, "vocabulary.eos", other.eos.empty() ? Token{-1} : other.eos[0],
          "the grammar's tokens are of a vocabulary with another end");
  require(own.never == other.never, "vocabulary.never", std::to_string(other.never.size()) + " tokens",
          "the grammar's tokens are of a vocabulary with others");
  return start<Void>();
}

template <class Void>
Structure::State Structure::start() const {
  if (data_ == nullptr) return {};
  auto const lock = std::scoped_lock(data_->mutex);
  auto& masks = data_->masks;
  if (masks == nullptr || masks->bytes() > data_->options.memory / 2) masks = data_->fresh_masks();
  return {masks, masks->initial()};
}

template <class Void>
Structure::State Structure::next(State const& state, Token token) const {
  if (data_ == nullptr || state.masks == nullptr) return state;
  if (state.state == dead || state.state == Data::ended) return {state.masks, dead};
  auto& machine = state.masks->machine();
  if (data_->trie.vocabulary().ends(token)) return {state.masks, machine.complete(state.state) ? Data::ended : dead};
  auto const* const classes = data_->bound.classes.get();
  auto const text = (classes == nullptr ? data_->trie : classes->trie).bytes(token);
  auto const spelt = text.empty() ? dead : machine.next(state.state, text);
  if (classes == nullptr || token < 0 || token >= classes->vocabulary) return {state.masks, spelt};
  auto const kind = classes->of[static_cast<std::size_t>(token)];
  if (kind < 0) return {state.masks, spelt};
  auto const named = machine.next(state.state, classes->spelling[static_cast<std::size_t>(kind)]);
  return {state.masks, machine.either(spelt, named)};
}

template <class Void>
std::shared_ptr<TokenSet const> Structure::may_follow(State const& state, std::int32_t left) const {
  if (data_ == nullptr || state.masks == nullptr || state.state == dead) return nullptr;
  return state.masks->allowed(state.state, left);
}

template <class Void>
bool Structure::complete(State const& state) const {
  if (state.masks == nullptr || state.state == Data::ended) return true;
  return state.masks->machine().complete(state.state);
}

template <class Void>
std::vector<std::pair<std::string, std::string>> Structure::captures(std::span<Token const> tokens) const {
  if (data_ == nullptr) return {};
  auto const& automaton = *data_->bound.automaton;
  auto const* const classes = data_->bound.classes.get();
  std::string text;
  std::vector<std::size_t> places{0};  // [position]: in the text
  std::vector<detail::Parse::Step> steps;
  std::vector<std::int32_t> starts{0};
  for (auto const token : tokens) {
    if (data_->trie.vocabulary().ends(token)) break;
    auto const begin = static_cast<std::int32_t>(places.size()) - 1;
    std::vector<std::int32_t> lasts;
    std::vector<std::uint8_t> bytes;
    auto const add = [&](std::string_view spelling, std::size_t shown) {
      auto from = begin;
      for (std::size_t i = 0; i + 1 < spelling.size(); ++i) {
        places.push_back(text.size() + shown * (i + 1));
        auto const to = static_cast<std::int32_t>(places.size()) - 1;
        steps.push_back({from, to, static_cast<std::uint8_t>(spelling[i])}), from = to;
      }
      if (!spelling.empty()) lasts.push_back(from), bytes.push_back(static_cast<std::uint8_t>(spelling.back()));
    };
    add((classes == nullptr ? data_->trie : classes->trie).bytes(token), 1);
    if (classes != nullptr && token >= 0 && token < classes->vocabulary)
      if (auto const kind = classes->of[static_cast<std::size_t>(token)]; kind >= 0)
        add(classes->spelling[static_cast<std::size_t>(kind)], 0);
    text += data_->trie.bytes(token), places.push_back(text.size());
    for (std::size_t i = 0; i < lasts.size(); ++i)
      steps.push_back({lasts[i], static_cast<std::int32_t>(places.size()) - 1, bytes[i]});
  }
  auto const end = static_cast<std::int32_t>(places.size()) - 1;
  if (automaton.behind_space && !steps.empty() && text.starts_with(' ')) {  // which is not part of what must match
    auto const first = std::ranges::find(steps, std::pair(0, std::uint8_t{' '}),
                                         [](auto const& step) { return std::pair(step.from, step.byte); });
    if (first != steps.end()) starts.push_back(first->to), steps.erase(first);
  }
  auto const found = detail::Parse::of(automaton, end + 1, steps, starts);
  auto const empty = automaton.empty_text() && std::ranges::find(starts, end) != starts.end();
  require(!found.empty() || empty, "tokens", tokens.size(), "must be a complete output of the grammar");
  auto const capture_of = [&](detail::Parse::Found const& one) {
    auto const it = std::ranges::lower_bound(automaton.captures, one.rule, {}, &detail::Automaton::Capture::rule);
    return it == automaton.captures.end() || it->rule != one.rule ? nullptr : &*it;
  };
  std::vector<std::int32_t> shorter(places.size());  // [position]: where what is ignored before it begins
  for (std::size_t i = 0; i < shorter.size(); ++i) shorter[i] = static_cast<std::int32_t>(i);
  for (auto const& one : found)
    if (auto const* const its = capture_of(one); its != nullptr && its->name.empty())
      shorter[static_cast<std::size_t>(one.end)] = one.begin;
  std::vector<std::pair<std::string, std::string>> out;
  for (auto const& one : found) {
    auto const* const its = capture_of(one);
    if (its == nullptr || its->name.empty()) continue;
    auto const first = places[static_cast<std::size_t>(one.begin)];
    auto const last =
        places[static_cast<std::size_t>((std::max)(one.begin, shorter[static_cast<std::size_t>(one.end)]))];
    auto const length = last - first, left_out = static_cast<std::size_t>(its->suffix);
    out.emplace_back(its->name, text.substr(first, length - (std::min)(length, left_out)));
  }
  return out;
}

template <class Void>
void Structure::require_possible(State const& state, Output const& output, std::int32_t left) const {
  if (data_ == nullptr || state.masks == nullptr) return;
  auto const prefix = std::to_string(output.prefix) + " tokens";
  require(state.state != dead && state.state != Data::ended, "prefix", prefix, "breaks the grammar, or ends");
  auto& completion = state.masks->completion();
  require(completion.fits(state.state, detail::Completion::never - 1), "grammar", prefix + " of prefix",
          "no token, or sequence of tokens, of the vocabulary spells what the grammar wants next");
  require(left >= 1 && completion.fits(state.state, left - 1), "length.max",
          static_cast<std::int64_t>(output.prefix) + left,
          "the grammar needs " + std::to_string(completion.fewest(state.state)) +
              " tokens more, and the end, after a prefix of " + prefix);
}

template <class Void>
std::pair<std::int32_t, std::int32_t> Structure::sizes() const {
  if (data_ == nullptr) return {0, 0};
  auto const lock = std::scoped_lock(data_->mutex);
  return {data_->bound.automaton->nodes(), data_->masks == nullptr ? 0 : data_->masks->machine().states()};
}

}  // namespace sluice::inline v0
