// SPDX-License-Identifier: Apache-2.0
// Defaults: they are documented, and users' searches, models and schedules rely on them.
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/speculative/acceptance.hpp>

#include <support/catch.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

using namespace sluice;

TEST_CASE("a query asks for the best token, and for nothing else", "[defaults]") {
  Query const q;
  CHECK((q.base == 0 && q.rank == 0 && q.best == 1 && q.mass == 0 && q.within == 0 && q.typical == 0));
  CHECK((q.deviations == 0 && q.at_least == 0 && q.temperature == 1 && q.label == -1 && q.noise == 0));
  CHECK((q.normalise && !q.entropy && q.only == nullptr && q.shortlist == nullptr));
  Group const group;
  CHECK((group.lines == 0 && group.keep == 0 && group.direction == 0));
  Edit const edit;
  CHECK((edit.token == 0 && edit.add == 0 && edit.penalty == 1));
}

TEST_CASE("an answer that was not given is empty", "[defaults]") {
  Expansion::Entry const entry;
  CHECK((entry.best == 0 && entry.probes == 0 && entry.best_count == 0 && entry.probe_count == 0));
  CHECK((entry.log_sum_exp == 0 && entry.entropy == 0 && entry.valid && !entry.impossible));
  Line const line;
  CHECK((line.best.empty() && line.probes.empty() && line.log_sum_exp == 0 && line.entropy == 0 && line.valid));
  CHECK(!line.impossible);
  MatrixView<float> const view;
  CHECK((view.data == nullptr && view.rows == 0 && view.columns == 0 && view.stride == 0));
  Result const result;
  CHECK((result.id == 0 && result.hypotheses.empty() && result.message.empty() && !result.cause));
  Hypothesis const h;
  CHECK((h.log_prob == 0 && h.score == 0 && !h.finished && h.stop == -1));
  CHECK((h.constraints_met == 0 && h.constraints_total == 0));
}

TEST_CASE("what has not begun has no length, and is one hypothesis wide", "[defaults]") {
  Sentence const sentence;
  CHECK((sentence.last == 0 && sentence.held == 0 && sentence.source_length == -1 && sentence.seed == 0));
  Progress const progress;
  CHECK((progress.length == 0 && progress.width == 1 && progress.rows == 0 && progress.block == 1));
  Live const live;
  CHECK((live.length == 0 && live.width == 1 && live.rows == 1 && live.block == 1 && live.age == 0));
  CHECK((live.turn == 0 && live.source_length == 0));
  Vocabulary const vocabulary;
  CHECK((vocabulary.size == 0 && vocabulary.bos == 0));
  struct None {};
  Request<std::string, None> const request;
  CHECK((request.direction == 0 && request.confidence.alternatives == 0 && !request.confidence.entropy));
}

TEST_CASE("a draft asks for no guess, and knows no price", "[defaults]") {
  Draft const draft;
  CHECK((draft.slot == 0 && draft.length == 0 && draft.count == 0 && draft.seed == 0 && draft.position == 0));
  CHECK((draft.costs.empty() && draft.rates.empty() && draft.measure == -1 && draft.most == 0));
  CHECK((draft.verified == 0 && draft.right == 0 && draft.seen == -1 && draft.seen_line == 0));
  DraftTree tree;
  CHECK((tree.nodes == 0 && tree.leaves == 1 && tree.cost == 0 && !tree.draws));
  tree.parents = {-1}, tree.drawn.resize(1), tree.candidates = {{1, -1}};
  CHECK((tree.drawn[0].first == 0 && tree.drawn[0].count == 0));
  tree.clear();
  CHECK((tree.parents.empty() && tree.drawn.empty() && tree.candidates.empty()));
}

TEST_CASE("statistics begin with nothing", "[defaults]") {
  Statistics const s;
  for (auto const count : {s.sentences, s.tokens, s.steps, s.model_calls, s.rows, s.fed, s.expansions, s.forks,
                           s.restarted, s.shared, s.encoder_calls, s.encoded})
    CHECK(count == 0);
  auto const& t = s.seconds;
  for (auto const time : {t.encode, t.model, t.output, t.search, t.beside}) CHECK(time == 0);
  CHECK(s.rows_histogram.empty());
}

TEST_CASE("an exact acceptance asks for the best token and takes it alone", "[defaults]") {
  Query query{.best = 7};
  acceptance::Exact{}.ask(query, 0, 0, 0);
  CHECK((query.best == 1 && query.stage == Stage::after_softmax && query.normalise));
  acceptance::Exact{.scores = false}.ask(query, 0, 0, 0);
  CHECK_FALSE(query.normalise);
  std::vector<Candidate> scratch;
  std::array<Candidate, 2> const best{{{4, -1}, {5, -2}}};
  CHECK(acceptance::Exact{}.own({}, 0, 0, scratch) == Candidate{-1, 0});
  CHECK(acceptance::Exact{}.own({best, {}}, 0, 0, scratch) == Candidate{4, -1});
  auto const unscored = acceptance::Exact{.scores = false}.own({best, {}}, 0, 0, scratch);
  CHECK((unscored.token == 4 && std::isnan(unscored.log_prob)));
  CHECK((acceptance::Exact{}.accepts({}, best[0], 4) && !acceptance::Exact{}.accepts({}, best[0], 5)));
}
