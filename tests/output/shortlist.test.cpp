// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/hidden_model.hpp>
#include <support/output_layer.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int32_t size = 150;

static_assert(Expander<ShortlistProjection, Hidden<float>>);

template <class S>
using Requests = std::vector<Request<std::uint64_t, S>>;

/// Requests with shortlists of many sizes, every fourth without one, some with a prefix from outside.
template <class S>
Requests<S> random_requests(std::uint64_t seed, std::size_t count, bool prefixes = true) {
  std::mt19937_64 random(seed);
  Requests<S> requests;
  for (std::size_t i = 0; i < count; ++i) {
    auto& request = requests.emplace_back();
    request.source = seed * 100 + i, request.seed = i;
    if (i % 4 != 3) {
      request.shortlist.emplace();
      for (auto k = 2 + below(random, i % 3 == 0 ? 5 : 60); k > 0; --k)
        request.shortlist->insert(static_cast<Token>(3 + below(random, size - 3)));
      if (i % 5 == 0) request.shortlist->insert(std::vector<Token>{pad, bos, eos});
    }
    if (prefixes && i % 3 == 1)
      for (auto k = 1 + below(random, 3); k > 0; --k)
        request.prefix.push_back(static_cast<Token>(3 + below(random, size - 3)));
  }
  return requests;
}

/// Calls f with searches of every kind.
void for_all_searches(auto&& f) {
  LengthLimits const length{.max = 12};
  f(Greedy{.length = length});
  f(BeamSearch{.width = 4, .n_best = 4, .length = length});
  f(BeamSearch{.width = 3, .n_best = 3, .length = {.min = 3, .max = 12}, .stage = Stage::before_softmax});
  f(DiverseBeamSearch{.search = {.width = 2, .n_best = 2, .length = length}, .groups = 2, .n_best = 3});
  f(StochasticBeam{.width = 3, .length = length});
  f(Sample{.samples = 3, .length = length});
  f(Sample{.top_k = 4, .top_p = 0.9f, .samples = 2, .length = length});
}

template <class S>
void check_outputs(std::vector<Result> const& results, Requests<S> const& requests) {
  REQUIRE(results.size() == requests.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("request " << i << ": " << results[i].message);
    REQUIRE(results[i].ok());
    REQUIRE_FALSE(results[i].hypotheses.empty());
    auto const& prefix = requests[i].prefix;
    for (auto const& h : results[i].hypotheses) {
      INFO(text(h.tokens));
      REQUIRE(h.tokens.size() >= prefix.size());
      CHECK(std::equal(prefix.begin(), prefix.end(), h.tokens.begin()));
      auto const foreign = std::ranges::count_if(h.tokens, [&](Token t) {
        return t != eos && std::ranges::find(prefix, t) == prefix.end() && requests[i].shortlist &&
               !requests[i].shortlist->contains(t);
      });
      CHECK(foreign == 0);
      CHECK(std::ranges::count_if(h.tokens, [](Token t) { return t == pad || t == bos; }) == 0);
      CHECK(std::isfinite(h.log_prob));
      for (auto const x : h.log_probs) CHECK(std::isfinite(x));
    }
  }
}

void check_identical(std::vector<Result> const& a, std::vector<Result> const& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("request " << i);
    CHECK(identical(a[i], b[i]));
  }
}

std::string complaint(auto&& make) {
  try {
    make();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "none";
}

Table const table{.size = size, .scale = 7, .eos_bias = -1, .eos_slope = 0.3};

}  // namespace

TEST_CASE("an output never leaves its shortlist, in any batch", "[shortlist]") {
  for_all_searches([](auto const& search) {
    using S = std::remove_cvref_t<decltype(search)>;
    auto const requests = random_requests<S>(1, 24);
    TableModel<> model(table);
    auto const results = decode(model, requests, search, Batched{.size = 5});
    check_outputs(results, requests);
    check_identical(results, decode(model, requests, search, Batched{.size = 1}));
    check_identical(results, decode(model, requests, search, Batched{.size = 100}));
    check_identical(results, decode(model, requests, search, Streaming{.size = 7, .refill_below = 1}));

    OutputLayer const layer(2, size, 8);
    HiddenModel<> vectors(size, 8);
    auto const hidden = decode(vectors, requests, search, Batched{.size = 5}, layer.dense());
    check_outputs(hidden, requests);
    check_identical(hidden, decode(vectors, requests, search, Batched{.size = 1}, layer.dense()));

    ShortlistProjection const projection(layer.view(), layer.bias);
    auto const listed = decode(vectors, requests, search, Batched{.size = 5}, projection);
    check_outputs(listed, requests);
    check_identical(listed, decode(vectors, requests, search, Batched{.size = 1}, projection));
    check_identical(listed, decode(vectors, requests, search, Batched{.size = 100}, projection));
    check_identical(listed, decode(vectors, requests, search, Streaming{.size = 7, .refill_below = 1}, projection));
  });
}

TEST_CASE("a shortlist_projection gives what a dense_projection gives", "[shortlist]") {
  for_all_searches([](auto const& search) {
    using S = std::remove_cvref_t<decltype(search)>;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      OutputLayer const layer(seed, size, 8);
      HiddenModel<> model(size, 8);
      auto const requests = random_requests<S>(seed, 20);
      auto const dense = decode(model, requests, search, Batched{.size = 6}, layer.dense());
      auto const listed =
          decode(model, requests, search, Batched{.size = 6}, ShortlistProjection(layer.view(), layer.bias));
      REQUIRE(dense.size() == listed.size());
      for (std::size_t i = 0; i < dense.size(); ++i) {
        INFO("seed " << seed << ", request " << i);
        REQUIRE(dense[i].hypotheses.size() == listed[i].hypotheses.size());
        for (std::size_t j = 0; j < dense[i].hypotheses.size(); ++j) {
          CHECK(dense[i].hypotheses[j].tokens == listed[i].hypotheses[j].tokens);
          CHECK_THAT(listed[i].hypotheses[j].log_prob, WithinAbs(dense[i].hypotheses[j].log_prob, 1e-5));
        }
        if (!requests[i].shortlist) CHECK(identical(dense[i], listed[i]));
      }
    }
  });
}

TEST_CASE("greedy decoding with a shortlist takes the best token that is allowed", "[shortlist]") {
  auto const requests = random_requests<Greedy>(5, 40, false);
  TableModel<> model(table);
  auto const results = decode(model, requests, Greedy{.length = {.max = 10}}, Batched{.size = 7});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<Token> expected;
    std::vector<double> line(size);
    while (expected.size() < 10 && (expected.empty() || expected.back() != eos)) {
      table.logits(requests[i].source, expected, line);
      Token best = eos;
      for (Token v = eos; v < size; ++v)
        if ((!requests[i].shortlist || requests[i].shortlist->contains(v)) &&
            line[static_cast<std::size_t>(v)] > line[static_cast<std::size_t>(best)])
          best = v;
      expected.push_back(best);
    }
    INFO("request " << i);
    REQUIRE(results[i].ok());
    CHECK(results[i].hypotheses.at(0).tokens == expected);
  }
}

TEST_CASE("a shortlist of everything changes nothing", "[shortlist]") {
  for_all_searches([](auto const& search) {
    using S = std::remove_cvref_t<decltype(search)>;
    auto requests = random_requests<S>(7, 12);
    for (auto& request : requests) request.shortlist.reset();
    TableModel<> model(table);
    OutputLayer const layer(3, size, 8);
    HiddenModel<> vectors(size, 8);
    ShortlistProjection const projection(layer.view(), layer.bias, 1);
    auto const free = decode(model, requests, search);
    auto const hidden = decode(vectors, requests, search, Batched{}, projection);
    for (auto& request : requests) {
      request.shortlist.emplace(size);
      for (Token v = 0; v < size; ++v) request.shortlist->insert(v);
    }
    check_identical(decode(model, requests, search), free);
    check_identical(decode(vectors, requests, search, Batched{}, projection), hidden);
  });
}

TEST_CASE("a forced prefix is scored as the same tokens are when they are chosen", "[shortlist]") {
  auto const check = [](auto const& search) {
    using S = std::remove_cvref_t<decltype(search)>;
    auto requests = random_requests<S>(9, 20, false);
    TableModel<> model(table);
    auto const chosen = decode(model, requests, search);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto const& tokens = chosen[i].hypotheses.at(0).tokens;
      requests[i].prefix.assign(tokens.begin(), tokens.begin() + std::min(std::ssize(tokens) - 1, std::ptrdiff_t{2}));
    }
    auto const forced = decode(model, requests, search);
    auto worst = 0.0;
    for (std::size_t i = 0; i < requests.size(); ++i)
      for (std::size_t t = 0; t < requests[i].prefix.size(); ++t)
        worst = std::max(worst, std::abs(static_cast<double>(chosen[i].hypotheses[0].log_probs[t]) -
                                         static_cast<double>(forced[i].hypotheses.at(0).log_probs[t])));
    CHECK(worst < 1e-5);
  };
  LengthLimits const length{.max = 12};
  check(Greedy{.length = length});
  check(Sample{.length = length});
  check(BeamSearch{.width = 4, .length = length});
  check(BeamSearch{.width = 4, .length = length, .stage = Stage::before_softmax});
}

TEST_CASE("a shortlist saves work under every search", "[shortlist]") {
  for_all_searches([](auto const& search) {
    using S = std::remove_cvref_t<decltype(search)>;
    OutputLayer const layer(4, size, 8);
    HiddenModel<> model(size, 8);
    Decoder<HiddenModel<>, S, Batched, ShortlistProjection> decoder(model, search, {},
                                                                    ShortlistProjection(layer.view(), layer.bias));
    Request<std::uint64_t, S> request{.source = 3};
    request.shortlist.emplace();
    for (Token v = 3; v < 20; ++v) request.shortlist->insert(v);
    decoder.submit(request);
    while (decoder.step()) {
    }
    auto const& seen = decoder.expander().statistics();
    INFO(__PRETTY_FUNCTION__ << ": " << seen.full << " of " << seen.unions << " steps were projected in full");
    CHECK(seen.unions > 0);
    CHECK(seen.full == 0);
  });
}

TEST_CASE("a shortlist that makes no sense fails its request alone", "[shortlist]") {
  for_all_searches([](auto const& search) {
    using S = std::remove_cvref_t<decltype(search)>;
    auto requests = random_requests<S>(11, 8);
    TableModel<> model(table);
    auto const expected = decode(model, requests, search);
    requests[1].shortlist.emplace();      // empty
    requests[2].shortlist.emplace(size);  // empty, too
    requests[4].shortlist.emplace(), requests[4].shortlist->insert(size);
    requests[5].shortlist.emplace(), requests[5].shortlist->insert(std::vector<Token>{5, 100000});
    auto const results = decode(model, requests, search, Batched{.size = 3});
    for (std::size_t const i : {1u, 2u, 4u, 5u}) {
      CHECK(results[i].failure == Failure::bad_request);
      CHECK(results[i].hypotheses.empty());
      CHECK(results[i].message.find("shortlist") != std::string::npos);
    }
    CHECK(results[4].message.find("shortlist = 150") != std::string::npos);
    CHECK(results[5].message.find("shortlist = 100000") != std::string::npos);
    for (std::size_t const i : {0u, 3u, 6u, 7u}) CHECK(identical(results[i], expected[i]));
  });
  TableModel<> model(table);
  Requests<Greedy> erased(1);
  erased[0].shortlist.emplace(), erased[0].shortlist->insert(140), erased[0].shortlist->erase(140);
  CHECK(decode(model, erased, Greedy{})[0].failure == Failure::bad_request);
  erased[0].shortlist->insert(5000), erased[0].shortlist->erase(5000), erased[0].shortlist->insert(149);
  CHECK(decode(model, erased, Greedy{.length = {.max = 4}})[0].ok());  // its size is not what counts
}

TEST_CASE("a token_set holds what was put in, and grows", "[shortlist]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    TokenSet tokens = seed % 2 == 0 ? TokenSet() : TokenSet(static_cast<std::int32_t>(below(random, 300)));
    std::set<Token> expected;
    for (int i = 0; i < 200; ++i) {
      auto const token = static_cast<Token>(below(random, seed % 5 == 0 ? 100000 : 500));
      if (below(random, 3) == 0) tokens.erase(token), expected.erase(token);
      else tokens.insert(token), expected.insert(token);
    }
    for (Token t = -200; t < 101000; ++t)
      if (tokens.contains(t) != expected.contains(t)) REQUIRE(tokens.contains(t) == expected.contains(t));
    tokens.erase(-1), tokens.erase(std::numeric_limits<Token>::max());
    CHECK_FALSE(tokens.contains(std::numeric_limits<Token>::min()));
    auto const before = std::vector(tokens.words().begin(), tokens.words().end());
    CHECK(complaint([&] { tokens.insert(-1); }).find("TokenSet: token = -1") != std::string::npos);
    CHECK_THROWS_AS(tokens.insert(std::numeric_limits<Token>::min()), std::invalid_argument);
    CHECK(std::vector(tokens.words().begin(), tokens.words().end()) == before);
  }
}

TEST_CASE("a lexical_shortlist is the frequent tokens and the best translations", "[shortlist]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    auto const sources = static_cast<std::int32_t>(below(random, 30)),
               targets = static_cast<std::int32_t>(1 + below(random, 200));
    auto const first = static_cast<std::int32_t>(below(random, 220)),
               best = static_cast<std::int32_t>(below(random, 9));
    std::map<std::pair<Token, Token>, float> seen;
    std::vector<LexicalEntry> lines;
    for (auto i = sources > 0 ? below(random, 400) : 0; i > 0; --i) {
      LexicalEntry const e{.source = static_cast<Token>(below(random, static_cast<std::size_t>(sources))),
                           .target = static_cast<Token>(below(random, static_cast<std::size_t>(targets))),
                           .probability = static_cast<float>(below(random, 8)) / 7};
      if (seen.emplace(std::pair(e.source, e.target), e.probability).second) lines.push_back(e);
    }
    LexicalShortlist const shortlist(lines, sources, targets, first, best);
    CHECK(shortlist.vocabulary_size() == targets);
    for (int round = 0; round < 5; ++round) {
      std::vector<Token> sentence;
      for (auto i = below(random, 8); i > 0; --i) sentence.push_back(static_cast<Token>(below(random, 40)) - 3);
      auto const got = shortlist(sentence);
      for (Token t = 0; t < targets + 70; ++t) {
        auto expected = t < std::min(first, targets);
        for (auto const s : sentence) {
          auto const own = seen.find({s, t});
          if (own == seen.end()) continue;
          auto const better = std::ranges::count_if(lines, [&](LexicalEntry const& e) {
            return e.source == s && (e.probability > own->second || (e.probability == own->second && e.target < t));
          });
          expected = expected || better < best;
        }
        if (got.contains(t) != expected) REQUIRE(got.contains(t) == expected);
      }
    }
  }
}

TEST_CASE("a lexical_shortlist refuses what does not fit, by name and value", "[shortlist]") {
  auto const with = [](LexicalEntry const& e, std::int32_t sources = 5, std::int32_t targets = 6,
                       std::int32_t first = 1, std::int32_t best = 1) {
    return complaint([&] { LexicalShortlist const made(std::span(&e, 1), sources, targets, first, best); });
  };
  auto const names = [](std::string const& text, std::string const& start) {
    INFO(text << " should begin with " << start);
    CHECK(text.starts_with("sluice: LexicalShortlist: " + start));
  };
  CHECK(with({4, 5, 1}) == "none");
  CHECK(with({0, 0, 0}) == "none");
  names(with({5, 0, 0.5f}), "source token = 5");
  names(with({-1, 0, 0.5f}), "source token = -1");
  names(with({0, 6, 0.5f}), "target token = 6");
  names(with({0, -2, 0.5f}), "target token = -2");
  names(with({0, 0, 1.5f}), "probability = 1.5");
  names(with({0, 0, -0.5f}), "probability = -0.5");
  names(with({0, 0, std::nanf("")}), "probability = nan");
  names(with({0, 0, 0.5f}, -1), "source_size = -1");
  names(with({0, 0, 0.5f}, 5, -7), "target_size = -7");
  names(with({0, 0, 0.5f}, 5, 6, -1), "first = -1");
  names(with({0, 0, 0.5f}, 5, 6, 1, -3), "best = -3");
  names(with({0, 0, 0.5f}, std::numeric_limits<std::int32_t>::min()), "source_size = -2147483648");
}
