// SPDX-License-Identifier: Apache-2.0
// Searches over transducers against the enumeration of every alignment, and against a naive beam. Mutants that these
// tests notice: merging removed; the likelier of two instead of their sum; frames of the unlikelier one; a duration
// off by one, in the search or in the tokens; durations not normalised; a boost counted twice, given to blanks too,
// or not taken back at the end; an end that the rule forbids; a stop or an edit of the rule ignored (for one
// duration, too); one symbol more at a frame; one candidate fewer; the end of a language model forgotten, its state
// fed twice; a slot continued in place that others wait for; a clock of TransducerOrder::alignment without labels;
// symbols never reset (greedy); a threshold ignored. They do not notice if a label is followed that is less probable
// than `width` hypotheses that have moved on: it costs rows, and its outputs are dropped later. Mutants of what came later: blank counted
// twice; what a rule adds to the end counted twice, or an edit of the end ignored; the cap of TransducerOrder::alignment off by one; a
// label scored after another text; children lost, or alignments renumbered wrongly, where what is not needed is dropped; an endpoint
// taken with an order that has none.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/detail/label_tree.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/hashed_transducer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto infinite = std::numeric_limits<double>::infinity();
using Model_ = Transducer<HashedNetwork>;

TransducerTokens random_tokens(std::mt19937_64& random, bool long_ones = true) {
  TransducerTokens made{.labels = 3 + static_cast<std::int32_t>(random() % 2)};
  made.blank = static_cast<Token>(random() % static_cast<std::uint64_t>(made.labels));
  switch (random() % 4) {
    case 0: break;
    case 1:
      made.durations = random() % 2 == 0 ? std::vector<std::int32_t>{0, 1, 2} : std::vector<std::int32_t>{3, 0, 1};
      break;
    case 2:
      if (long_ones) made.big_blanks = {{.token = (made.blank + 1) % made.labels, .frames = 2}};
      break;
    default: made.label_frames = static_cast<std::int32_t>(random() % 2);
  }
  return made;
}

template <class S, class P = Batched>
std::vector<Result> run(HashedLines const& lines, std::vector<Utterance> const& utterances, S const& search,
                        P const& schedule = {}) {
  Model_ model{HashedNetwork(lines)};
  std::vector<Request<Utterance, S>> requests;
  for (auto const& one : utterances) requests.push_back({.source = one});
  auto results = decode(model, std::move(requests), search, schedule);
  CHECK(model.network().live == 0);
  return results;
}
template <class S>
Result run_one(HashedLines const& lines, Utterance const& utterance, S const& search) {
  return run(lines, {utterance}, search).at(0);
}

/// The search keeps everything, so its outputs are all of them, with their sums.
void check_all(std::vector<Labelling> const& expected, Result const& result) {
  REQUIRE(result.ok());
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const& h = result.hypotheses[i];
    INFO("hypothesis " << i << ": " << text(h.tokens) << ", expected " << text(expected[i].labels));
    CHECK_THAT(h.log_prob, WithinAbs(expected[i].log_prob, 2e-5));
    CHECK(h.score == h.log_prob);
    CHECK(h.finished);
    auto const same =
        std::find_if(expected.begin(), expected.end(), [&](auto const& one) { return one.labels == h.tokens; });
    REQUIRE(same != expected.end());
    CHECK_THAT(h.log_prob, WithinAbs(same->log_prob, 2e-5));
    CHECK(h.frames.size() == h.tokens.size());
    CHECK(h.log_probs.size() == h.tokens.size());
    CHECK(h.frames == same->frames);
  }
}

struct NoExtra {
  double operator()(std::vector<Token> const&) const { return 0; }
};

/// Wide enough to keep everything.
template <class S>
S whole(S search) {
  search.width = search.n_best = 3000, search.candidates = 1000;
  return search;
}

}  // namespace

TEST_CASE("a beam over a transducer that keeps everything finds the sums over all alignments") {
  std::mt19937_64 random(35);
  for (int trial = 0; trial < 60; ++trial) {
    HashedLines lines{.tokens = random_tokens(random), .scale = 3, .context = trial % 3 == 0 ? 1 : -1};
    Utterance const utterance{random(), static_cast<std::int32_t>(random() % 4 + (trial % 2 == 0 ? 1 : 0))};
    AlignmentLimits limits{.most_symbols = 1 + static_cast<std::int32_t>(random() % 2)};
    if (random() % 2 == 0 || utterance.frames > 2) limits.most_labels = 1 + static_cast<std::int32_t>(random() % 4);
    INFO("trial " << trial << ", " << utterance.frames << " frames, " << lines.tokens.size() << " tokens");
    TransducerBeam<> search{
        .tokens = lines.tokens, .most_symbols = limits.most_symbols, .most_labels = limits.most_labels};
    check_all(all_labellings(lines, utterance, limits, NoExtra{}), run_one(lines, utterance, whole(search)));
  }
}

TEST_CASE("so does the order of alignments") {
  std::mt19937_64 random(36);
  for (int trial = 0; trial < 40; ++trial) {
    HashedLines lines{.tokens = random_tokens(random), .scale = 3};
    Utterance const utterance{random(), 1 + static_cast<std::int32_t>(random() % 3)};
    AlignmentLimits limits{.most_labels = 1 + static_cast<std::int32_t>(random() % 4)};
    INFO("trial " << trial << ", " << utterance.frames << " frames, " << lines.tokens.size() << " tokens");
    TransducerBeam<> search{
        .tokens = lines.tokens, .most_labels = limits.most_labels, .order = TransducerOrder::alignment};
    check_all(all_labellings(lines, utterance, limits, NoExtra{}), run_one(lines, utterance, whole(search)));
  }
}

TEST_CASE("a shortlist of labels: the others are impossible, before lines are normalised") {
  std::mt19937_64 random(37);
  for (int trial = 0; trial < 40; ++trial) {
    HashedLines lines{.tokens = random_tokens(random), .scale = 3};
    Utterance const utterance{random(), 1 + static_cast<std::int32_t>(random() % 3)};
    auto const one = lines.tokens.blanks().back();  // which a shortlist may name, or not
    auto const kept = static_cast<Token>((lines.tokens.label(one) + 1) % lines.tokens.labels);
    TokenSet shortlist(lines.tokens.size());
    shortlist.insert(kept);
    if (trial % 2 == 0) shortlist.insert(lines.tokens.blank);
    auto fewer = lines;
    fewer.pairs = true;
    for (Token label = 0; label < lines.tokens.labels; ++label)
      if (label != kept && !lines.tokens.is_blank(label)) fewer.impossible.push_back(label);
    INFO("trial " << trial << ", " << utterance.frames << " frames, " << lines.tokens.size() << " tokens");
    auto const search = whole(TransducerBeam<>{.tokens = lines.tokens, .most_symbols = 2});
    Model_ model{HashedNetwork(lines)};
    Request<Utterance, TransducerBeam<>> request{.source = utterance};
    request.shortlist = shortlist;
    check_all(all_labellings(fewer, utterance, {.most_symbols = 2}, NoExtra{}),
              decode(model, std::vector{request}, search).at(0));
  }
  TransducerTokens const tdt{.labels = 3, .durations = {0, 1}};
  Model_ model{HashedNetwork({.tokens = tdt})};
  Request<Utterance, TransducerGreedy<>> request{.source = {1, 3}};
  request.shortlist = TokenSet(6);
  request.shortlist->insert(4);
  auto const refused = decode(model, std::vector{request}, TransducerGreedy<>{.tokens = tdt}).at(0);
  CHECK(refused.failure == Failure::bad_request);
  CHECK(refused.message == "sluice: shortlist = 4: is no label: a shortlist of a transducer names labels, below 3");
}

TEST_CASE("no more labels stand on a frame than most_symbols says, whether they move on or not") {
  HashedLines const lines{.tokens = {.labels = 3, .blank = 2, .durations = {0, 1, 2}}, .scale = 2, .blank_logit = -4};
  auto const count = [&](Hypothesis const& h) {
    std::map<std::int32_t, std::int32_t> labels;
    auto most = 0;
    for (auto const& range : h.frames) most = std::max(most, ++labels[range.begin]);
    return most;
  };
  for (auto const symbols : {1, 2, 3}) {
    auto most = 0;
    for (auto const seed : {1, 2, 3, 4}) {
      Utterance const utterance{static_cast<std::uint64_t>(seed), 9};
      for (auto const& h :
           run_one(lines, utterance,
                   TransducerBeam<>{.tokens = lines.tokens, .width = 9, .n_best = 9, .most_symbols = symbols})
               .hypotheses)
        most = std::max(most, count(h));
      auto const greedy =
          run_one(lines, utterance, TransducerGreedy<>{.tokens = lines.tokens, .most_symbols = symbols});
      CHECK(count(greedy.hypotheses.at(0)) <= symbols);
    }
    CHECK(most == symbols);
  }
}

TEST_CASE("n_best outputs are the best ones") {
  HashedLines lines{.tokens = {.labels = 3}, .scale = 3};
  Utterance const utterance{5, 4};
  auto search = whole(TransducerBeam<>{.tokens = lines.tokens, .most_symbols = 2});
  auto const all = run_one(lines, utterance, search);
  search.n_best = 4;
  auto const best = run_one(lines, utterance, search);
  REQUIRE(best.hypotheses.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(identical(best.hypotheses[i], all.hypotheses[i]));
}

namespace {

/// log10 p of a trigram model of three labels, with back-off; what is listed.
constexpr char const* arpa = R"(\data\
ngram 1=6
ngram 2=5
ngram 3=1

\1-grams:
-1.5 <unk>
-99 <s> -0.25
-0.75 </s>
-0.5 a -0.125
-0.875 b -0.375
-1.25 c

\2-grams:
-0.25 <s> b
-0.375 a a
-1 a </s>
-0.5 a b -0.75
-0.625 b c

\3-grams:
-0.0625 a b a

\end\
)";
NGramTable table() {
  std::istringstream stream(arpa);
  return read_arpa(stream);
}
/// The natural logarithm of the probability of labels that stand for a, b, c, written down by hand.
double of_trigrams(std::vector<Token> const& labels, std::vector<char> const& letters) {
  auto const unigram = [](char w) {
    return w == 'a' ? -0.5 : w == 'b' ? -0.875 : w == 'c' ? -1.25 : w == '$' ? -0.75 : -1.5;
  };
  auto const back_off = [](char w) { return w == '^' ? -0.25 : w == 'a' ? -0.125 : w == 'b' ? -0.375 : 0.0; };
  auto const bigram = [&](char v, char w) {
    if (v == '^' && w == 'b') return -0.25;
    if (v == 'a' && w == 'a') return -0.375;
    if (v == 'a' && w == '$') return -1.0;
    if (v == 'a' && w == 'b') return -0.5;
    if (v == 'b' && w == 'c') return -0.625;
    return back_off(v) + unigram(w);
  };
  auto const trigram = [&](char u, char v, char w) {
    if (u == 'a' && v == 'b') return w == 'a' ? -0.0625 : -0.75 + bigram(v, w);
    return bigram(v, w);
  };
  double sum = 0;
  auto u = '-', v = '^';
  for (auto const label : labels) {
    auto const w = letters[static_cast<std::size_t>(label)];
    sum += trigram(u, v, w), u = v, v = w;
  }
  return (sum + trigram(u, v, '$')) * std::log(10.0);
}

/// Allows an even number of labels only, and never two equal ones in a row.
struct Even {
  struct State {
    std::int32_t count = 0;
    Token last = -1, end = 0, labels = 0;
  };
  State initial(Sentence const& sentence) const {
    REQUIRE(sentence.vocabulary->eos.size() == 1);
    return {.end = sentence.vocabulary->eos.front(), .labels = sentence.vocabulary->size};
  }
  State next(State state, Token token) const { return {state.count + 1, token, state.end, state.labels}; }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t) const {
    auto set = std::make_shared<TokenSet>(state.labels);
    for (Token label = 0; label < state.labels; ++label)
      if (label != state.last && label != state.end) set->insert(label);
    if (state.count % 2 == 0) set->insert(state.end);
    return set;
  }
  void require_possible(State const&, Output const&, std::int32_t) const {}
};

/// Makes label 1, or the end if that is the blank, less likely by the number of labels before it; an output ends where label `end` has
/// been written.
struct Tired {
  Token end = 2;
  struct State {};
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    edits.push_back({1, -0.5f * static_cast<float>(output.tokens.size()), 1});
  }
  std::int32_t stop(State, Output const& output) const { return output.tokens.back() == end ? 7 : -1; }
};

}  // namespace

TEST_CASE("rules and language models see labels only, and add once whatever the alignment") {
  std::mt19937_64 random(37);
  for (int trial = 0; trial < 40; ++trial) {
    HashedLines lines{.tokens = random_tokens(random, false), .scale = 3};
    lines.tokens.labels = 3, lines.tokens.blank = static_cast<Token>(trial % 3);
    Utterance const utterance{random(), 1 + static_cast<std::int32_t>(random() % 3)};
    AlignmentLimits const limits{.most_symbols = 2, .most_labels = 4};
    INFO("trial " << trial << ", " << utterance.frames << " frames, " << lines.tokens.size() << " tokens");
    auto const one = static_cast<Token>((trial + 1) % 3), other = static_cast<Token>((trial + 2) % 3);
    auto const order = trial % 4 == 0 ? TransducerOrder::alignment : TransducerOrder::frames;
    auto const bounds = order == TransducerOrder::frames ? limits : AlignmentLimits{.most_labels_a_frame = 2};
    auto const all_with = [&](auto const& extra) { return all_labellings(lines, utterance, bounds, extra); };
    auto const prepare = [&](auto search) {
      search.tokens = lines.tokens, search.order = order;
      search.most_symbols = 2, search.most_labels = order == TransducerOrder::frames ? 4 : 0;
      return whole(search);
    };
    SECTION("boosted phrases, trial " + std::to_string(trial)) {
      std::vector<BiasedPhrase> const phrases{{.spellings = {{one, other}}, .whole = 1.5f},
                                              {.spellings = {{other, other}}, .whole = -0.75f}};
      auto search = prepare(TransducerBeam<Bias>{});
      search.rule = Bias(phrases);
      check_all(all_with([&](std::vector<Token> const& labels) {
                  double sum = 0;
                  for (std::size_t i = 1; i < labels.size(); ++i)
                    if (labels[i] == other) sum += labels[i - 1] == one ? 1.5 : -0.75;
                  return sum;
                }),
                run_one(lines, utterance, search));
    }
    SECTION("an n-gram, trial " + std::to_string(trial)) {
      auto const words = table();
      std::vector<char> letters{'a', 'b', 'c'};
      auto search = prepare(TransducerBeam<NoRule, NGramModel<>>{});
      search.language_model =
          NGramModel<>(words, {words.word("a"), words.word("b"), words.word("c")}, {.weight = 0.5, .bonus = 0.25});
      check_all(all_with([&](std::vector<Token> const& labels) {
                  return 0.5 * of_trigrams(labels, letters) + 0.25 * static_cast<double>(labels.size());
                }),
                run_one(lines, utterance, search));
    }
    SECTION("a rule that allows and one that ends, trial " + std::to_string(trial)) {
      auto search = prepare(TransducerBeam<Even>{});
      check_all(all_with([&](std::vector<Token> const& labels) {
                  auto const repeated = std::adjacent_find(labels.begin(), labels.end()) != labels.end();
                  return labels.size() % 2 == 0 && !repeated ? 0.0 : -infinite;
                }),
                run_one(lines, utterance, search));
    }
    SECTION("a rule that edits, trial " + std::to_string(trial)) {
      auto search = prepare(TransducerBeam<Tired>{});
      if (lines.tokens.blank == 1) search.rule.end = 0;
      auto const result = run_one(lines, utterance, search);
      check_all(all_with([&](std::vector<Token> const& labels) {
                  double sum = lines.tokens.blank == 1 ? -0.5 * static_cast<double>(labels.size()) : 0;
                  for (std::size_t i = 0; i < labels.size(); ++i) {
                    if (labels[i] == 1) sum -= 0.5 * static_cast<double>(i);
                    if (labels[i] == search.rule.end && i + 1 < labels.size()) return -infinite;
                  }
                  return sum;
                }),
                result);
      for (auto const& h : result.hypotheses)
        CHECK(h.stop == (!h.tokens.empty() && h.tokens.back() == search.rule.end ? 7 : -1));
    }
  }
}

TEST_CASE("results do not depend on the batch, the schedule or utterances beside them") {
  HashedLines lines{.tokens = {.labels = 5}, .scale = 5, .blank_logit = 2};
  auto const compare = [&](auto const& search) {
    std::vector<Utterance> utterances;
    for (std::uint64_t seed = 0; seed < 64; ++seed)
      utterances.push_back({seed, static_cast<std::int32_t>(hash_mix(seed) % 9)});
    std::vector<Result> alone;
    for (auto const& one : utterances) alone.push_back(run_one(lines, one, search));
    auto const check = [&](std::vector<Result> const& results) {
      REQUIRE(results.size() == alone.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        REQUIRE(results[i].ok());
        REQUIRE(identical(results[i], alone[i]));
        for (std::size_t h = 0; h < alone[i].hypotheses.size(); ++h)
          REQUIRE(results[i].hypotheses[h].frames == alone[i].hypotheses[h].frames);
      }
    };
    check(run(lines, utterances, search, Batched{.size = 7}));
    check(run(lines, utterances, search, Batched{.size = 64}));
    check(run(lines, utterances, search, Streaming{.size = 7}));
    check(run(lines, utterances, search, Streaming{.size = 13, .max_rows = 20}));
  };
  compare(TransducerBeam<>{.tokens = lines.tokens, .width = 4, .n_best = 3});
  compare(TransducerBeam<>{.tokens = lines.tokens, .width = 3, .order = TransducerOrder::alignment});
  compare(TransducerBeam<>::adaptive(lines.tokens, 4));
  compare(TransducerBeam<>{.tokens = lines.tokens, .width = 5, .threshold = 3});
  compare(TransducerGreedy<>{.tokens = lines.tokens});
  lines.tokens = {.labels = 4, .blank = 3, .durations = {0, 1, 2, 4}};
  compare(TransducerBeam<>{.tokens = lines.tokens, .width = 4});
  compare(TransducerBeam<>{.tokens = lines.tokens, .width = 4, .order = TransducerOrder::alignment});
  compare(TransducerGreedy<>{.tokens = lines.tokens});
}

TEST_CASE("greedy takes the best token at every step, and a wide beam finds more") {
  std::mt19937_64 random(38);
  for (int trial = 0; trial < 60; ++trial) {
    HashedLines lines{.tokens = random_tokens(random), .scale = 4};
    Utterance const utterance{random(), static_cast<std::int32_t>(random() % 8)};
    TransducerGreedy<> const search{.tokens = lines.tokens, .most_symbols = 2};
    auto const result = run_one(lines, utterance, search);
    INFO("trial " << trial);
    REQUIRE(result.ok());
    std::vector<Token> labels;
    std::vector<FrameRange> frames;
    double sum = 0;
    for (std::int32_t frame = 0, symbols = 0; frame < utterance.frames;) {
      auto const line = lines.log_probs(utterance, frame, labels);
      Token best = -1;
      for (Token token = 0; token < lines.tokens.size(); ++token) {
        if (symbols == 2 && !lines.tokens.is_blank(lines.tokens.label(token))) continue;
        if (best < 0 || line[static_cast<std::size_t>(token)] > line[static_cast<std::size_t>(best)]) best = token;
      }
      sum += line[static_cast<std::size_t>(best)];
      auto const moved = lines.tokens.frames(best);
      symbols = moved > 0 ? 0 : symbols + 1;
      if (!lines.tokens.is_blank(lines.tokens.label(best))) {
        labels.push_back(lines.tokens.label(best));
        frames.push_back({frame, std::min(frame + std::max(1, moved), utterance.frames)});
      }
      frame += moved;
    }
    auto const& h = result.hypotheses.at(0);
    CHECK(h.tokens == labels);
    CHECK(h.frames == frames);
    CHECK(h.finished);
    CHECK_THAT(h.log_prob, WithinAbs(sum, 1e-4));
    CHECK(h.log_probs.size() == labels.size());
    auto const beam = run_one(
        lines, utterance, TransducerBeam<>{.tokens = lines.tokens, .width = 30, .candidates = 30, .most_symbols = 2});
    CHECK(beam.hypotheses.at(0).log_prob >= sum - 1e-4);
  }
}

namespace {

/// A time-synchronous beam with maps, in double precision: hypotheses at a frame, the likeliest first.
std::vector<std::pair<double, std::vector<Token>>> naive_beam(HashedLines const& lines, Utterance const& utterance,
                                                              TransducerBeam<> const& options) {
  using Beam = std::map<std::vector<Token>, double>;
  auto const add = [](Beam& beam, std::vector<Token> const& labels, double log_prob) {
    auto const [at, fresh] = beam.emplace(labels, log_prob);
    auto const most = std::max(at->second, log_prob), least = std::min(at->second, log_prob);
    if (!fresh) at->second = most + std::log1p(std::exp(least - most));
  };
  auto const sorted = [](Beam const& beam) {
    std::vector<std::pair<double, std::vector<Token>>> all;
    for (auto const& [labels, log_prob] : beam) all.emplace_back(log_prob, labels);
    std::sort(all.begin(), all.end(), std::greater<>());
    return all;
  };
  auto const prune = [&](Beam const& beam, double least) {
    Beam kept;
    for (auto const& [log_prob, labels] : sorted(beam))
      if (std::ssize(kept) < options.width && log_prob > least) kept.emplace(labels, log_prob);
    return kept;
  };
  auto const best = [&](Beam const& beam) { return beam.empty() ? -infinite : sorted(beam).front().first; };
  Beam ended{{{}, 0.0}};
  for (std::int32_t frame = 0; frame < utterance.frames; ++frame) {
    auto active = ended;
    ended.clear();
    for (std::int32_t symbols = 0; !active.empty(); ++symbols) {
      Beam staying;
      for (auto const& [labels, log_prob] : active) {
        auto const line = lines.log_probs(utterance, frame, labels);
        auto const blank = line[static_cast<std::size_t>(lines.tokens.blank)];
        add(ended, labels, log_prob + blank);
        if (symbols == options.most_symbols) continue;
        std::vector<std::pair<double, Token>> candidates;
        for (Token label = 0; label < lines.tokens.labels; ++label)
          if (label != lines.tokens.blank) candidates.emplace_back(line[static_cast<std::size_t>(label)], label);
        std::sort(candidates.begin(), candidates.end(), std::greater<>());
        auto const top = std::max(blank, candidates.front().first);
        candidates.resize(static_cast<std::size_t>(options.candidates));
        for (auto const& [score, label] : candidates) {
          if (score < top - options.within) continue;
          auto longer = labels;
          longer.push_back(label);
          add(staying, longer, log_prob + score);
        }
      }
      ended = prune(ended, best(ended) - options.threshold);
      auto bar = best(ended) - options.threshold;
      if (std::ssize(ended) == options.width) bar = std::max(bar, sorted(ended).back().first);
      staying = prune(staying, bar);
      active = prune(staying, best(staying) - options.threshold);
    }
  }
  return sorted(ended);
}

}  // namespace

TEST_CASE("a narrow beam keeps what a naive one keeps") {
  std::mt19937_64 random(39);
  for (int trial = 0; trial < 60; ++trial) {
    HashedLines lines{.tokens = {.labels = 7, .blank = static_cast<Token>(random() % 7)}, .scale = 5, .blank_logit = 1};
    Utterance const utterance{random(), 1 + static_cast<std::int32_t>(random() % 8)};
    TransducerBeam<> search{.tokens = lines.tokens, .width = 1 + static_cast<std::int32_t>(random() % 5)};
    search.n_best = search.width, search.candidates = 1 + static_cast<std::int32_t>(random() % 4);
    search.most_symbols = 1 + static_cast<std::int32_t>(random() % 3);
    if (trial % 3 == 1) search.threshold = 2.5;
    if (trial % 3 == 2) search.within = 1.5;
    INFO("trial " << trial << ", width " << search.width << ", candidates " << search.candidates);
    auto const expected = naive_beam(lines, utterance, search);
    auto const result = run_one(lines, utterance, search);
    REQUIRE(result.hypotheses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(result.hypotheses[i].tokens == expected[i].second);
      CHECK_THAT(result.hypotheses[i].log_prob, WithinAbs(expected[i].first, 1e-4));
    }
  }
}

TEST_CASE("long utterances, in which outputs that are not needed are dropped, keep what a naive beam keeps") {
  HashedLines const lines{.tokens = {.labels = 4}, .scale = 4, .context = 2, .blank_logit = 1};
  TransducerBeam<> search{.tokens = lines.tokens, .width = 3, .n_best = 3, .candidates = 3, .most_symbols = 2};
  Utterance const utterance{3, 3000};
  auto const expected = naive_beam(lines, utterance, search);
  auto const result = run_one(lines, utterance, search);
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const& h = result.hypotheses[i];
    CHECK(h.tokens == expected[i].second);
    CHECK_THAT(h.log_prob, WithinAbs(expected[i].first, 1e-2));
    CHECK(h.tokens.size() > 500);
    for (std::size_t n = 0; n < h.tokens.size(); ++n) {  // where the alignment says, the model says so
      auto const line = lines.log_probs(utterance, h.frames[n].begin, std::span(h.tokens).first(n));
      REQUIRE_THAT(h.log_probs[n], WithinAbs(line[static_cast<std::size_t>(h.tokens[n])], 1e-5));
    }
  }
}

TEST_CASE("a tree of outputs keeps what is needed, and its children, when the rest is dropped") {
  std::mt19937_64 random(43);
  using Tree = detail::LabelTree<detail::LabelData<NoRule>>;
  for (int trial = 0; trial < 50; ++trial) {
    Tree tree;
    tree.clear({});
    std::vector<std::vector<Token>> texts{{}};  // [node]
    auto const grow = [&] {
      auto const parent = static_cast<Tree::Node>(random() % texts.size());
      auto const label = static_cast<Token>(random() % 5);
      if (tree.find(parent, label) != Tree::none) return;
      auto text = texts[static_cast<std::size_t>(parent)];
      text.push_back(label);
      CHECK(tree.add(parent, label, {.rule = {}, .text = static_cast<std::int32_t>(random() % 9)}) ==
            static_cast<Tree::Node>(texts.size()));
      texts.push_back(std::move(text));
    };
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 40; ++i) grow();
      std::vector<Tree::Node> kept;
      for (int i = 0; i < 6; ++i) kept.push_back(static_cast<Tree::Node>(random() % texts.size()));
      auto const before = kept;
      auto const old = texts;
      std::map<std::vector<Token>, std::int32_t> data;
      for (std::size_t node = 0; node < texts.size(); ++node)
        data[texts[node]] = tree.data(static_cast<Tree::Node>(node)).text;
      tree.collect(kept);
      texts.clear();
      for (auto const& text : old) {  // what begins a text that is kept; order stays
        auto const needed = std::any_of(before.begin(), before.end(), [&](Tree::Node node) {
          auto const& whole = old[static_cast<std::size_t>(node)];
          return whole.size() >= text.size() && std::equal(text.begin(), text.end(), whole.begin());
        });
        if (needed) texts.push_back(text);
      }
      for (std::size_t i = 0; i < kept.size(); ++i)
        REQUIRE(texts.at(static_cast<std::size_t>(kept[i])) == old[static_cast<std::size_t>(before[i])]);
      std::vector<Token> spelt;
      for (std::size_t node = 0; node < texts.size(); ++node) {
        auto const its = static_cast<Tree::Node>(node);
        tree.spell(its, spelt);
        REQUIRE(spelt == texts[node]);
        REQUIRE(tree.data(its).text == data.at(spelt));
        for (Token label = 0; label < 5; ++label) {
          auto child = texts[node];
          child.push_back(label);
          auto const at = std::find(texts.begin(), texts.end(), child);
          REQUIRE(tree.find(its, label) ==
                  (at == texts.end() ? Tree::none : static_cast<Tree::Node>(at - texts.begin())));
        }
      }
    }
  }
}

TEST_CASE("what is settled of a transducer's output grows, and is what the results begin with") {
  HashedLines lines{.tokens = {.labels = 5}, .scale = 8, .blank_logit = 2};
  Model_ model{HashedNetwork(lines)};
  Decoder decoder(model, TransducerBeam<>{.tokens = lines.tokens, .width = 3, .n_best = 3}, Batched{.size = 1});
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto const id = decoder.submit({.source = {seed, 12}});
    std::vector<Token> settled, before;
    Result result;
    while (decoder.step() && !decoder.poll(result)) {
      decoder.settled(
          [](std::uint64_t) { return true; },
          [&](std::uint64_t, std::span<Token const> tokens) { settled.assign(tokens.begin(), tokens.end()); });
      REQUIRE(settled.size() >= before.size());
      REQUIRE(std::equal(before.begin(), before.end(), settled.begin()));
      before = settled;
      most = std::max(most, settled.size());
    }
    if (result.id != id) REQUIRE(decoder.poll(result));
    REQUIRE(result.hypotheses.size() == 3);
    for (auto const& h : result.hypotheses) {
      REQUIRE(h.tokens.size() >= before.size());
      CHECK(std::equal(before.begin(), before.end(), h.tokens.begin()));
    }
  }
  CHECK(most > 2);
}

TEST_CASE("one call of predict and one of join a step, for the labels of all utterances") {
  HashedLines lines{.tokens = {.labels = 6}, .scale = 4, .blank_logit = 3};
  Model_ model{HashedNetwork(lines)};
  using Search_ = TransducerBeam<>;
  std::vector<Request<Utterance, Search_>> requests;
  for (std::uint64_t seed = 0; seed < 32; ++seed) requests.push_back({.source = {seed, 6}});
  Decoder decoder(model, Search_{.tokens = lines.tokens, .width = 4}, Batched{.size = 32});
  for (auto& request : requests) decoder.submit(std::move(request));
  while (decoder.step()) {
  }
  auto const& network = model.network();
  auto const statistics = decoder.statistics();
  CHECK(network.joins == statistics.steps);
  CHECK(network.joined == statistics.rows);
  CHECK(network.predictions <= statistics.steps + 1);
  CHECK(network.predicted < network.joined);
}

TEST_CASE("ends of transducers that are none") {
  HashedLines lines{.tokens = {.labels = 3}, .scale = 4};
  auto const failed = [&](auto const& search, std::string const& part) {
    auto const result = run_one(lines, {1, 3}, search);
    CHECK(result.failure == Failure::no_token_left);
    INFO(result.message);
    CHECK(result.message.find(part) != std::string::npos);
  };
  SECTION("a model that never says blank") {
    lines.no_blank = true;
    failed(TransducerBeam<>{.tokens = lines.tokens, .most_symbols = 4}, "frame 0:");
    failed(TransducerBeam<>{.tokens = lines.tokens, .order = TransducerOrder::alignment}, "blank");
    failed(TransducerGreedy<>{.tokens = lines.tokens, .most_symbols = 4}, "most_symbols = 4");
  }
  SECTION("one that hardly does ends at most_symbols") {
    lines.blank_logit = -40;
    CHECK(run_one(lines, {1, 3}, TransducerBeam<>{.tokens = lines.tokens, .most_symbols = 4}).ok());
    CHECK(run_one(lines, {1, 3}, TransducerGreedy<>{.tokens = lines.tokens, .most_symbols = 4})
              .hypotheses.at(0)
              .tokens.size() == 12);
  }
  SECTION("no frames") {
    for (auto const& result : {run_one(lines, {1, 0}, TransducerBeam<>{.tokens = lines.tokens}),
                               run_one(lines, {1, 0}, TransducerGreedy<>{.tokens = lines.tokens})}) {
      REQUIRE(result.ok());
      REQUIRE(result.hypotheses.size() == 1);
      CHECK(result.hypotheses[0].tokens.empty());
      CHECK(result.hypotheses[0].finished);
      CHECK(result.hypotheses[0].log_prob == 0);
    }
  }
  SECTION("an encoder that fails for one utterance") {
    auto const results =
        run(lines, {{1, 3}, {HashedNetwork::refused, 3}, {2, 3}}, TransducerBeam<>{.tokens = lines.tokens});
    CHECK(results[0].ok());
    CHECK(results[1].failure == Failure::source);
    CHECK(results[2].ok());
  }
  SECTION("a search that is not over frames") {
    Model_ model{HashedNetwork(lines)};
    auto const results =
        decode(model, std::vector<Request<Utterance, Greedy>>{{.source = {1, 3}}}, Greedy{.length = {.max = 100}});
    CHECK(results.at(0).failure == Failure::model);
    CHECK(results.at(0).message.find("TransducerBeam") != std::string::npos);
  }
}

TEST_CASE("what the tokens of transducers mean") {
  TransducerTokens const rnnt{.labels = 4, .blank = 1};
  CHECK(rnnt.size() == 4);
  CHECK(rnnt.frames(1) == 1);
  CHECK(rnnt.frames(0) == 0);
  TransducerTokens const tdt{.labels = 4, .blank = 3, .durations = {0, 1, 4}};
  CHECK(tdt.size() == 12);
  CHECK(tdt.label(9) == 1);
  CHECK(tdt.frames(9) == 4);
  CHECK(tdt.frames(3) == 0);
  CHECK(tdt.frames(6) == 1);
  CHECK(tdt.is_blank(tdt.label(7)));
  CHECK(tdt.most_frames() == 4);
  CHECK(tdt.blanks() == std::vector<Token>{7, 11});
  TransducerTokens const multi{.labels = 5, .blank = 0, .big_blanks = {{.token = 4, .frames = 3}}};
  CHECK(multi.frames(4) == 3);
  CHECK(multi.frames(0) == 1);
  CHECK(multi.most_frames() == 3);
  CHECK(multi.blanks() == std::vector<Token>{0, 4});
  CHECK(multi.outputs().never == std::vector<Token>{4});
  CHECK(multi.outputs().size == 5);
  CHECK(multi.outputs().eos == std::vector<Token>{0});
  TransducerTokens const moving{.labels = 2, .label_frames = 1};
  CHECK(moving.frames(1) == 1);
}

TEST_CASE("a search has the tokens of its model, and refuses others") {
  TransducerTokens const tokens{.labels = 4, .blank = 1, .big_blanks = {{.token = 2, .frames = 3}}, .label_frames = 1};
  HashedLines const lines{.tokens = tokens};
  Utterance const utterance{3, 6};
  using Search_ = TransducerBeam<>;
  CHECK(identical(run_one(lines, utterance, Search_{.width = 3}),
                  run_one(lines, utterance, Search_{.tokens = tokens, .width = 3})));
  CHECK(identical(run_one(lines, utterance, TransducerGreedy<>{}),
                  run_one(lines, utterance, TransducerGreedy<>{.tokens = tokens})));
  auto const differ = [&](auto change, std::string const& message) {
    auto other = tokens;
    change(other);
    Model_ model{HashedNetwork(lines)};
    CHECK_THROWS_WITH((Decoder(model, Search_{.tokens = other})), message);
    CHECK_THROWS_WITH((Decoder(model, TransducerGreedy<>{.tokens = other})), message);
    Request<Utterance, Search_> const own{.source = utterance, .search = Search_{.tokens = other}};
    auto const results = decode(model, std::vector{own, {.source = utterance, .search = Search_{}}}, Search_{});
    CHECK(results[0].failure == Failure::bad_request);
    CHECK(results[0].message == message);
    CHECK(results[1].ok());
  };
  std::string const rest = ": leave the search's tokens out, or use model.tokens()";
  differ([](auto& one) { one.labels = 5; }, "sluice: tokens.labels = 5: that of the model is 4" + rest);
  differ([](auto& one) { one.blank = 0; }, "sluice: tokens.blank = 0: that of the model is 1" + rest);
  differ([](auto& one) { one.label_frames = 0; }, "sluice: tokens.label_frames = 0: that of the model is 1" + rest);
  differ([](auto& one) { one.big_blanks[0].frames = 2; },
         "sluice: tokens.big_blanks = 1 of them: are not those of the model" + rest);
  differ(
      [](auto& one) {
        one.durations = {0, 1};
      },
      "sluice: tokens.durations = 2 of them: are not those of the model" + rest);
}

TEST_CASE("options and requests that a search over a transducer refuses") {
  TransducerTokens const tokens{.labels = 3};
  auto const refused = [](auto const& value, std::string const& part) {
    try {
      value.check();
      FAIL("not refused: " << part);
    } catch (std::invalid_argument const& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(part) != std::string::npos);
    }
  };
  refused(TransducerTokens{}, "tokens.labels = 0");
  refused(TransducerTokens{.labels = 3, .blank = 3}, "tokens.blank = 3");
  refused(TransducerTokens{.labels = 3, .durations = {0}}, "tokens.durations");
  refused(TransducerTokens{.labels = 3, .durations = {-1, 2}}, "tokens.durations = -1");
  refused(TransducerTokens{.labels = 3, .durations = {0, 1}, .label_frames = 1}, "tokens.durations");
  refused(TransducerTokens{.labels = 3, .big_blanks = {{.token = 0}}}, "tokens.big_blanks = 0");
  refused(TransducerTokens{.labels = 3, .big_blanks = {{.token = 1, .frames = 0}}}, "tokens.big_blanks = 0");
  refused(TransducerTokens{.labels = 3, .label_frames = -1}, "tokens.label_frames = -1");
  refused(TransducerTokens{.labels = 3, .big_blanks = {{.token = 1}, {.token = 1}}},
          "tokens.big_blanks = 1: is listed more than once");
  refused(TransducerTokens{.labels = 3, .big_blanks = {{.token = 1, .frames = 2}, {.token = 1, .frames = 3}}},
          "tokens.big_blanks = 1: is listed more than once");
  refused(TransducerTokens{.labels = 3, .big_blanks = {{.token = 1, .frames = 2147483647}}},
          "tokens.big_blanks = 2147483647");
  refused(TransducerTokens{.labels = 3, .durations = {0, 2147483647}}, "tokens.durations = 2147483647");
  refused(TransducerTokens{.labels = 3, .label_frames = 2147483647}, "tokens.label_frames = 2147483647");
  refused(TransducerTokens{.labels = 2147483647, .durations = {0, 1}}, "tokens.durations = 2");
  refused(TransducerBeam<>{.tokens = tokens, .width = 2147483647}, "width = 2147483647");
  refused(TransducerBeam<NoRule, FusionWeights>{.tokens = tokens, .width = 2147483647}, "width = 2147483647");
  refused(TransducerBeam<>{.tokens = tokens, .width = 0}, "width = 0");
  refused(TransducerBeam<>{.tokens = tokens, .width = 2, .n_best = 3}, "n_best = 3");
  refused(TransducerBeam<>{.tokens = tokens, .candidates = -1}, "candidates = -1");
  refused(TransducerBeam<>{.tokens = tokens, .most_symbols = 0}, "most_symbols = 0");
  refused(TransducerBeam<>{.tokens = tokens, .most_labels = -1}, "most_labels = -1");
  refused(TransducerBeam<>{.tokens = tokens, .threshold = 0}, "threshold");
  refused(TransducerBeam<>{.tokens = tokens, .within = -1}, "within");
  refused(TransducerBeam<>{.tokens = tokens, .endpoint = {.silence = -1}}, "endpoint.silence = -1");
  refused(TransducerBeam<>{.tokens = tokens, .order = TransducerOrder::alignment, .endpoint = {.longest = 9}},
          "TransducerOrder::frames");
  refused(TransducerGreedy<>{.tokens = tokens, .endpoint = {.longest = -1}}, "endpoint.longest = -1");
  refused(TransducerBeam<NoRule, FusionWeights>{.tokens = tokens, .language_model = {.weight = -1}}, "weight = -1");
  refused(TransducerGreedy<NoRule, FusionWeights>{.tokens = tokens, .language_model = {.weight = -1}}, "weight = -1");
  refused(TransducerBeam<>{}, "tokens.labels = 0");
  refused(TransducerGreedy<>{.tokens = tokens, .most_symbols = 0}, "most_symbols = 0");
  refused(TransducerGreedy<>{.tokens = tokens, .candidates = 0}, "candidates = 0");

  HashedLines const lines{.tokens = tokens};
  Model_ model{HashedNetwork(lines)};
  using Search_ = TransducerBeam<>;
  auto const request = [&](Request<Utterance, Search_> one, Search_ const& search) {
    one.source = {1, 2};
    return decode(model, std::vector{one}, search).at(0).message;
  };
  CHECK(request({.prompt = {0, 1}}, {.tokens = tokens}).find("prompt") != std::string::npos);
  CHECK(request({.prefix = {1}}, {.tokens = tokens}).find("prefix") != std::string::npos);
  CHECK(request({.confidence = {.entropy = true}}, {.tokens = tokens}).find("confidence = asked for") !=
        std::string::npos);
  TransducerBeam<NoRule, NGramModel<>> const few{.tokens = tokens, .language_model = NGramModel<>(table(), {0})};
  CHECK(run_one(lines, {1, 2}, few).message.find("words.size() = 1") != std::string::npos);
}
