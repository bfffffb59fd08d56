// SPDX-License-Identifier: Apache-2.0
// Boosted phrases against a scan of whole outputs. Mutants that these tests notice: a boost counted twice (paid() of the
// suffix too under Matches::longest, or of a second spelling), no refund (bias() returns 0), no refund at the end (no shift
// of lines that a stop ends) or at the maximum length, edits of the suffixes in place of the deeper state's, no edits of
// probes, a phrase paid twice under `once`, a bound for ExactSearch of half the height.
#include <sluice/decode/schedule.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Text = std::vector<Token>;

struct Drawn {
  std::vector<BiasedPhrase> phrases;
  BiasOptions options;
};

Drawn draw(std::uint64_t seed, Token kinds) {
  std::mt19937_64 random(seed);
  auto const boost = [&] { return static_cast<float>(static_cast<int>(random() % 25) - 8) / 8; };
  Drawn drawn;
  drawn.options = {.per_token = boost(), .matches = random() % 2 == 0 ? Matches::all : Matches::longest};
  if (auto const kind = seed % 6; kind >= 2) {
    if (kind == 2) drawn.options.matches = Matches::first;
    if (kind >= 4) drawn.options.once = true;
    if (kind % 2 == 1) drawn.options.lead = 1 + static_cast<std::int32_t>(seed % 3);
  }
  for (auto n = 1 + random() % 5; n > 0; --n) {
    BiasedPhrase phrase;
    auto const length = 1 + random() % 4;
    auto const kind = random() % 4;
    for (auto s = 1 + random() % 2; s > 0; --s) {
      Text text;
      for (auto i = kind == 0 ? length : 1 + random() % 4; i > 0; --i)
        text.push_back(3 + static_cast<Token>(random() % static_cast<std::size_t>(kinds)));
      phrase.spellings.push_back(text);
    }
    if (kind == 0)
      for (std::size_t i = 0; i < length; ++i) phrase.token_boosts.push_back(boost());
    if (kind == 1) phrase.whole = boost();
    if (kind == 2) phrase.per_token = boost();
    drawn.phrases.push_back(phrase);
  }
  return drawn;
}

double boost_of(BiasedPhrase const& phrase, BiasOptions const& options, std::size_t tokens) {
  if (phrase.whole) return *phrase.whole;
  auto sum = 0.0;
  for (std::size_t i = 0; i < tokens; ++i)
    sum += phrase.token_boosts.empty() ? phrase.per_token.value_or(options.per_token) : phrase.token_boosts[i];
  return sum;
}

bool ends_in(Text const& text, std::size_t end, Text const& part) {
  return part.size() <= end &&
         std::equal(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(end - part.size()));
}

/// What a whole output earns; `open`: where tokens begin that a phrase may still end in.
double earned(Drawn const& drawn, Text const& text, std::size_t* open = nullptr) {
  auto sum = 0.0;
  std::vector<bool> paid(drawn.phrases.size());
  std::size_t from = 0;
  for (std::size_t end = 1; end <= text.size(); ++end) {
    Text const part(text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(end));
    std::size_t longest = 0;
    for (auto const& phrase : drawn.phrases)
      for (auto const& spelling : phrase.spellings)
        if (ends_in(part, part.size(), spelling)) longest = std::max(longest, spelling.size());
    for (std::size_t i = 0; i < drawn.phrases.size(); ++i) {
      std::size_t its = 0;
      for (auto const& spelling : drawn.phrases[i].spellings)
        if (ends_in(part, part.size(), spelling)) its = std::max(its, spelling.size());
      if (its == 0 || (drawn.options.matches != Matches::all && its != longest)) continue;
      if (!paid[i] || !drawn.options.once) sum += boost_of(drawn.phrases[i], drawn.options, its);
      paid[i] = true;
    }
    if (drawn.options.matches == Matches::first && longest > 0) from = end;
  }
  if (open != nullptr) *open = from;
  return sum;
}

/// What an output has been given for a phrase that it may be about to contain (without `once`).
double lent(Drawn const& drawn, Text const& whole) {
  std::size_t from = 0;
  earned(drawn, whole, &from);
  Text const text(whole.begin() + static_cast<std::ptrdiff_t>(from), whole.end());
  auto most = 0.0;
  for (auto const& phrase : drawn.phrases)
    for (auto const& spelling : phrase.spellings)
      for (auto n = 1 + static_cast<std::size_t>(drawn.options.lead); n < spelling.size(); ++n)
        if (ends_in(text, text.size(), Text(spelling.begin(), spelling.begin() + static_cast<std::ptrdiff_t>(n))))
          most = std::max(most, phrase.whole
                                    ? *phrase.whole * static_cast<double>(n) / static_cast<double>(spelling.size())
                                    : boost_of(phrase, drawn.options, n));
  return most;
}

/// All outputs of a table, best first.
std::vector<Sequence> best_of(Table const& table, std::uint64_t seed, Drawn const& drawn, std::int32_t maximum) {
  auto all = all_sequences(table, seed, {.maximum = maximum});
  auto const count = all.size();
  return n_best(std::move(all), count, [&](Sequence const& s) { return s.log_prob + earned(drawn, s.tokens); });
}

template <class S, class P = Batched>
std::vector<Result> decoded(Table const& table, S const& search, std::size_t sources, P const& schedule = {}) {
  std::vector<TableRequest<S>> requests;
  for (std::size_t i = 0; i < sources; ++i) requests.push_back({.source = i});
  return run(everything, table, std::move(requests), search, schedule);
}

void compare(Result const& result, std::vector<Sequence> const& expected, double margin = 2e-5) {
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const& h = result.hypotheses[i];
    CHECK(h.score == Approx(expected[i].score).margin(margin));
    auto const same = h.tokens == expected[i].tokens;
    auto const tie = (i > 0 && expected[i - 1].score - expected[i].score < margin) ||
                     (i + 1 < expected.size() && expected[i].score - expected[i + 1].score < margin);
    CHECK((same || tie));
  }
}

constexpr LengthLimits four{.max = 4};
BeamSearch wide(std::int32_t width) {
  return {.width = width, .n_best = width, .length = four, .penalty = {.kind = LengthPenalty::Kind::none}};
}

}  // namespace

TEST_CASE("a bias adds up to what a scan of the output finds", "[bias]") {
  Vocabulary const vocabulary{.size = 9, .bos = bos, .eos = {eos}};
  auto once_held = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(drawn.phrases, drawn.options);
    std::mt19937_64 random(seed + 7);
    Text text;
    auto sum = 0.0;
    Bias::State state;
    for (int i = 0; i < 12; ++i) {
      auto const last = i == 11;
      std::vector<Edit> edits{{.token = 99}};
      sum += static_cast<double>(bias.bias(state, {vocabulary, 12 - i, i == 0, last, false, false}, edits).all);
      REQUIRE(edits.front().token == 99);
      auto const token = 3 + static_cast<Token>(random() % 4);
      REQUIRE(std::count_if(edits.begin(), edits.end(), [&](Edit const& e) { return e.token == token; }) <= 1);
      for (auto const& edit : edits)
        if (edit.token == token) sum += static_cast<double>(edit.add);
      state = bias.next(state, token), text.push_back(token);
      auto const held = static_cast<double>(bias.lent(state));
      if (!drawn.options.once) REQUIRE(held == Approx(lent(drawn, text)).margin(1e-6));
      REQUIRE((held >= 0 && held <= lent(drawn, text) + 1e-6));
      once_held += drawn.options.once && held > 0 ? 1 : 0;
      REQUIRE(sum == Approx(earned(drawn, text) + (last ? 0 : held)).margin(1e-5));
    }
  }
  CHECK(once_held > 100);
}

TEST_CASE("biased beams that are wide enough find the best of all outputs", "[bias]") {
  Table const table{.size = 6, .scale = 3};
  for (std::uint64_t seed = 0; seed < 18; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(drawn.phrases, drawn.options);
    auto const expected = best_of(table, 1, drawn, 4);
    auto const width = static_cast<std::int32_t>(expected.size());
    auto const results = decoded(table, Processed<BeamSearch>(wide(width), bias), 3);
    compare(results[1], expected);
    auto const streamed = decoded(table, Processed<BeamSearch>(wide(width), bias), 3, Streaming{.size = 2});
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t n = 0; n < results[i].hypotheses.size(); ++n) {
        CHECK(streamed[i].hypotheses[n].tokens == results[i].hypotheses[n].tokens);
        CHECK(streamed[i].hypotheses[n].score == results[i].hypotheses[n].score);
      }
  }
}

TEST_CASE("bias under constraints, bans, stops, groups and narrow beams: scores are those of the outputs", "[bias]") {
  Table const table{.size = 7, .scale = 3};
  for (std::uint64_t seed = 20; seed < 32; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(drawn.phrases, drawn.options);
    auto const all = best_of(table, 2, drawn, 4);
    auto const known = [&](Result const& result) {
      REQUIRE(!result.hypotheses.empty());
      for (auto const& h : result.hypotheses) {
        auto const same = std::find_if(all.begin(), all.end(), [&](Sequence const& s) { return s.tokens == h.tokens; });
        REQUIRE(same != all.end());
        CHECK(h.log_prob == Approx(same->score).margin(2e-5));
      }
    };
    auto narrow = wide(3);
    known(decoded(table, Processed<BeamSearch>(narrow, bias), 3)[2]);
    DiverseBeamSearch const diverse{.search = narrow, .groups = 2, .penalty = 0};
    known(decoded(table, Processed<DiverseBeamSearch>(diverse, bias), 3)[2]);
    known(decoded(table, Processed(narrow, LogitsProcessorList(Forbidden(std::vector<Phrase>{{6}}), bias)), 3)[2]);

    using Constrained = ConstrainedBeamSearch<Phrases>;
    Constrained constrained{
        .beam = wide(200), .constraints = Phrases(std::vector<Phrase>{{3, 4}}), .prune_finished = Pruning::off};
    auto const met = decoded(table, Processed<Constrained>(constrained, bias), 3)[2];
    known(met);
    auto wanted = all;
    std::erase_if(wanted, [](Sequence const& s) { return !detail::contains(s.tokens, {3, 4}); });
    CHECK(met.hypotheses.front().score == Approx(wanted.front().score).margin(2e-5));

    // A stop at 5: its output is that without eos, at the log-probability of its tokens, with everything lent taken back.
    auto const stopped =
        decoded(table, Processed(narrow, LogitsProcessorList(StopSequences({.tokens = {{5}}}), bias)), 3)[2];
    for (auto const& h : stopped.hypotheses) {
      if (h.stop < 0) continue;
      std::vector<double> line(static_cast<std::size_t>(table.size));
      auto sum = earned(drawn, h.tokens);
      for (std::size_t i = 0; i < h.tokens.size(); ++i) {
        table.log_probs(2, Text(h.tokens.begin(), h.tokens.begin() + static_cast<std::ptrdiff_t>(i)), line);
        sum += line[static_cast<std::size_t>(h.tokens[i])];
      }
      CHECK(h.log_prob == Approx(sum).margin(2e-5));
    }
  }
}

TEST_CASE("what was lent is taken back at the maximum length", "[bias]") {
  auto const known = [](Table const& table, Drawn const& drawn, Result const& result, std::size_t at_least) {
    std::size_t cut = 0;
    for (auto const& h : result.hypotheses) {
      auto sum = earned(drawn, h.tokens);
      std::vector<double> line(static_cast<std::size_t>(table.size));
      for (std::size_t i = 0; i < h.tokens.size(); ++i) {
        table.log_probs(1, Text(h.tokens.begin(), h.tokens.begin() + static_cast<std::ptrdiff_t>(i)), line);
        if (h.tokens[i] != eos || i + 1 < h.tokens.size() || i < 3) sum += line[static_cast<std::size_t>(h.tokens[i])];
      }
      cut += h.tokens.size() == 4 ? 1 : 0;
      CHECK(h.log_prob == Approx(sum).margin(2e-5));
    }
    CHECK(cut >= at_least);
  };
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(drawn.phrases, drawn.options);
    Table const with{.size = 6, .scale = 3}, without{.size = 6, .scale = 3, .has_eos = false};
    auto beam = wide(5);
    known(without, drawn, decoded(without, Processed<BeamSearch>(beam, bias), 2)[1], 5);
    beam.at_maximum = AtMaximum::force_eos_free;  // its fourth token is an end that costs nothing
    known(with, drawn, decoded(with, Processed<BeamSearch>(beam, bias), 2)[1], 1);
    known(without, drawn, decoded(without, Processed<Greedy>({.length = four}, bias), 2)[1], 1);
  }
}

TEST_CASE("exact search under a bias finds the best of all outputs", "[bias]") {
  Table const table{.size = 6, .scale = 3};
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    auto drawn = draw(seed, 3);
    drawn.options.per_token *= 6;  // more than what the model says: a bound that is too low loses the best output
    for (auto& phrase : drawn.phrases) {
      if (phrase.whole) *phrase.whole *= 6;
      if (phrase.per_token) *phrase.per_token *= 6;
      for (auto& boost : phrase.token_boosts) boost *= 6;
    }
    Bias const bias(drawn.phrases, drawn.options);
    for (auto const alpha : {0.0, 1.0}) {
      LengthPenalty const penalty{.alpha = alpha};
      auto expected = n_best(all_sequences(table, 1, {.maximum = 4}), 5, [&](Sequence const& s) {
        return penalty.score(s.log_prob + earned(drawn, s.tokens), static_cast<std::int32_t>(s.tokens.size()));
      });
      ExactSearch const exact{.n_best = 5, .penalty = penalty, .list = 2, .length = four};
      auto const results = decoded(table, Processed<ExactSearch>(exact, bias), 2);
      compare(results[1], expected, 1e-4);
      CHECK(results[1].bound == results[1].hypotheses.front().score);
    }
  }
}

TEST_CASE("exact search bears with an output that is paid for its last token only", "[bias]") {
  Table const table{.size = 6, .scale = 3, .has_eos = false};  // so no token is left that nothing is paid for
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const all =
        n_best(all_sequences(table, seed, {.maximum = 4}), 10000, [](Sequence const& s) { return s.log_prob; });
    auto const* const worst = &all.back();
    auto const missing = all.front().log_prob - worst->log_prob;
    BiasedPhrase const phrase{.spellings = {worst->tokens}, .whole = static_cast<float>(missing + 0.25)};
    Bias const bias({phrase}, {.lead = 3});
    TableModel<everything> model(table);
    std::vector<std::uint64_t> const sources{seed};
    auto const result = decode(model, sources, Processed<ExactSearch>({.list = 2, .length = four}, bias)).at(0);
    CHECK(result.hypotheses.at(0).tokens == worst->tokens);
    CHECK(result.hypotheses.at(0).score == Approx(all.front().log_prob + 0.25).margin(1e-4));
  }
}

TEST_CASE("a stop by proof is refused under phrases, and exact search without a maximum", "[bias]") {
  Bias const bias({{.spellings = {{3, 4}}}});
  auto beam = wide(3);
  beam.early_stopping.rule = EarlyStopping::Rule::exact;
  auto const refused = decoded(Table{.size = 6}, Processed<BeamSearch>(beam, bias), 1)[0];
  CHECK(refused.failure == Failure::bad_request);
  CHECK(refused.message.find("early_stopping.rule = exact: proves its result by") != std::string::npos);
  CHECK(decoded(Table{.size = 6}, Processed<BeamSearch>(beam, Bias()), 1)[0].failure == Failure::none);
}

// The scores are those of sherpa-onnx's context-graph-test.cc (Apache-2.0), for its phrases and queries. It gives tokens
// of beginnings that phrases share the larger score, so the scores of tokens are given one by one here.
TEST_CASE("phrases and queries of sherpa-onnx score as there", "[bias]") {
  std::vector<std::string> const names{"S", "HE", "SHE", "SHELL", "HIS", "HERS", "HELLO", "THIS", "THEM"};
  std::vector<std::string> const queries{"HEHERSHE", "HERSHE", "HISHE",   "SHED", "SHELF",
                                         "HELL",     "HELLO",  "DHRHISQ", "THEN"};
  auto const text = [](std::string const& name) { return Text(name.begin(), name.end()); };
  auto const score = [&](float whole, Matches matches, std::string const& query) {
    std::vector<BiasedPhrase> phrases;
    for (auto const& name : names) {
      auto& phrase = phrases.emplace_back();
      phrase.spellings = {text(name)};
      for (std::size_t n = 1; n <= name.size(); ++n) {
        auto most = whole == 0 ? 1.0f : 0.0f;
        for (auto const& other : names)
          if (whole != 0 && other.compare(0, n, name, 0, n) == 0)
            most = std::max(most, std::round(whole / static_cast<float>(other.size()) * 100) / 100);
        phrase.token_boosts.push_back(most);
      }
    }
    detail::ContextGraph const graph(phrases, {.matches = matches});
    auto state = detail::ContextGraph::root;
    auto sum = 0.0;
    for (auto const token : text(query)) {
      auto const arrived = graph.arrive(state, token);
      sum += static_cast<double>(graph.paid(arrived) + graph.credit(graph.settle(arrived)) - graph.credit(state));
      state = graph.settle(arrived);
    }
    return sum - static_cast<double>(graph.credit(state));
  };
  auto const compare_all = [&](float whole, Matches matches, std::vector<double> const& expected) {
    for (std::size_t i = 0; i < queries.size(); ++i) {
      INFO(queries[i]);
      CHECK(score(whole, matches, queries[i]) == Approx(expected[i]).margin(1e-4));
    }
  };
  compare_all(0, Matches::all, {14, 12, 9, 6, 6, 2, 7, 4, 2});
  compare_all(0, Matches::first, {7, 5, 5, 3, 3, 2, 2, 3, 2});
  compare_all(5, Matches::all, {35.84, 30.84, 24.18, 18.34, 18.34, 5, 13, 10.84, 5});
  compare_all(5, Matches::first, {20, 15, 10.84, 10, 10, 5, 5, 5.84, 5});
}

TEST_CASE("a narrow biased beam keeps what a naive one keeps", "[bias]") {
  Table const table{.size = 9, .scale = 3, .has_eos = false};  // so the beam is all there is
  for (std::uint64_t seed = 60; seed < 100; ++seed) {
    auto drawn = draw(seed, 3);
    drawn.options.once = false;
    std::vector<Sequence> beam(1);
    for (int step = 0; step < 6; ++step) {
      std::vector<Sequence> longer;
      for (auto const& one : beam) {
        std::vector<double> line(static_cast<std::size_t>(table.size));
        table.log_probs(1, one.tokens, line);
        for (Token v = 3; v < table.size; ++v) {
          longer.push_back({one.tokens, one.log_prob + line[static_cast<std::size_t>(v)]});
          longer.back().tokens.push_back(v);
        }
      }
      beam = n_best(std::move(longer), 3, [&](Sequence const& s) {
        return s.log_prob + earned(drawn, s.tokens) + (step == 5 ? 0 : lent(drawn, s.tokens));
      });
    }
    auto search = wide(3);
    search.length.max = 6;
    auto const bias = Bias(drawn.phrases, drawn.options);
    compare(decoded(table, Processed<BeamSearch>(search, bias), 2)[1], beam);
  }
}

TEST_CASE("greedy decoding and sampling under a bias, before and after the softmax", "[bias]") {
  Table const table{.size = 7, .scale = 3};
  for (std::uint64_t seed = 40; seed < 60; ++seed) {
    auto drawn = draw(seed, 3);
    drawn.options.once = false;
    Bias const bias(drawn.phrases, drawn.options);
    auto const given = [&](Text const& text) {
      return earned(drawn, text) + (text.size() == 8 ? 0 : lent(drawn, text));
    };
    auto const check = [&](std::vector<Result> const& results, bool best, bool normalised) {
      for (std::uint64_t source = 0; source < results.size(); ++source) {
        auto const& h = results[source].hypotheses.front();
        Text text;
        for (std::size_t i = 0; i < h.tokens.size(); ++i) {
          std::vector<double> line(static_cast<std::size_t>(table.size));
          table.log_probs(source, text, line);
          for (Token v = 2; v < table.size; ++v) {
            auto longer = text;
            longer.push_back(v);
            line[static_cast<std::size_t>(v)] += given(longer) - given(text);
          }
          auto sum = 0.0;
          for (auto const x : line) sum += std::exp(x);
          auto const chosen = line[static_cast<std::size_t>(h.tokens[i])];
          if (best) CHECK(chosen == Approx(*std::max_element(line.begin(), line.end())).margin(1e-5));
          CHECK(static_cast<double>(h.log_probs[i]) ==
                Approx(normalised ? chosen - std::log(sum) : chosen).margin(2e-5));
          text.push_back(h.tokens[i]);
        }
      }
    };
    check(decoded(table, Processed<Greedy>({.length = {.max = 8}}, bias), 4), true, false);
    check(decoded(table, Processed<Greedy>({.length = {.max = 8}, .stage = Stage::before_softmax}, bias), 4), true,
          true);
    check(decoded(table, Processed<Sample>({.length = {.max = 8}}, bias), 4), false, true);
  }
}

namespace {

/// Takes no shared edits: each query has its own.
struct WithoutShared {
  Expansion expand(Scores<float> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    for (auto const& query : queries) CHECK(query.shared == nullptr);
    return plain.expand(scores, queries, groups);
  }
  LogSoftmaxTopK plain;
};

}  // namespace

TEST_CASE("shared edits change nothing, under other rules and other biases too", "[bias]") {
  Table const table{.size = 40, .scale = 3};
  for (std::uint64_t seed = 400; seed < 440; ++seed) {
    Bias const bias(draw(seed, 12).phrases), other(draw(seed + 1, 12).phrases);
    auto beam = wide(4);
    beam.length.min = 2, beam.length.max = 9;
    auto const same = [&](auto const& search) {
      auto const told = [&](auto expander) {
        TableModel<everything> model(table);
        std::vector<Request<std::uint64_t, std::remove_cvref_t<decltype(search)>>> requests(2);
        requests[1].source = 1;
        std::vector<std::pair<std::vector<Token>, std::vector<float>>> all;
        for (auto const& result : decode(model, requests, search, Batched{}, expander)) {
          REQUIRE(result.hypotheses.size() == 4);
          for (auto const& h : result.hypotheses) all.emplace_back(h.tokens, h.log_probs);
        }
        return all;
      };
      CHECK(told(LogSoftmaxTopK()) == told(WithoutShared()));
    };
    Penalties const penalties{.repetition = 1.5f, .frequency = 0.25f};
    Processed<BeamSearch> const biased(beam, bias);
    same(biased);
    same(Processed(biased, penalties));
    same(Processed(Processed(beam, penalties), LogitsProcessorList(Forbidden(std::vector<Phrase>{{6}, {3, 4}}), bias)));
    same(Processed(biased, other));
    same(Processed(beam, LogitsProcessorList(bias, other)));
  }
}

TEST_CASE("guesses that are verified under a bias change nothing", "[bias]") {
  Table const table{.size = 9, .scale = 2, .order = 2};
  std::size_t rounds = 0, tokens = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const drawn = draw(seed, 3);
    Bias const bias(drawn.phrases, drawn.options);
    TableModel<everything> model(table);
    Speculated guessing(model, PromptLookup({.longest = 2, .shortest = 1}));
    std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5};
    auto const plain_ones = decode(model, sources, Processed<Greedy>({.length = {.max = 20}}, bias));
    auto const guessed =
        decode(guessing, sources, Processed<Blockwise<>>(Blockwise<>{.block = 4, .length = {.max = 20}}, bias));
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(guessed[i].hypotheses[0].tokens == plain_ones[i].hypotheses[0].tokens);
      rounds += guessed[i].hypotheses[0].blocks.size(), tokens += guessed[i].hypotheses[0].tokens.size();
    }
  }
  CHECK(rounds < tokens);  // some guesses were right
}

TEST_CASE("shared beginnings, suffixes and spellings are paid as written", "[bias]") {
  auto const paid = [](std::vector<BiasedPhrase> const& phrases, BiasOptions const& options, Text const& text) {
    detail::ContextGraph const graph(phrases, options);
    auto state = detail::ContextGraph::root;
    auto sum = 0.0f;
    for (auto const token : text) state = graph.next(state, token), sum += graph.paid(state);
    return sum;
  };
  CHECK(paid({{.spellings = {{3, 4}}}}, {}, {3, 4, 3, 3, 4}) == 4);
  CHECK(paid({{.spellings = {{3, 4}, {4}}}}, {}, {3, 4}) == 2);                   // one phrase, paid once
  CHECK(paid({{.spellings = {{3, 4}}}, {.spellings = {{4}}}}, {}, {3, 4}) == 3);  // two
  CHECK(paid({{.spellings = {{3, 4}}}, {.spellings = {{4}}}}, {.matches = Matches::longest}, {3, 4}) == 2);
  CHECK(paid({{.spellings = {{3, 4}, {3, 4}}}}, {.per_token = 2}, {3, 4}) == 4);  // the same spelling twice
  CHECK(paid({{.spellings = {{3, 4}, {5}}, .whole = 3}}, {}, {3, 4, 5}) == 6);
  CHECK(paid({}, {}, {3, 4}) == 0);
  CHECK(Bias({}).trivial());
  CHECK(detail::ContextGraph({{.spellings = {{3, 4, 5}}}, {.spellings = {{3, 4, 6}}}}).state_count() == 5);
}

TEST_CASE("what is wrong with a phrase is said", "[bias]") {
  auto const nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  auto const refused = [](std::vector<BiasedPhrase> const& phrases, std::string const& message,
                          BiasOptions const& options = {}) {
    CHECK_THROWS_MATCHES(Bias(phrases, options), std::invalid_argument, Message("sluice: " + message));
  };
  BiasedPhrase const good{.spellings = {{3}}};
  refused({good, {}}, "phrases[1].spellings = []: is empty");
  refused({good, {.spellings = {{3}, {}}}}, "phrases[1].spellings[1] = []: is empty");
  refused({{.spellings = {{3, -1}}}}, "phrases[0].spellings[0] = [3 -1]: has a negative token");
  refused({{.spellings = {{3}}, .per_token = nan}}, "phrases[0].per_token = nan: must be a number");
  refused({{.spellings = {{3}}, .whole = infinity}}, "phrases[0].whole = inf: must be a number");
  refused({{.spellings = {{3}}, .token_boosts = {-infinity}}}, "phrases[0].token_boosts = -inf: must be a number");
  refused({{.spellings = {{3, 4}}, .token_boosts = {1}}},
          "phrases[0].spellings[0] = [3 4]: needs as many tokens as token_boosts");
  refused({{.spellings = {{3}}, .per_token = 1.0f, .whole = 1.0f}},
          "phrases[0].whole = 1.000000: and per_token exclude each other");
  refused({{.spellings = {{3}}, .whole = 1.0f, .token_boosts = {1}}},
          "phrases[0].token_boosts = 1: excludes whole and per_token");
  refused({good}, "options.per_token = nan: must be a number", {.per_token = nan});
  refused({good}, "options.lead = -1: must not be negative", {.lead = -1});

  Vocabulary const vocabulary{.size = 6, .bos = bos, .eos = {eos}};
  auto const refused_there = [&](Text const& spelling, std::string const& message) {
    Bias const bias({{.spellings = {{3}, spelling}}});
    CHECK_THROWS_MATCHES(bias.initial({.vocabulary = &vocabulary}), std::invalid_argument,
                         Message("sluice: phrases[0].spellings[1] = " + message));
    CHECK(decoded(Table{.size = 6}, Processed<Greedy>({}, bias), 1)[0].failure == Failure::bad_request);
  };
  refused_there({4, 6}, "6: is outside the vocabulary of 6");
  refused_there({4, eos}, "2: is an end of sentence, which no phrase may have");
}
