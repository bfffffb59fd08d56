// SPDX-License-Identifier: Apache-2.0
// One pass, several passes and their lists, each against another way to the same answer.
#include <sluice/core/noise.hpp>
#include <sluice/output/detail/line/line_pass.hpp>
#include <sluice/output/detail/line/line_selection.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/catch.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

/// A query and, perhaps, its shortlist.
struct Asked {
  Asked(std::mt19937_64& random, std::size_t size, QueryFields const& fields = {}) : made(random, size, fields) {
    if (below(random, 2) == 0) return;
    auto const share = 1 + below(random, 5);
    for (std::size_t v = 0; v < size + 3; ++v)
      if (below(random, share) == 0) shortlist.insert(static_cast<Token>(v));
    made.query.shortlist = &shortlist;
  }
  Query& query() { return made.query; }
  RandomQuery made;
  TokenSet shortlist;
};

Scores<float> one_line(std::vector<float> const& line) { return scores(line.data(), 1, std::ssize(line)); }

/// The answer of `f`, which is given lists to write it to.
template <class F>
Line answer_of(LineLists& lists, F&& f) {
  lists.clear();
  f(lists);
  return lists.answer({}, {})[0];
}

}  // namespace

TEST_CASE("a shortlist is a line without the others, bit for bit", "[line]") {
  LogSoftmaxTopK expander, other;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    auto const line = drawn_line(random, seed);
    Asked asked(random, line.size(), {.edits = false, .only = false});
    auto& query = asked.query();
    if (query.shortlist == nullptr) continue;
    INFO("seed " << seed << ", V = " << line.size());
    auto without = line;
    for (std::size_t v = 0; v < line.size(); ++v)
      if (!query.shortlist->contains(static_cast<Token>(v))) without[v] = none;
    auto const answer = kept(expander.expand(one_line(line), {&query, 1}, {}));
    query.shortlist = nullptr;
    CHECK(same_line(answer[0].view(), other.expand(one_line(without), {&query, 1}, {})[0]));
  }
}

TEST_CASE("a line at once, one pass and several are the expander's, bit for bit", "[line]") {
  LogSoftmaxTopK expander;
  detail::LinePass pass;
  detail::LineSelection selection;
  LineLists lists;
  std::size_t passes = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    auto const line = drawn_line(random, seed);
    Asked asked(random, line.size(), {.selection = seed % 3 == 0});
    auto const& query = asked.query();
    INFO("seed " << seed << ", V = " << line.size());
    auto const expected = kept(expander.expand(one_line(line), {&query, 1}, {}));
    auto const best = expected[0].view().best;
    for (std::size_t i = 1; i < best.size() && (query.noise == 0 || query.selects()); ++i) {
      if (best[i - 1].log_prob < best[i].log_prob) CHECK(best[i - 1].log_prob >= best[i].log_prob);
    }
    auto changed = line;
    CHECK(same_line(answer_of(lists, [&](auto& to) { selection.answer(changed, Kind::logits, query, to); }),
                    expected[0].view()));
    if (!detail::LinePass::suffices(query)) continue;
    ++passes;
    changed = line;
    CHECK(same_line(answer_of(lists,
                              [&](auto& to) {
                                pass.begin(query, Kind::logits);
                                pass.run(changed);
                                pass.finish(to);
                              }),
                    expected[0].view()));
  }
  CHECK(passes > 200);
}

TEST_CASE("scores are compared before they become log-probabilities, whatever is edited after the softmax", "[line]") {
  LogSoftmaxTopK expander;
  std::size_t rounded = 0;
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    NearTies const ties(seed);
    INFO("seed " << seed << ", V = " << ties.line.size() << ", " << ties.edits.size() << " edits");
    auto const best = expander.expand(one_line(ties.line), {&ties.query, 1}, {})[0].best;
    REQUIRE(ties.holds(best));
    rounded += ties.rounded(best);
  }
  CHECK(rounded > 5000);
}

TEST_CASE("a set and edits act wherever in a long line", "[line]") {
  LogSoftmaxTopK expander, other;
  std::mt19937_64 random(5);
  for (std::size_t const size : {32768u, 33792u, 65536u, 66000u})
    for (auto const where : {std::size_t{0}, std::size_t{32768}, size - 5}) {
      if (where >= size) continue;
      auto const line = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 2);
      TokenSet only;
      for (std::size_t v = 0; v < size; v += 1 + below(random, 4)) only.insert(static_cast<Token>(v));
      std::vector<Edit> const edits{{static_cast<Token>(where + 1), 9}, {static_cast<Token>(where + 3), none}};
      std::vector<Token> const probes{static_cast<Token>(where + 1), static_cast<Token>(where + 2)};
      for (auto const count : {std::size_t{0}, edits.size()}) {
        Query query{.best = 40, .probes = probes, .edits = std::span(edits).first(count), .only = &only};
        auto const answer = kept(expander.expand(one_line(line), {&query, 1}, {}));
        auto changed = line;
        for (auto const& edit : query.edits) changed[static_cast<std::size_t>(edit.token)] += edit.add;
        for (std::size_t v = 0; v < size; ++v)
          if (!only.contains(static_cast<Token>(v))) changed[v] = none;
        query.edits = {}, query.only = nullptr;
        INFO("V = " << size << ", at " << where << ", " << count << " edits");
        CHECK(same_line(answer[0].view(), other.expand(one_line(changed), {&query, 1}, {})[0]));
      }
    }
}

TEST_CASE("a set of few tokens after the softmax, by an expander that has seen nothing", "[line]") {
  std::mt19937_64 random(6);
  auto const line = normal_numbers(random, 20'000, 2);
  std::vector<Token> every(line.size());
  for (std::size_t v = 0; v < every.size(); ++v) every[v] = static_cast<Token>(v);
  Query const all{.best = 0, .probes = every};
  auto const known = kept(LogSoftmaxTopK().expand(one_line(line), {&all, 1}, {}));
  auto const log_probs = known[0].view().probes;
  for (std::size_t const count : {1u, 2u, 500u, 1023u, 1024u, 1025u, 2049u})
    for (std::uint64_t const noise : {0u, 1u}) {
      std::vector<Token> some;
      TokenSet only;
      while (some.size() < count)
        if (auto const v = static_cast<Token>(below(random, line.size())); !only.contains(v))
          only.insert(v), some.push_back(v);
      auto const value = [&](Token v) {
        auto const log_prob = static_cast<double>(log_probs[static_cast<std::size_t>(v)]);
        return noise == 0 ? log_prob : log_prob + gumbel(noise, v);
      };
      std::ranges::sort(some, [&](Token a, Token b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
      for (std::size_t const best : {1u, 5u, 600u}) {
        Query const query{
            .best = static_cast<std::int32_t>(best), .stage = Stage::after_softmax, .only = &only, .noise = noise};
        LogSoftmaxTopK expander;
        auto const answer = expander.expand(one_line(line), {&query, 1}, {})[0];
        INFO(count << " tokens, best " << best << ", noise " << noise);
        REQUIRE(answer.best.size() == std::min(best, count));
        for (std::size_t i = 0; i < answer.best.size(); ++i)
          if (answer.best[i].token != some[i]) CHECK(answer.best[i].token == some[i]);
      }
    }
}

// Plain scores: sums of exponentials would not be added up in the same order.
TEST_CASE("some of a line's places, which say whose they are, answer as a line that holds nothing else", "[line]") {
  LogSoftmaxTopK expander;
  detail::LinePass pass;
  detail::LineSelection selection;
  LineLists lists;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto whole = drawn_line(random, seed);
    std::vector<float> some;
    std::vector<Token> tokens;
    auto const share = 1 + below(random, 4);
    for (std::size_t v = 0; v < whole.size(); ++v)
      if (v == 0 || below(random, share) == 0) some.push_back(whole[v]), tokens.push_back(static_cast<Token>(v));
      else whole[v] = none;
    Query query{.best = static_cast<std::int32_t>(below(random, 2) == 0 ? below(random, 20) : 1), .normalise = false};
    if (below(random, 3) == 0) query.within = 0.3f;
    if (below(random, 3) == 0) query.deviations = 1.5f;
    if (below(random, 3) == 0) query.noise = random() | 1;
    // Edits and probes name places here, and tokens there.
    std::vector<Edit> there_edits, here_edits;
    std::vector<Token> there_probes, here_probes;
    for (auto n = below(random, 4); n > 0; --n) {
      auto const place = below(random, tokens.size());
      auto const add = below(random, 3) == 0 ? none : static_cast<float>(below(random, 5)) - 2;
      here_edits.push_back({static_cast<Token>(place), add}), there_edits.push_back({tokens[place], add});
      here_probes.push_back(static_cast<Token>(place)), there_probes.push_back(tokens[place]);
    }
    here_probes.push_back(-1);
    if (below(random, 2) == 0) query.stage = Stage::after_softmax;
    query.edits = there_edits, query.probes = there_probes;
    auto const all = kept(expander.expand(one_line(whole), {&query, 1}, {}));
    query.edits = here_edits, query.probes = here_probes;
    auto const same = [&](Line const& line) {
      auto const expected = all[0].view();
      return std::ranges::equal(line.best, expected.best) && line.probes.back() == none &&
             std::ranges::equal(line.probes.first(line.probes.size() - 1), expected.probes);
    };
    INFO("seed " << seed << ", " << some.size() << " of " << whole.size());
    auto changed = some;
    CHECK(same(answer_of(lists, [&](auto& to) { selection.answer(changed, Kind::logits, query, to, tokens); })));
    if (!detail::LinePass::suffices(query)) continue;
    changed = some;
    CHECK(same(answer_of(lists, [&](auto& to) {
      pass.begin(query, Kind::logits);
      pass.run(changed);
      pass.finish(to, tokens);
    })));
  }
}
