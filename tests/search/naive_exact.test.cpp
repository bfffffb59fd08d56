// SPDX-License-Identifier: Apache-2.0
// Exact search without a decoder, against its algorithm written as a recursion: the prefixes it visits, its queries,
// and its bound when the steps are used up.
#include <sluice/search/exact_search.hpp>

#include <support/catch.hpp>
#include <support/drawn_lines.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto infinite = std::numeric_limits<double>::infinity();

struct Recursion {
  struct Path {
    std::vector<Token> tokens{};  // without the prefix
    std::vector<float> log_probs{};
    double log_prob = 0;
  };
  struct Asked {
    std::vector<Token> tokens;
    std::int32_t best;
    bool early, last;
  };
  struct Output : Path {
    double score = 0;
    bool finished = true;
  };
  struct NoStepLeft {};

  ExactSearch search;
  Vocabulary vocabulary;
  DrawnLines lines;
  std::vector<Token> context;  // the tokens before the first generated one
  std::int32_t prefix = 0;
  std::vector<Asked> steps{};
  std::vector<Output> found{};  // best first
  Path begun{};                 // the next path to search
  double open = -infinite;      // the most that unsearched outputs could score

  std::int32_t size(Path const& path) const { return prefix + static_cast<std::int32_t>(path.tokens.size()); }
  bool promises(double bound) const {
    auto const full = std::ssize(found) >= search.n_best;
    return bound >= search.floor && !(full && bound <= found.back().score) && bound > -infinite;
  }
  /// The highest score of an output that continues after `size` tokens of this log_prob.
  double bound(double log_prob, std::int32_t size) const {
    auto const max = search.length.max;
    if (size >= max) return -infinite;
    auto const least = vocabulary.eos.empty() ? max : std::min(max, std::max(size, search.length.min) + 1);
    return search.penalty.bound(log_prob, least, max);
  }
  double bound_of_child(Path const& path, double log_prob, bool ends) const {
    auto const child = size(path) + 1;
    return ends || (vocabulary.eos.empty() && child == search.length.max) ? search.penalty.score(log_prob, child)
                                                                          : bound(log_prob, child);
  }
  void leave_open(double bound) {
    if (promises(bound)) open = std::max(open, bound);
  }

  void keep(Path const& path) {
    Output one{path, search.penalty.score(path.log_prob, size(path))};
    found.insert(std::ranges::upper_bound(found, one.score, std::greater(), &Output::score), one);
    if (std::ssize(found) > search.n_best) found.pop_back();
  }

  void visit(Path const& path) {
    auto const last = size(path) + 1 >= search.length.max && !vocabulary.eos.empty();
    auto const early = !last && size(path) < search.length.min;
    auto all = context;
    all.insert(all.end(), path.tokens.begin(), path.tokens.end());
    std::vector<Candidate> list;
    auto const line = lines(all);
    for (Token v = 0; v < vocabulary.size; ++v)
      if (std::ranges::count(vocabulary.never, v) == 0 && !(early && vocabulary.ends(v)) &&
          !(last && !vocabulary.ends(v)) && !std::isinf(line[static_cast<std::size_t>(v)]))
        list.push_back({v, line[static_cast<std::size_t>(v)]});
    std::ranges::stable_sort(list, [](Candidate a, Candidate b) { return a.log_prob > b.log_prob; });

    std::size_t next = 0;
    for (std::int32_t asked = search.list;; asked = asked < vocabulary.size / 8 ? 8 * asked : vocabulary.size) {
      auto const unseen = [&] {
        auto const log_prob = path.log_prob + (next == 0 ? 0 : static_cast<double>(list[next - 1].log_prob));
        return std::max(bound_of_child(path, log_prob, false), bound_of_child(path, log_prob, true));
      };
      if (search.steps > 0 && std::ssize(steps) == search.steps) {
        begun = path;
        leave_open(next == 0 ? bound(path.log_prob, size(path)) : unseen());
        throw NoStepLeft();
      }
      steps.push_back({all, asked, early, last});
      auto const count = std::min(list.size(), static_cast<std::size_t>(asked));
      auto const complete = count < static_cast<std::size_t>(asked) || asked >= vocabulary.size;
      while (next < count) {
        auto const [token, log_prob] = list[next++];
        auto child = path;
        child.tokens.push_back(token), child.log_probs.push_back(log_prob);
        child.log_prob += static_cast<double>(log_prob);
        if (!promises(bound_of_child(path, child.log_prob, vocabulary.ends(token)))) continue;
        if (vocabulary.ends(token) || size(child) >= search.length.max) keep(child);
        else try {
            visit(child);
          } catch (NoStepLeft) {
            for (; next < count; ++next)
              leave_open(bound_of_child(path, path.log_prob + static_cast<double>(list[next].log_prob),
                                        vocabulary.ends(list[next].token)));
            if (!complete) leave_open(unseen());
            throw;
          }
      }
      if (complete || !promises(unseen())) return;
    }
  }

  /// Returns whether everything was searched.
  bool run(double log_prob) {
    try {
      visit({.log_prob = log_prob});
      return true;
    } catch (NoStepLeft) {
      if (found.empty()) found.push_back({begun, search.penalty.score(begun.log_prob, size(begun)), false});
      return false;
    }
  }
};

}  // namespace

TEST_CASE("exact search looks at what its algorithm looks at, and says what it has proved", "[exact]") {
  std::mt19937_64 random(41);
  auto const below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
  ExactSearch::State state;
  Result result;
  std::array<int, 4> seen{};
  for (int round = 0; round < 6000; ++round) {
    Vocabulary vocabulary{.size = random() % 4 == 0 ? 24 + below(24) : 4 + below(4), .bos = 0};
    if (random() % 4 > 0) vocabulary.never.push_back(0);
    if (random() % 6 > 0) vocabulary.eos.push_back(1);
    if (random() % 4 == 0) vocabulary.eos.push_back(3);
    std::vector<Token> prompt{0}, prefix;
    while (random() % 3 == 0) prompt.push_back(2);
    while (random() % 3 == 0) prefix.push_back(2);
    auto const first = static_cast<std::int32_t>(prefix.size());
    ExactSearch search{.n_best = 1 + below(4), .list = 1 + below(5)};
    search.length.max = first == 0 ? below(5) : first + 1 + below(3);
    search.length.min = std::min(search.length.max, below(4));
    search.penalty = {.kind = static_cast<LengthPenalty::Kind>(random() % 3), .alpha = below(5) / 2.0 - 0.5};
    if (random() % 3 == 0) search.penalty.word_penalty = below(5) / 4.0 - 0.5;
    if (random() % 3 == 0) search.floor = -below(40) / 8.0;
    if (random() % 2 == 0) search.steps = 1 + below(12);
    auto const before = -below(16) / 4.0;
    auto context = prompt;
    context.insert(context.end(), prefix.begin(), prefix.end());
    DrawnLines const lines{.seed = random(), .size = vocabulary.size, .levels = 8 + random() % 30};
    Recursion plain{.search = search, .vocabulary = vocabulary, .lines = lines, .context = context, .prefix = first};
    auto const empty = search.length.max == 0;
    auto const proved = empty || plain.run(before);

    auto fed = context;
    fed.pop_back();
    auto const held = static_cast<std::int32_t>(fed.size());
    DrivenSlots slots(lines, fed, {.roll_back = true});
    search.begin(state, {.vocabulary = &vocabulary,
                         .prompt = prompt,
                         .prefix = prefix,
                         .last = context.back(),
                         .held = held,
                         .prefix_log_prob = &before});
    INFO("round " << round << ", V " << vocabulary.size << ", length " << search.length.min << " to "
                  << search.length.max << ", list " << search.list << ", steps " << search.steps);
    auto over = false;
    for (std::size_t step = 0; !over; ++step) {
      StepPlan planned;
      Plan plan(planned, 0);
      auto const progress = search.progress(state);
      search.plan(state, plan);
      auto const answer = slots.run(planned);
      REQUIRE(planned.rows.size() == (empty ? 0 : 1));
      if (!empty) {
        REQUIRE(step < plain.steps.size());
        auto const& expected = plain.steps[step];
        REQUIRE(slots.contexts[0] == expected.tokens);
        CHECK((progress.length == std::ssize(expected.tokens) - 1 && progress.width == 1 && progress.rows == 1));
        auto const& query = planned.queries[0];
        CHECK((query.best == expected.best && query.stage == Stage::after_softmax && query.normalise));
        CHECK(query.edits.size() == vocabulary.never.size() + (expected.early ? vocabulary.eos.size() : 0));
        CHECK((query.only != nullptr) == expected.last);
      }
      over = search.advance(state, answer);
      if (over) break;
      result.failure = Failure::none;
      search.finish(state, result);
      CHECK((result.bound == infinite && result.ok()));  // nothing is proved yet
      if (step == 1 && random() % 16 == 0) break;        // it may be cancelled
    }
    if (!over) continue;
    CHECK(state.taken == std::ssize(plain.steps));
    result.failure = Failure::none;
    search.finish(state, result);
    REQUIRE(result.hypotheses.size() == (empty ? 1 : plain.found.size()));
    ++seen[empty ? 0 : !proved ? 1 : plain.found.empty() ? 2 : 3];
    if (empty) {
      CHECK((result.ok() && result.hypotheses[0].tokens.empty() && !result.hypotheses[0].finished));
      continue;
    }
    for (std::size_t i = 0; i < plain.found.size(); ++i) {
      auto const& h = result.hypotheses[i];
      auto const& expected = plain.found[i];
      CHECK((h.tokens == expected.tokens && h.log_probs == expected.log_probs && h.log_prob == expected.log_prob));
      CHECK((h.score == expected.score && h.finished == expected.finished));
    }
    auto const best = plain.found.empty() || !plain.found[0].finished ? search.floor : plain.found[0].score;
    CHECK(result.bound == std::max(plain.open, best));
    CHECK(result.ok() == !(plain.found.empty() && search.floor == -infinite));
  }
  for (auto const count : seen) CHECK(count > 100);
}
