// SPDX-License-Identifier: Apache-2.0
// Plain values of core/, against other ways to the same thing.
#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;

namespace {

std::set<Token> members(TokenSet const& set) {
  std::set<Token> found;
  for (Token token = 0; token < 400; ++token)
    if (set.contains(token)) found.insert(token);
  return found;
}

}  // namespace

TEST_CASE("token sets do what sets do", "[values]") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::array<TokenSet, 2> sets{TokenSet(static_cast<std::int32_t>(random() % 200)), TokenSet()};
    std::array<std::set<Token>, 2> plain;
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<Token> tokens(random() % 6);
      for (auto& token : tokens) token = static_cast<Token>(random() % 300);
      sets[i].insert(tokens), plain[i].insert(tokens.begin(), tokens.end());
      auto const out = static_cast<Token>(random() % 300);
      sets[i].erase(out), plain[i].erase(out);
      CHECK(members(sets[i]) == plain[i]);
      CHECK(sets[i].only() == (plain[i].size() == 1 ? *plain[i].begin() : -1));
    }
    auto both = sets[0], any = sets[0];
    both.keep(sets[1]), any.insert(sets[1]);
    std::set<Token> common, together = plain[0];
    together.insert(plain[1].begin(), plain[1].end());
    std::set_intersection(plain[0].begin(), plain[0].end(), plain[1].begin(), plain[1].end(),
                          std::inserter(common, common.end()));
    CHECK(members(both) == common);
    CHECK(members(any) == together);
  }
  TokenSet ends;
  ends.insert(Token{0});
  CHECK(ends.only() == 0);
  ends.insert(Token{70});
  CHECK(ends.only() == -1);
  CHECK(TokenSet(0).words().empty());
  CHECK(TokenSet(64).words().size() == 1);
  CHECK(TokenSet(65).words().size() == 2);
  TokenSet grown;
  grown.insert(Token{64});
  CHECK(grown.words().size() == 2);
  CHECK_THROWS_WITH(grown.insert(Token{-1}), "sluice: TokenSet: token = -1: must not be negative");
  CHECK_NOTHROW(grown.insert(Token{0}));
}

TEST_CASE("a plan that takes rows back is as if they had not been planned", "[values]") {
  std::mt19937 random(12);
  for (int round = 0; round < 400; ++round) {
    StepPlan step, wanted;
    Token const token = 3;
    Plan(step, 50).ask({.base = -1}), Plan(wanted, 50).ask({.base = -1});  // another sentence's
    Plan all(step, 100), some(wanted, 100);
    std::vector<std::uint8_t> out;
    double name = 0;
    auto const parts = random() % 3;
    for (std::size_t part = 0; part <= parts; ++part) {
      auto mine = part == 0 ? all : all.part(static_cast<Slot>(part));
      auto theirs = part == 0 ? some : some.part(static_cast<Slot>(part));
      CHECK(mine.base() == 100 + static_cast<Slot>(part));
      for (auto rows = random() % 4; rows > 0; --rows) {
        auto const lines = static_cast<std::int32_t>(1 + random() % 3);
        out.push_back(random() % 2);
        auto const slot = static_cast<Slot>(random() % 8);
        mine.row(slot, slot + 1, 4, {&token, 1}, lines);
        if (out.back() == 0) theirs.row(slot, slot + 1, 4, {&token, 1}, lines);
        for (auto line = lines; line > 0; --line) {
          mine.ask({.base = ++name});
          if (out.back() == 0) theirs.ask({.base = name});
        }
      }
    }
    REQUIRE(all.rows().size() == out.size());
    all.take_back(out);
    REQUIRE(step.rows.size() == wanted.rows.size());
    for (std::size_t i = 0; i < step.rows.size(); ++i) {
      CHECK(step.rows[i].from == wanted.rows[i].from);
      CHECK(step.rows[i].to == wanted.rows[i].to);
      CHECK(step.rows[i].lines == wanted.rows[i].lines);
    }
    REQUIRE(step.queries.size() == wanted.queries.size());
    for (std::size_t i = 0; i < step.queries.size(); ++i) CHECK(step.queries[i].base == wanted.queries[i].base);
    REQUIRE(step.groups.size() == wanted.groups.size());
    for (std::size_t i = 0; i < step.groups.size(); ++i) CHECK(step.groups[i].lines == wanted.groups[i].lines);
  }
}

TEST_CASE("what a plan says is said of its own lines and slots", "[values]") {
  StepPlan step;
  Token const token = 1;
  Plan(step, 0).ask({});
  Plan plan(step, 7);
  plan.row(0, 1, 2, {&token, 1});
  plan.ask({}), plan.keep(4), plan.release(2);
  std::int32_t const depth = 0;
  plan.branch({&depth, 1});
  CHECK(step.rows[0].depths == &depth);
  CHECK((step.groups[0].keep == 0 && step.groups[1].keep == 4));
  CHECK((step.rows[0].from == 7 && step.rows[0].to == 8 && step.rows[0].length == 2 && step.rows[0].lines == 1));
  CHECK((step.released.size() == 1 && step.released[0] == 9));
  CHECK(plan.prefix_scored());
  plan.ignore_prefix_scores();
  CHECK_FALSE(plan.prefix_scored());
  step.clear();
  CHECK((step.rows.empty() && step.queries.empty() && step.groups.empty() && step.released.empty()));
}

TEST_CASE("random numbers are those of SplitMix64, whatever the release", "[values]") {
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;  // its published first numbers for seed 0
  CHECK(mix(golden) == 0xE220A8397B1DCDAFu);
  CHECK(mix(2 * golden) == 0x6E789E6AA1B965F4u);
  CHECK(mix(3 * golden) == 0x06C45D188009454Fu);
  CHECK(derive(0, 0) == 0x927A7C57DC016E42u);  // by the formula, in Python's whole numbers
  CHECK(derive(1, 2) == 0x72C2669F720E2BBAu);
  CHECK(derive(~std::uint64_t{0}, 7) == 0xB9FFF062785065C8u);
  CHECK(derive(42, 0x59603BE92A162686u) == 1);  // where 0, which means "no noise", would come out
  CHECK(uniform(7, 0) == 0.36746679817847594);
  CHECK(uniform(123456789, 31999) == 0.42318304799059436);
  CHECK(gumbel(7, 5) == -std::log(-std::log(0.09424683937666789)));
}

TEST_CASE("statistics count steps, and add up", "[values]") {
  Token const tokens[] = {1, 2, 3};
  StepPlan step;
  Statistics one;
  step.rows = {{0, 0, 1, {tokens, 1}}, {0, 1, 1, {tokens, 3}}, {2, 3, 1, {tokens, 2}}};
  one.count(step);
  step.rows.resize(1);
  one.count(step), one.count(step);
  CHECK((one.model_calls == 3 && one.rows == 5 && one.fed == 8 && one.forks == 2));
  CHECK(one.rows_histogram == std::vector<std::uint64_t>{0, 2, 0, 1});

  step.rows.resize(4, {0, 0, 1, {tokens, 1}});
  Statistics more = one;
  more.count(step);
  CHECK(more.rows_histogram == std::vector<std::uint64_t>{0, 2, 0, 1, 1});

  using S = Statistics;
  std::array const counts{&S::sentences,  &S::tokens, &S::steps,     &S::model_calls, &S::rows,          &S::fed,
                          &S::expansions, &S::forks,  &S::restarted, &S::shared,      &S::encoder_calls, &S::encoded};
  std::array const times{&S::Seconds::encode, &S::Seconds::model, &S::Seconds::output, &S::Seconds::search,
                         &S::Seconds::beside};
  Statistics sum, other;
  std::uint64_t n = 0;
  for (auto const count : counts) sum.*count = ++n, other.*count = 100 * n;
  for (auto const time : times)
    sum.seconds.*time = static_cast<double>(++n), other.seconds.*time = 100.0 * sum.seconds.*time;
  sum.rows_histogram = {1, 2}, other.rows_histogram = {10, 20, 30};
  CHECK(sum.seconds.total() == 13 + 14 + 15 + 16);
  sum += other;
  n = 0;
  for (auto const count : counts) CHECK(sum.*count == 101 * ++n);
  for (auto const time : times) CHECK(sum.seconds.*time == 101.0 * static_cast<double>(++n));
  CHECK(sum.rows_histogram == std::vector<std::uint64_t>{11, 22, 30});
}

TEST_CASE("answers are found by line, in windows too", "[values]") {
  std::array<Candidate, 3> const best{{{4, -1}, {5, -2}, {6, -3}}};
  std::array<float, 2> const probes{-7, -8};
  std::array<Expansion::Entry, 3> entries{
      {{0, 0, 1, 0, 2, 3, true}, {1, 0, 2, 2, 4, 5, true}, {3, 2, 0, 0, 0, 0, true}}};
  Expansion const all(entries, best, probes);
  REQUIRE(all.size() == 3);
  CHECK((all[1].best.size() == 2 && all[1].best[1] == best[2] && all[1].probes.size() == 2 && all[1].probes[0] == -7));
  CHECK((all[1].log_sum_exp == 4 && all[1].entropy == 5 && all.back().best.empty() && all.back().probes.empty()));
  auto const window = all.window(1, 1);
  CHECK((window.size() == 1 && window[0].best[0] == best[1] && window.back().log_sum_exp == 4));
  CHECK((all.window(0, 3).size() == 3 && all.window(2, 1)[0].best.empty()));
  CHECK((all.valid() && window.valid() && Expansion().valid()));
  entries[0].valid = false;
  CHECK((!all.valid() && window.valid() && !all[0].valid));
}

TEST_CASE("rows of a matrix lie a stride apart", "[values]") {
  std::array<float, 12> const data{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  CHECK(scores(data.data(), 3, 4)[2][1] == 9);
  CHECK(scores(data.data(), 3, 3, Kind::logits, 4)[2][1] == 9);
  CHECK(scores(data.data(), 2, 2, Kind::log_probs, 1)[1][0] == 1);
  CHECK(hidden(data.data(), 3, 3, 4)[1].size() == 3);
  CHECK(hidden(data.data(), 4, 3)[3][0] == 9);
  CHECK(hidden(data.data(), 2, 2, 1)[1][0] == 1);
  CHECK(scores(data.data(), 1, 1).kind == Kind::logits);
}

TEST_CASE("a row that branches keeps its first path", "[values]") {
  Token const tokens[] = {1, 2, 3, 4};
  Row row{0, 0, 0, tokens};
  CHECK((row.kept() == 4 && row.depth(2) == 2 && row.lines == 1));
  std::array<std::int32_t, 4> const fork{0, 1, 1, 2}, chain{0, 1, 2, 3};
  row.depths = fork.data();
  CHECK((row.kept() == 2 && row.depth(2) == 1));
  row.depths = chain.data();
  CHECK(row.kept() == 4);
  std::array<std::int32_t, 5> const longer{0, 1, 2, 3, 4};
  row.depths = longer.data();
  CHECK(row.kept() == 4);  // of its tokens
}

TEST_CASE("abilities include others one by one", "[values]") {
  auto const of = [](unsigned bits) {
    return Abilities{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
  };
  for (unsigned have = 0; have < 16; ++have)
    for (unsigned need = 0; need < 16; ++need) CHECK(of(have).include(of(need)) == ((need & ~have) == 0));
}

TEST_CASE("requests are held to the vocabulary, to the last token", "[values]") {
  Vocabulary const vocabulary{.size = 70, .bos = 69, .eos = {0}, .never = {69}};
  CHECK_NOTHROW(vocabulary.check());
  CHECK_THROWS_WITH((Vocabulary{.size = 0}).check(), "sluice: vocabulary.size = 0: must be at least 1");
  CHECK_NOTHROW((Vocabulary{.size = 1}).check());
  CHECK_THROWS_WITH((Vocabulary{.size = 2, .bos = 2}).check(), "sluice: vocabulary.bos = 2: is outside the vocabulary");
  CHECK_THROWS_WITH((Vocabulary{.size = 2, .bos = 1, .eos = {2}}).check(),
                    "sluice: vocabulary.eos = 2: is outside the vocabulary");
  CHECK_THROWS_WITH((Vocabulary{.size = 2, .bos = 1, .never = {-1}}).check(),
                    "sluice: vocabulary.never = -1: is outside the vocabulary");
  CHECK_THROWS_WITH((Vocabulary{.size = 5, .bos = 1, .eos = {3, 2, 4, 2}}).check(),
                    "sluice: vocabulary.eos = 2: is listed more than once");  // outputs would be found twice
  CHECK_NOTHROW((Vocabulary{.size = 5, .bos = 1, .eos = {3, 2}, .never = {1, 1, 2}}).check());  // padding may be bos
  struct None {};
  using Asked = Request<std::string, None>;
  auto const refused = [&](Asked const& request) -> std::string {
    try {
      check(request, vocabulary);
    } catch (std::invalid_argument const& e) {
      return e.what();
    }
    return "";
  };
  std::string const rule = "is outside the vocabulary of 70";
  Asked asked;
  CHECK(refused(asked).empty());
  asked.prompt = {0, 69}, asked.prefix = {69};
  CHECK(refused(asked).empty());
  asked.prefix = {-1};
  CHECK(refused(asked) == "sluice: prefix = -1: " + rule);
  asked.prompt = {70};
  CHECK(refused(asked) == "sluice: prompt = 70: " + rule);
  asked = {};
  for (Token const token : {0, 63, 64, 69, 70, 127, 128}) {
    asked.shortlist.emplace();
    asked.shortlist->insert(token);
    CHECK(refused(asked) == (token < 70 ? "" : "sluice: shortlist = " + std::to_string(token) + ": " + rule));
  }
  asked.shortlist = TokenSet(70);
  CHECK(refused(asked) == "sluice: shortlist = no token: must hold one");
  CHECK_FALSE(Confidence{}.asks());
  CHECK((Confidence{.entropy = true}.asks() && Confidence{.alternatives = 1}.asks()));
}

TEST_CASE("queries select by any of their fields, and by none by default", "[values]") {
  Query const plain;
  CHECK((!plain.selects() && plain.lists() && plain.best == 1 && plain.label == -1 && plain.temperature == 1));
  CHECK_FALSE(Query{.best = 0}.lists());
  for (auto const field : {&Query::mass, &Query::within, &Query::typical, &Query::deviations, &Query::at_least}) {
    Query query{.best = 0};
    query.*field = 0.25f;
    CHECK((query.selects() && query.lists()));
  }
}

TEST_CASE("exceptions are told in words, results fail with theirs", "[values]") {
  CHECK(describe(std::make_exception_ptr(std::runtime_error("broken"))) == "broken");
  CHECK(describe(std::make_exception_ptr(5)) == "an exception that is not a std::exception");
  CHECK_THROWS_WITH(require(false, "a", 3, "must be less"), "sluice: a = 3: must be less");
  CHECK_NOTHROW(require(true, "a", 3, "must be less"));
  Result result;
  CHECK((result.ok() && std::isnan(result.bound)));
  auto const cause = std::make_exception_ptr(5);
  result.fail(Failure::model, "broken", cause);
  CHECK((!result.ok() && result.failure == Failure::model && result.message == "broken" && result.cause == cause));
  CHECK(std::string(name(Failure::no_room)) == "no_room");
  Hypothesis const hypothesis;
  CHECK((hypothesis.stop == -1 && hypothesis.constraints_met == 0 && hypothesis.constraints_total == 0));
  CHECK((Choice{}.rank == -1 && std::isnan(Choice{}.entropy)));
}
