// SPDX-License-Identifier: Apache-2.0
// Guesses, chains and trees under a rule that restricts, against the rule applied to every path's tokens.
#include <sluice/processor/processed.hpp>

#include <support/catch.hpp>
#include <support/hashed_rules.hpp>
#include <support/scripted_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Allows only one token every other time; token 9 is outside the vocabulary.
struct Narrow : Following {
  std::size_t* calls = nullptr;
  static TokenSet set(State state, std::int32_t left, bool& said) {
    auto const x = derive(state, static_cast<std::uint64_t>(left));
    said = x % 6 != 0;
    TokenSet set(10);
    if (x % 2 == 1) set.insert(static_cast<Token>((x >> 8) % 10));
    for (Token token = 0; token < 10 && x % 2 == 0; ++token)
      if ((x >> (8 + token)) % 2 == 0) set.insert(token);
    return set;
  }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  std::shared_ptr<TokenSet const> may_follow(State state, std::int32_t left) const {
    ++*calls;
    bool said = false;
    auto const all = set(state, left, said);
    return said ? std::make_shared<TokenSet const>(all) : nullptr;
  }
  void require_possible(State, Output const&, std::int32_t) const {}
};

/// A request for guesses.
struct Wish {
  Draft draft{};
  std::vector<Token> pending, guesses;
  DraftTree tree;
  bool asks = false, branches = false;
  std::size_t drafts = 0;
};
struct Drafting : Scripted<> {
  Wish* wish = nullptr;
  std::int32_t block = 4;
  bool draft(State&, Draft& draft) const {
    ++wish->drafts;
    if (!wish->asks) return false;
    draft.slot += wish->draft.slot, draft.length = wish->draft.length, draft.count = wish->draft.count;
    draft.pending = wish->pending, draft.tokens = &wish->guesses;
    if (wish->branches) draft.tree = &wish->tree;
    return true;
  }
};
/// The same without a `block`.
struct Unbounded : Scripted<> {
  Wish* wish = nullptr;
  bool draft(State& state, Draft& draft) const { return Drafting{{}, wish}.draft(state, draft); }
};

/// Has no length limit.
struct Endless : Drafting {
  struct {
  } length;
};

/// The expected guesses after an output.
struct Reference {
  std::vector<std::vector<Token>> outputs{};  // [guess + 1]
  std::vector<std::int32_t> parents{-2};      // [guess + 1]
  std::int32_t most;

  bool allows(std::size_t place, Token token) const {
    bool said = false;
    auto const set = Narrow::set(Following::of(outputs[place]), left(place), said);
    return token >= 0 && token < 9 && (!said || set.contains(token));
  }
  std::int32_t left(std::size_t place) const {
    return most == Limits::unlimited ? most : most - static_cast<std::int32_t>(outputs[place].size());
  }
  Token only(std::size_t place) const {
    bool said = false;
    auto const set = Narrow::set(Following::of(outputs[place]), left(place), said);
    std::vector<Token> all;
    for (Token token = 0; token < 10; ++token)
      if (!said || set.contains(token)) all.push_back(token);
    return all.size() == 1 ? all[0] : -1;
  }
  void add(std::size_t place, Token token) {
    auto output = outputs[place];
    output.push_back(token);
    outputs.push_back(output), parents.push_back(static_cast<std::int32_t>(place) - 1);
  }
  void run(std::vector<Token> const& guesses, std::vector<std::int32_t> const* said, std::size_t depth,
           std::size_t nodes) {
    std::vector<std::ptrdiff_t> place(guesses.size(), -1);  // -1: dropped
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      auto const before = static_cast<std::ptrdiff_t>(i) - 1;
      std::ptrdiff_t const parent = said != nullptr && i < said->size() ? (*said)[i] : before;
      if (parent < -1 || parent > before) continue;
      auto const at = parent < 0 ? 0 : place[static_cast<std::size_t>(parent)];
      if (at < 0 || !allows(static_cast<std::size_t>(at), guesses[i])) continue;
      add(static_cast<std::size_t>(at), guesses[i]), place[i] = static_cast<std::ptrdiff_t>(outputs.size()) - 1;
    }
    for (std::size_t i = 0; i < outputs.size() && outputs.size() - 1 < nodes; ++i) {
      auto const leaf = std::ranges::count(parents, static_cast<std::int32_t>(i) - 1) == 0;
      if (!leaf || outputs[i].size() - outputs[0].size() >= depth) continue;
      if (auto const token = only(i); token >= 0 && token < 9) add(i, token);
    }
  }
};

template <class Inner>
void check_guesses(Inner inner, std::uint64_t seed, std::int32_t most, std::size_t block) {
  std::mt19937_64 random(seed);
  Script script;
  Wish wish;
  std::size_t calls = 0, certain = 0, gone = 0;
  inner.script = &script, inner.wish = &wish;
  if constexpr (requires { inner.length.max; }) inner.length.max = most;
  Narrow rule;
  rule.calls = &calls;
  Processed<Inner> const search{inner, rule};
  typename Processed<Inner>::State state;
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  for (int round = 0; round < 600; ++round) {
    INFO("round " << round);
    std::vector<Token> const prompt(1 + random() % 3, 0);
    std::vector<Token> prefix;
    while (random() % 2 == 0) prefix.push_back(static_cast<Token>(2 + random() % 5));
    auto held_first = prompt;
    held_first.insert(held_first.end(), prefix.begin(), prefix.end());
    held_first.pop_back();
    search.begin(state, {.vocabulary = &vocabulary,
                         .prompt = prompt,
                         .prefix = prefix,
                         .held = static_cast<std::int32_t>(held_first.size())});
    SlotContents held{{0, held_first}};
    wish.drafts = 0;
    for (auto steps = 2 + random() % 4, first = steps; steps > 0; --steps) {
      script.rows = random_rows(random, held, true);
      Slot const base = 4 * static_cast<Slot>(random() % 2);
      StepPlan step;
      Plan plan(step, base);
      if (steps == first) {
        search.plan(state, plan);
        CHECK(wish.drafts == 0);
        held = contents_after(held, script.rows);
        continue;
      }
      // The draft that the search asks for.
      auto at = held.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(random() % held.size()));
      wish.asks = random() % 8 != 0, wish.branches = random() % 2 == 0;
      wish.draft.slot = at->first, wish.draft.count = static_cast<std::int32_t>(random() % 6);
      wish.draft.length = static_cast<std::int32_t>(random() % (at->second.size() + 1));
      wish.pending.clear(), wish.guesses.clear(), wish.tree = {.nodes = static_cast<std::int32_t>(random() % 12)};
      for (auto n = random() % 3; n > 0; --n) wish.pending.push_back(static_cast<Token>(2 + random() % 7));
      auto text = at->second;
      text.resize(static_cast<std::size_t>(wish.draft.length));
      text.insert(text.end(), wish.pending.begin(), wish.pending.end());
      Reference reference{.most = most};
      reference.outputs.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), prompt.size())),
                                     text.end());
      auto const sure = reference.only(0) >= 0;

      auto const asked_before = calls, drafts = wish.drafts;
      auto const by_model = random() % 3 != 0;
      Draft draft{.slot = base};
      if (by_model) {
        CHECK(search.draft(state, draft) == wish.asks);
        CHECK((draft.tree != nullptr) == (wish.asks && wish.branches && !sure));  // certain tokens form a chain
      }
      if (by_model && wish.asks) {
        CHECK((draft.slot == base + wish.draft.slot && draft.tokens == &wish.guesses));
        for (auto n = random() % 7; n > 0; --n) wish.guesses.push_back(static_cast<Token>(random() % 11) - 1);
        if (draft.tree != nullptr && random() % 4 != 0)
          for (std::size_t i = 0; i < wish.guesses.size() && random() % 9 != 0; ++i)
            wish.tree.parents.push_back(static_cast<std::int32_t>(random() % (i + 3)) - 2);
        wish.tree.draws = random() % 4 == 0;
      }
      auto const guesses = wish.guesses;
      auto const parents = wish.tree.parents;
      auto const is_tree = !parents.empty();
      auto const depth = std::max(static_cast<std::size_t>(wish.draft.count), block);
      auto const drawn = is_tree && wish.tree.draws;
      if (wish.asks && !drawn)
        reference.run(guesses, is_tree ? &parents : nullptr, depth,
                      is_tree ? static_cast<std::size_t>(wish.tree.nodes) : depth);
      search.plan(state, plan);
      CHECK(wish.drafts == drafts + 1 + (by_model && !wish.asks));
      held = contents_after(held, script.rows);
      if (!wish.asks || drawn) {
        CHECK((wish.guesses == guesses && wish.tree.parents == parents));
        continue;
      }
      std::vector<Token> expected;
      for (std::size_t i = 1; i < reference.outputs.size(); ++i) expected.push_back(reference.outputs[i].back());
      CHECK(wish.guesses == expected);
      if (is_tree)
        CHECK(wish.tree.parents == std::vector<std::int32_t>(reference.parents.begin() + 1, reference.parents.end()));
      else CHECK(wish.tree.parents.empty());
      CHECK(calls - asked_before <= reference.outputs.size());  // once for each place
      certain += expected.size() > guesses.size(), gone += expected.size() < guesses.size();
    }
    if (random() % 2 == 0) {
      wish.draft.slot = held.begin()->first, wish.draft.length = 0;
      Draft draft;  // without a plan
      search.draft(state, draft);
    }
  }
  CHECK((certain > 50 && gone > 50));
}

}  // namespace

TEST_CASE("guesses under a rule are those that it allows, and what is certain behind them", "[rules]") {
  check_guesses(Drafting{}, 1, 30, 3);
  check_guesses(Unbounded{}, 2, 30, 0);
  check_guesses(Endless{}, 3, Limits::unlimited, 3);
}

TEST_CASE("a rule learns how many tokens may come from whichever search has the limit", "[rules]") {
  Vocabulary const vocabulary{.size = 9};
  std::vector<Token> const prompt{0};
  Sentence const sentence{.vocabulary = &vocabulary, .prompt = prompt};
  struct Around {
    Drafting beam{};
  };
  Around around;
  around.beam.length.max = 17;
  CHECK(detail::most_tokens(around, sentence) == 17);
  CHECK(detail::most_tokens(Processed<Drafting>(around.beam), sentence) == 17);
  CHECK(detail::most_tokens(Processed<Endless>(), sentence) == Limits::unlimited);
}
