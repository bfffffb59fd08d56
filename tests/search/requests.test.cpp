// SPDX-License-Identifier: Apache-2.0
// Every search beside every member of a request, and every integer option of a search at its ends. Both lists are those of docs/api.txt: a
// search, a member or an option that has no row or column here fails.
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>
#include <support/ctc_reference.hpp>
#include <support/decoding.hpp>
#include <support/hashed_transducer.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <catalogue/random_catalogue.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

// What the declarations say.

struct Member {
  std::string type, name;
};
/// The members of a type, as docs/api.txt lists them.
std::map<std::string, std::vector<Member>> const& declarations() {
  static auto const all = [] {
    std::map<std::string, std::vector<Member>> found;
    std::ifstream file(SLUICE_SOURCE_DIR "/docs/api.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kind, name, brace;
      words >> kind >> name >> brace;
      if (kind != "search" && kind != "struct" && kind != "class") continue;
      auto& members = found[(kind == "search" ? "search " : "") + name.substr(name.rfind(':') + 1)];
      if (brace != "{") continue;
      auto rest = line.substr(line.find('{') + 1);
      rest = rest.substr(0, rest.rfind('}'));
      std::istringstream parts(rest);
      for (std::string part; std::getline(parts, part, ';');) {
        while (!part.empty() && part.back() == ' ') part.pop_back();
        if (part.empty() || part.find("static ") != std::string::npos || part.find("using ") != std::string::npos)
          continue;
        auto const space = part.rfind(' ');
        members.push_back({part.substr(1, space - 1), part.substr(space + 1)});
      }
    }
    return found;
  }();
  return all;
}
/// The integers among the options of a search, those of its structs included: "width", "length.min".
std::set<std::string> integers(std::string const& type, std::string const& before = {}) {
  std::set<std::string> found;
  for (auto const& one : declarations().at(type)) {
    if (one.type == "std::int32_t" || one.type == "std::int64_t" || one.type == "Token")
      found.insert(before + one.name);
    else if (declarations().contains(one.type)) found.merge(integers(one.type, before + one.name + "."));
  }
  return found;
}

// What a decoder is made of.

/// A batch, or a stream.
struct Either {
  bool streams = false;
  Batched batch{};
  Streaming stream{};

  void adapt(Abilities const& abilities) { stream.adapt(abilities); }
  void check() const { streams ? stream.check() : batch.check(); }
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    return streams ? stream.admit(live, waiting) : batch.admit(live, waiting);
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    streams ? stream.select(live, chosen) : batch.select(live, chosen);
  }
};
std::vector<Either> const schedules{{.batch = {.size = 1}},
                                    {.batch = {.size = 4}},
                                    {.streams = true, .stream = {.size = 2, .refill_below = 1}},
                                    {.streams = true, .stream = {.size = 4, .refill_below = 1, .max_rows = 5}}};

/// What has been seen while it ran.
struct Seen {
  std::set<std::int32_t> directions;
  std::size_t traced = 0, remembered = 0;
};
struct Watching {
  LogSoftmaxTopK inner{};
  Seen* seen = nullptr;
  template <class Answer>
  Expansion expand(Answer const& answer, std::span<Query const> queries, std::span<Group const> groups) {
    for (auto const& group : groups) seen->directions.insert(group.direction);
    return inner.expand(answer, queries, groups);
  }
};
struct Tracing {
  Seen* seen = nullptr;
  void began(std::uint64_t, Sentence const& sentence) { seen->traced += sentence.traced; }
};
template <class M>
struct Remembering : M {
  using M::M;
  explicit Remembering(M model) : M(std::move(model)) {}
  Seen* seen = nullptr;
  void remember(Decoded const&) { ++seen->remembered; }
};

/// A potential that says nothing.
struct Anything {
  using State = int;
  State initial(Sentence const&) const { return 0; }
  State next(State, Token) const { return 0; }
  double log_prefix(State) const { return 0; }
  double log_final(State, bool) const { return 0; }
};

/// Does nothing, and counts the requests that it is for.
struct Begins {
  static inline int count = 0;
  struct State {};
  State initial(Sentence const&) const { return ++count, State{}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>&) const {}
};

template <class S>
struct Option {
  std::string name;
  std::function<void(S&, std::int32_t)> set;
};

/// A row of the table.
template <class M, class S>
struct Row_ {
  std::string name;
  M model;
  typename M::Source source;
  S search, other;                                // `other` has other options
  std::set<std::string> refused{};                // members
  std::vector<Token> prefix{};                    // of every request
  std::vector<Token> shortlist{5, 6}, ends{eos};  // which are no part of a shortlist
  std::vector<Option<S>> options{};

  using Request_ = Request<typename M::Source, S>;

  Request_ usual() const { return {.source = source, .prefix = prefix}; }
  /// Runs requests with this as the search of the decoder.
  std::vector<Result> run(std::vector<Request_> requests, S const& searching, Either const& schedule,
                          Seen& seen) const {
    auto remembering = Remembering<M>(model);
    remembering.seen = &seen;
    Decoder<Remembering<M>, S, Either, Watching, Tracing> decoder(remembering, searching, schedule,
                                                                  Watching{.seen = &seen}, Tracing{&seen});
    std::vector<Result> results(requests.size());
    for (auto& one : requests) decoder.submit(std::move(one));
    while (decoder.step()) {
    }
    Result result;
    while (decoder.poll(result)) results[result.id] = std::move(result);
    return results;
  }
};

/// What a member does: it is set in a request, and `holds` looks at the results.
template <class R>
using Column = std::function<void(R const&, Either const&)>;

template <class R>
std::map<std::string, Column<R>> columns() {
  using Request_ = typename R::Request_;
  /// Sets a member of one of two requests. The other is not affected; this one is refused by name, or `works`.
  auto const one_of_two = [](std::string const& member, auto set, auto works) -> Column<R> {
    return [=](R const& row, Either const& schedule) {
      Seen seen, plainly;
      auto with = row.usual();
      set(row, with);
      auto const plain = row.run({row.usual()}, row.search, schedule, plainly).at(0);
      auto const both = row.run({row.usual(), with}, row.search, schedule, seen);
      CHECK(identical(both[0], plain));
      if (row.refused.contains(member)) {
        CHECK(both[1].failure == Failure::bad_request);
        CHECK(both[1].message.find("sluice: " + member + " = ") == 0);
      } else {
        INFO(both[1].message);
        REQUIRE(both[1].ok());
        REQUIRE(!both[1].hypotheses.empty());
        works(row, plain, both[1], seen, plainly);
      }
    };
  };
  std::map<std::string, Column<R>> all;
  all["source"] = one_of_two(
      "source", [](R const&, Request_&) {},
      [](R const&, Result const& plain, Result const& with, Seen const&, Seen const&) {
        if (plain.hypotheses.size() == 1) CHECK(plain.hypotheses[0].tokens.size() > 0);
        CHECK(plain.hypotheses.size() == with.hypotheses.size());
      });
  all["prompt"] = one_of_two(
      "prompt",
      [](R const&, Request_& one) {
        one.prompt = {bos, 3, 4};
      },
      [](R const&, Result const& plain, Result const& with, Seen const&, Seen const&) {
        CHECK(plain.hypotheses[0].log_prob != with.hypotheses[0].log_prob);
      });
  all["prefix"] = one_of_two(
      "prefix", [](R const&, Request_& one) { one.prefix = {6}; },
      [](R const&, Result const&, Result const& with, Seen const&, Seen const&) {
        for (auto const& h : with.hypotheses) CHECK((!h.tokens.empty() && h.tokens[0] == 6));
      });
  all["search"] = [](R const& row, Either const& schedule) {
    Seen seen;
    auto own = row.usual();
    own.search = row.other;
    auto const mixed = row.run({row.usual(), own, row.usual()}, row.search, schedule, seen);
    auto const expected = row.run({row.usual(), row.usual(), row.usual()}, row.other, schedule, seen);
    auto const plain = row.run({row.usual(), row.usual(), row.usual()}, row.search, schedule, seen);
    CHECK(identical(mixed[0], plain[0]));
    CHECK(identical(mixed[1], expected[1]));
    CHECK(identical(mixed[2], plain[2]));
    CHECK(!identical(plain[1], expected[1]));
  };
  all["processors"] = one_of_two(
      "processors", [](R const&, Request_& one) { one.processors = Begins{}; },
      [](R const&, Result const& plain, Result const& with, Seen const&, Seen const&) {
        CHECK(std::exchange(Begins::count, 0) == 1);
        CHECK(with.hypotheses.size() == plain.hypotheses.size());
      });
  all["seed"] = [](R const& row, Either const& schedule) {
    Seen seen;
    auto seeded = row.usual();
    seeded.seed = 2;
    auto const results = row.run({seeded, row.usual(), row.usual()}, row.search, schedule, seen);
    CHECK(identical(results[0], results[2]));  // whose seed is its id
  };
  all["shortlist"] = one_of_two(
      "shortlist",
      [](R const& row, Request_& one) {
        one.shortlist = TokenSet(3);
        one.shortlist->insert(std::span<Token const>(row.shortlist));
      },
      [](R const& row, Result const& plain, Result const& with, Seen const&, Seen const&) {
        for (auto const& h : with.hypotheses)
          for (auto const token : h.tokens)
            CHECK((std::ranges::count(row.shortlist, token) + std::ranges::count(row.ends, token) +
                       std::ranges::count(row.prefix, token) >
                   0));
        CHECK(plain.hypotheses[0].log_prob != with.hypotheses[0].log_prob);
      });
  all["direction"] = one_of_two(
      "direction", [](R const&, Request_& one) { one.direction = 7; },
      [](R const&, Result const&, Result const&, Seen const& seen, Seen const& plainly) {
        CHECK((seen.directions == std::set{0, 7} && plainly.directions == std::set{0}));
      });
  for (auto const most : {1, 2147483647})
    all[most == 1 ? "confidence" : "confidence.alternatives"] = one_of_two(
        "confidence", [=](R const&, Request_& one) { one.confidence = {.entropy = true, .alternatives = most}; },
        [](R const&, Result const&, Result const& with, Seen const&, Seen const&) {
          for (auto const& h : with.hypotheses) {
            REQUIRE(h.choices.size() == h.tokens.size());
            CHECK(!h.choices.back().alternatives.empty());
            CHECK(!std::isnan(h.choices.back().entropy));
          }
        });
  all["traced"] = one_of_two(
      "traced", [](R const&, Request_& one) { one.traced = true; },
      [](R const&, Result const&, Result const&, Seen const& seen, Seen const& plainly) {
        CHECK((seen.traced == 1 && plainly.traced == 0));
      });
  all["remember"] = one_of_two(
      "remember", [](R const&, Request_& one) { one.remember = false; },
      [](R const&, Result const&, Result const&, Seen const& seen, Seen const& plainly) {
        CHECK((seen.remembered == 1 && plainly.remembered == 1));
      });
  return all;
}

std::set<std::string> names(std::map<std::string, std::vector<Member>> const& all) {
  std::set<std::string> found;
  for (auto const& [name, members] : all)
    if (name.starts_with("search ") && name != "search Ruled")
      found.insert(name.substr(7));  // an old name of Processed
  return found;
}

template <class R>
void check_members(R const& row) {
  auto const all = columns<R>();
  std::set<std::string> members, known;
  for (auto const& one : declarations().at("Request")) members.insert(one.name);
  for (auto const& [name, column] : all)
    if (name.find('.') == std::string::npos) known.insert(name);
  CHECK(members == known);
  for (auto const& [name, column] : all)
    for (auto const& schedule : schedules) {
      INFO(row.name << ": Request::" << name << ", " << (schedule.streams ? "streamed" : "in batches"));
      column(row, schedule);
    }
}

/// Each integer option at its ends: refused by name and value, or it decodes.
template <class R>
void check_integers(R row) {
  std::set<std::string> known;
  for (auto const& one : row.options) known.insert(one.name);
  INFO(row.name);
  CHECK(known == integers("search " + row.name));
  for (auto const& option : row.options)
    for (auto const value :
         {std::numeric_limits<std::int32_t>::min(), -1, 0, 1, std::numeric_limits<std::int32_t>::max()}) {
      auto search = row.search;
      option.set(search, value);
      auto const unlimited = option.name == "length.max" && value == LengthLimits::unlimited;
      auto const named = option.name + " = " + (unlimited ? "unlimited" : std::to_string(value));
      INFO(named);
      std::string message;
      try {
        Seen seen;
        auto const result = row.run({row.usual()}, search, schedules[0], seen).at(0);
        if (result.ok() || result.failure == Failure::no_token_left) continue;
        message = result.message;
        CHECK(result.failure == Failure::bad_request);
      } catch (std::invalid_argument const& error) {
        message = error.what();
      }
      INFO(message);
      CHECK(message.find("sluice: " + named + ":") == 0);
    }
}

#define SLUICE_OPTION(S, x)                                                                                            \
  Option<S> {                                                                                                          \
#x, [](S & search, std::int32_t value) { search.x = value; }                                                       \
  }
#define SLUICE_LENGTHS(S) SLUICE_OPTION(S, length.min), SLUICE_OPTION(S, length.max), SLUICE_OPTION(S, length.extra)
#define SLUICE_ENDPOINT(S)                                                                                             \
  SLUICE_OPTION(S, endpoint.silence), SLUICE_OPTION(S, endpoint.nothing), SLUICE_OPTION(S, endpoint.longest)
#define SLUICE_TOKENS(S)                                                                                               \
  SLUICE_OPTION(S, tokens.labels), SLUICE_OPTION(S, tokens.blank), SLUICE_OPTION(S, tokens.label_frames)

// What a wrapper of searches passes on.

/// A search with every optional member.
struct Whole {
  struct State {};
  static constexpr Abilities needs{.ragged = true, .blocks = true};
  static constexpr bool takes_prefix = true, assumes_falling = true, goes_back = true;
  std::int32_t adapted = 0, width = 3;

  template <class M>
  void adapt(M const& model) {
    adapted = model.number;
  }
  void check() const { throw std::invalid_argument("checked"); }
  std::int32_t slot_count() const { return width; }
  void begin(State&, Sentence const&) const {}
  void plan(State&, Plan&) const {}
  bool advance(State&, Expansion const&) const { return true; }
  Progress progress(State const&) const { return {}; }
  void finish(State const&, Result&) const {}
  bool draft(State&, Draft&) const { return true; }
  void settled(State&, std::vector<Token>&) const {}
  bool waits(State const&) const { return true; }
  void insert_into(State const&, TokenSet& set) const { set.insert(9); }
};
struct Inserts : Greedy {
  void insert_into(TokenSet& set) const { set.insert(8); }
};
/// The names of optional members of searches, as core/search.hpp declares them.
std::set<std::string> optional_members() {
  std::set<std::string> found{"check", "adapt", "assumes_falling"};  // which are declared elsewhere
  std::ifstream file(SLUICE_SOURCE_DIR "/include/sluice/core/search.hpp");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("SLUICE_NAMES(")) found.insert(line.substr(13, line.find(')') - 13));
  return found;
}

RandomFrames const sound(5, 6, 7);
LengthLimits const few{.max = 4};

/// Calls f(row) for each row.
template <class F>
void for_each_search(F&& f) {
  using Table_ = TableModel<everything>;
  Table_ const table(Table{.size = 9, .scale = 4});
  auto const of_table = [&]<class S>(std::string const& name, S search, S other, std::vector<Option<S>> options = {}) {
    return Row_<Table_, S>{.name = name,
                           .model = table,
                           .source = 5,
                           .search = std::move(search),
                           .other = std::move(other),
                           .options = std::move(options)};
  };
  f(of_table("Greedy", Greedy{.length = few}, Greedy{.length = {.max = 2}}, {SLUICE_LENGTHS(Greedy)}));
  auto forced = of_table("ForcedScore", ForcedScore{},
                         ForcedScore{.penalty = {.kind = LengthPenalty::Kind::average, .alpha = 0.5}});
  forced.prefix = {6, 5};
  f(forced);
  using B = BeamSearch;
  std::vector<Option<B>> const of_beam{SLUICE_OPTION(B, width),
                                       SLUICE_OPTION(B, n_best),
                                       SLUICE_OPTION(B, candidates),
                                       SLUICE_OPTION(B, pruning.max_per_parent),
                                       SLUICE_OPTION(B, early_stopping.finished),
                                       SLUICE_LENGTHS(B)};
  B const beam{.width = 3, .length = few}, wider{.width = 4, .n_best = 2, .length = few};
  f(of_table("BeamSearch", beam, wider, of_beam));
  using F1 = BestFirstBeam;
  f(of_table("BestFirstBeam", F1{.width = 3, .length = few}, F1{.width = 3, .n_best = 2, .length = few},
             {SLUICE_OPTION(F1, width), SLUICE_OPTION(F1, n_best), SLUICE_OPTION(F1, candidates),
              SLUICE_OPTION(F1, states), SLUICE_OPTION(F1, pruning.max_per_parent), SLUICE_LENGTHS(F1)}));
  using D = DiverseBeamSearch;
  B const group{.width = 2, .n_best = 2, .length = few};
  f(of_table("DiverseBeamSearch", D{.search = group, .groups = 2, .n_best = 1},
             D{.search = group, .groups = 2, .n_best = 3},
             {SLUICE_OPTION(D, groups), SLUICE_OPTION(D, n_best), SLUICE_OPTION(D, padding)}));
  using W = Blockwise<>;
  f(of_table("Blockwise", W{.length = few}, W{.length = {.max = 2}},
             {SLUICE_OPTION(W, block), SLUICE_OPTION(W, minimum), SLUICE_OPTION(W, branches), SLUICE_OPTION(W, nodes),
              SLUICE_LENGTHS(W)}));
  f(of_table("ConstrainedBeamSearch", ConstrainedBeamSearch<>{.beam = beam}, ConstrainedBeamSearch<>{.beam = wider}));
  using X = ExactSearch;
  f(of_table("ExactSearch", X{.length = few}, X{.n_best = 3, .length = few},
             {SLUICE_OPTION(X, n_best), SLUICE_OPTION(X, steps), SLUICE_OPTION(X, list), SLUICE_LENGTHS(X)}));
  using A = Sample;
  f(of_table("Sample", A{.length = few}, A{.samples = 3, .length = few},
             {SLUICE_OPTION(A, watermark.width), SLUICE_OPTION(A, watermark.depth), SLUICE_OPTION(A, top_k),
              SLUICE_OPTION(A, min_keep), SLUICE_OPTION(A, samples), SLUICE_LENGTHS(A)}));
  using Y = StochasticBeam;
  f(of_table("StochasticBeam", Y{.width = 2, .length = few}, Y{.width = 3, .length = few},
             {SLUICE_OPTION(Y, width), SLUICE_LENGTHS(Y)}));
  using P = ParticleSample<Anything>;
  f(of_table("ParticleSample", P{.particles = 4, .length = few}, P{.particles = 3, .length = few},
             {SLUICE_OPTION(P, particles), SLUICE_OPTION(P, tries), SLUICE_OPTION(P, looks), SLUICE_LENGTHS(P)}));
  using R = Processed<BeamSearch>;
  f(of_table("Processed", R{beam, NoRepeatNgram{1}}, R{wider, NoRepeatNgram{1}}));
  using O = OneOf<Greedy, BeamSearch>;
  f(of_table("OneOf", O(beam), O(wider)));
  InCatalogue const items(catalogue_of({{3, 4}, {5}, {6}, {6, 5}, {7, 8, 3}}));
  f(of_table("CatalogueBeam", CatalogueBeam{.beam = beam, .items = items},
             CatalogueBeam{.beam = wider, .items = items}));

  std::set<std::string> const of_frames{"prompt", "prefix", "confidence", "processors"};
  using C = CtcBeamSearch<>;
  f(Row_<CtcFrames<>, C>{.name = "CtcBeamSearch",
                         .model = CtcFrames<>(7, 0),
                         .source = sound.view(),
                         .search = {.width = 3},
                         .other = {.width = 3, .n_best = 2},
                         .refused = of_frames,
                         .options = {SLUICE_OPTION(C, width), SLUICE_OPTION(C, n_best), SLUICE_OPTION(C, top_tokens),
                                     SLUICE_OPTION(C, blank), SLUICE_OPTION(C, block), SLUICE_ENDPOINT(C)}});
  HashedLines const lines{.tokens = {.labels = 7}, .scale = 3};
  using Network = Transducer<HashedNetwork>;
  using T = TransducerBeam<>;
  f(Row_<Network, T>{.name = "TransducerBeam",
                     .model = Network{HashedNetwork(lines)},
                     .source = {1, 6},
                     .search = {.tokens = lines.tokens, .width = 3},
                     .other = {.tokens = lines.tokens, .width = 3, .n_best = 2},
                     .refused = of_frames,
                     .options = {SLUICE_TOKENS(T), SLUICE_OPTION(T, width), SLUICE_OPTION(T, n_best),
                                 SLUICE_OPTION(T, candidates), SLUICE_OPTION(T, most_symbols),
                                 SLUICE_OPTION(T, most_labels), SLUICE_ENDPOINT(T)}});
  using G = TransducerGreedy<>;
  f(Row_<Network, G>{.name = "TransducerGreedy",
                     .model = Network{HashedNetwork(lines)},
                     .source = {1, 6},
                     .search = {.tokens = lines.tokens},
                     .other = {.tokens = lines.tokens, .most_labels = 1},
                     .refused = of_frames,
                     .options = {SLUICE_TOKENS(G), SLUICE_OPTION(G, most_symbols), SLUICE_OPTION(G, most_labels),
                                 SLUICE_OPTION(G, candidates), SLUICE_ENDPOINT(G)}});
}

}  // namespace

TEST_CASE("every member of a request works with every search, in every schedule, or is refused by name", "[requests]") {
  std::set<std::string> known;
  for_each_search([&](auto const& row) { known.insert(row.name), check_members(row); });
  CHECK(known == names(declarations()));
}

TEST_CASE("every integer option of a search decodes at its ends, or is refused with its name and value", "[requests]") {
  for_each_search([](auto const& row) {
    if (!row.options.empty() || integers("search " + row.name).empty()) check_integers(row);
    else
      CHECK((row.name == "Processed" || row.name == "ConstrainedBeamSearch" ||
             row.name == "CatalogueBeam"));  // see BeamSearch
  });
}

TEST_CASE("a wrapper of a search passes on every optional member", "[requests]") {
  using R = Processed<Whole>;
  std::map<std::string, bool> passed;
  R ruled{Whole{}, NoRepeatNgram{1}};
  struct {
    std::int32_t number = 7;
  } const model;
  detail::adapt(ruled, model);
  passed["adapt"] = ruled.search.adapted == 7;
  try {
    ruled.check();
  } catch (std::invalid_argument const& error) {
    passed["check"] = error.what() == std::string("checked");
  }
  passed["needs"] = needs(ruled) == Whole::needs;
  passed["draft"] = DraftingSearch<R>;
  passed["settled"] = SettlingSearch<R>;
  Vocabulary const vocabulary{.size = 9, .eos = {2}};
  std::vector<Token> const prompt{1};
  Sentence const sentence{.vocabulary = &vocabulary, .prompt = prompt, .last = 1};
  R::State state;
  ruled.begin(state, sentence);
  passed["waits"] = WaitingSearch<R> && ruled.waits(state);
  passed["takes_prefix"] = takes_prefix<R>();
  passed["goes_back"] = goes_back<R>();
  passed["assumes_falling"] = detail::assumes_falling<R>();
  TokenSet set(10);
  ruled.insert_into(state, set), Processed<Inserts>().insert_into(set);
  passed["insert_into"] = set.contains(9) && set.contains(8);
  CHECK(ruled.slot_count() == 3);
  std::set<std::string> names;
  for (auto const& [name, is] : passed) {
    INFO(name);
    CHECK(is);
    names.insert(name);
  }
  CHECK(names == optional_members());
}
