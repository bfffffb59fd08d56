// SPDX-License-Identifier: Apache-2.0
// Archetypes: one type that has just what a concept asks for, and for each requirement one that lacks it.
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/schedule.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace sluice;

namespace {

// ---- Model ----------------------------------------------------------------------------------------------------------

using Sources = std::span<std::string const* const>;
using Slots = std::span<Slot const>;
using Rows = std::span<Row const>;

struct LeastModel {
  using Source = std::string;
  Vocabulary vocabulary();
  void start(Sources, Slots);
  Scores<float> step(Rows);
};
static_assert(Model<LeastModel>);
static_assert(std::same_as<Answer<LeastModel>, Scores<float>>);
static_assert(sluice::abilities<LeastModel>() == Abilities{});
static_assert(!ReleasingModel<LeastModel> && !EncodingModel<LeastModel> && !ProposingModel<LeastModel>);

struct NoSource {
  Vocabulary vocabulary();
  void start(Sources, Slots);
  Scores<float> step(Rows);
};
static_assert(!Model<NoSource>);

struct NoVocabulary {
  using Source = std::string;
  void start(Sources, Slots);
  Scores<float> step(Rows);
};
static_assert(!Model<NoVocabulary>);

struct VocabularyOfAnotherType : LeastModel {
  int vocabulary();
};
static_assert(!Model<VocabularyOfAnotherType>);

struct NoStart {
  using Source = std::string;
  Vocabulary vocabulary();
  Scores<float> step(Rows);
};
static_assert(!Model<NoStart>);

struct StartOfOtherSources : LeastModel {
  using Source = int;
};
static_assert(!Model<StartOfOtherSources>);

struct NoStep {
  using Source = std::string;
  Vocabulary vocabulary();
  void start(Sources, Slots);
};
static_assert(!Model<NoStep>);

struct StepWithoutAnswer : LeastModel {
  void step(Rows);
};
static_assert(!Model<StepWithoutAnswer>);

struct StepThatWantsToChangeRows : LeastModel {
  Scores<float> step(std::span<Row>);
};
static_assert(!Model<StepThatWantsToChangeRows>);

struct AnswersByReference : LeastModel {
  Hidden<float> const& step(Rows);
};
static_assert(Model<AnswersByReference>);
static_assert(std::same_as<Answer<AnswersByReference>, Hidden<float>>);

struct Able : LeastModel {
  static constexpr Abilities abilities{.ragged = true, .roll_back = true};
};
static_assert(sluice::abilities<Able>() == Abilities{.ragged = true, .roll_back = true});

struct Releasing : LeastModel {
  void release(Slots);
};
static_assert(ReleasingModel<Releasing>);

struct Encoding : LeastModel {
  struct Encoded {};
  Encoded encode(Sources) const;
  using LeastModel::start;
  void start(Encoded&, std::span<std::int32_t const>, Slots);
};
static_assert(EncodingModel<Encoding>);

struct EncodingNotConst : Encoding {
  Encoded encode(Sources);
};
static_assert(!EncodingModel<EncodingNotConst>);

struct EncodingWithoutStart : LeastModel {
  struct Encoded {};
  Encoded encode(Sources) const;
};
static_assert(!EncodingModel<EncodingWithoutStart>);

struct Proposing : LeastModel {
  void propose(std::span<Draft const>);
};
static_assert(ProposingModel<Proposing>);

// ---- Expander -------------------------------------------------------------------------------------------------------

struct MyAnswer {};
struct LeastExpander {
  Expansion expand(MyAnswer const&, std::span<Query const>, std::span<Group const>);
};
static_assert(Expander<LeastExpander, MyAnswer>);
static_assert(!Expander<LeastExpander, Scores<float>>);
struct NoExpand {};
static_assert(!Expander<NoExpand, MyAnswer>);
struct ExpandsToSomethingElse {
  int expand(MyAnswer const&, std::span<Query const>, std::span<Group const>);
};
static_assert(!Expander<ExpandsToSomethingElse, MyAnswer>);
struct ChangesTheAnswer {
  Expansion expand(MyAnswer&, std::span<Query const>, std::span<Group const>);
};
static_assert(!Expander<ChangesTheAnswer, MyAnswer>);

// ---- Search ---------------------------------------------------------------------------------------------------------

struct LeastSearch {
  struct State {};
  std::int32_t slot_count() const;
  void begin(State&, Sentence const&) const;
  void plan(State&, Plan&) const;
  bool advance(State&, Expansion const&) const;
  Progress progress(State const&) const;
  void finish(State const&, Result&) const;
};
static_assert(Search<LeastSearch>);
static_assert(needs<LeastSearch>() == Abilities{});

struct StateNeedsArguments : LeastSearch {
  struct State {
    explicit State(int);
  };
  void begin(State&, Sentence const&) const;
  void plan(State&, Plan&) const;
  bool advance(State&, Expansion const&) const;
  Progress progress(State const&) const;
  void finish(State const&, Result&) const;
};
static_assert(!Search<StateNeedsArguments>);

struct NoState {
  std::int32_t slot_count() const;
};
static_assert(!Search<NoState>);

struct SlotsNotConst : LeastSearch {
  std::int32_t slot_count();
};
static_assert(!Search<SlotsNotConst>);

struct SlotsOfAnotherType : LeastSearch {
  std::string slot_count() const;
};
static_assert(!Search<SlotsOfAnotherType>);

struct StartNotConst : LeastSearch {
  void begin(State&, Sentence const&);
};
static_assert(!Search<StartNotConst>);

struct PlanByValue : LeastSearch {
  void plan(State&) const;
};
static_assert(!Search<PlanByValue>);

struct AdvanceSaysNothing : LeastSearch {
  void advance(State&, Expansion const&) const;
};
static_assert(!Search<AdvanceSaysNothing>);

struct ProgressOfAnotherType : LeastSearch {
  int progress(State const&) const;
};
static_assert(!Search<ProgressOfAnotherType>);

struct NoFinish {
  struct State {};
  std::int32_t slot_count() const;
  void begin(State&, Sentence const&) const;
  void plan(State&, Plan&) const;
  bool advance(State&, Expansion const&) const;
  Progress progress(State const&) const;
};
static_assert(!Search<NoFinish>);

struct Needing : LeastSearch {
  static constexpr Abilities needs{.blocks = true};
};
static_assert(sluice::needs<Needing>() == Abilities{.blocks = true});

// ---- Schedule -------------------------------------------------------------------------------------------------------

struct LeastSchedule {
  std::size_t admit(std::span<Live const>, std::span<std::int32_t const>) const;
  void select(std::span<Live const>, std::vector<std::int32_t>&) const;
};
static_assert(Schedule<LeastSchedule>);

struct NoAdmit {
  void select(std::span<Live const>, std::vector<std::int32_t>&) const;
};
static_assert(!Schedule<NoAdmit>);
struct AdmitNotConst : LeastSchedule {
  std::size_t admit(std::span<Live const>, std::span<std::int32_t const>);
};
static_assert(!Schedule<AdmitNotConst>);
struct AdmitSaysNothing : LeastSchedule {
  void admit(std::span<Live const>, std::span<std::int32_t const>) const;
};
static_assert(!Schedule<AdmitSaysNothing>);
struct NoSelect {
  std::size_t admit(std::span<Live const>, std::span<std::int32_t const>) const;
};
static_assert(!Schedule<NoSelect>);

// ---- Abilities, limits, lengths -------------------------------------------------------------------------------------

static_assert(Abilities{.ragged = true, .blocks = true}.include({.blocks = true}));
static_assert(Abilities{.blocks = true}.include({}));
static_assert(!Abilities{.ragged = true, .blocks = true}.include({.roll_back = true}));
static_assert(!Abilities{.ragged = true, .roll_back = true}.include({.blocks = true}));
static_assert(!Abilities{.blocks = true, .roll_back = true}.include({.ragged = true}));

struct Stub {
  using Source = std::string;
  Vocabulary vocabulary() const { return {.size = 3}; }
  void start(Sources, Slots) {}
  Scores<float> step(Rows) { return {}; }
};
struct Limited : Stub {
  Limits limits() const { return {.slot_count = 7, .length = 9}; }
  std::int32_t source_length(std::string const& source) const { return 2 * static_cast<std::int32_t>(source.size()); }
};
struct OfNumbers {
  using Source = int;
  Vocabulary vocabulary() const { return {.size = 3}; }
  void start(std::span<int const* const>, Slots) {}
  Scores<float> step(Rows) { return {}; }
};

}  // namespace

TEST_CASE("what a model does not say is unlimited or unknown", "[concepts]") {
  CHECK(sluice::limits(Stub{}).slot_count == Limits::unlimited);
  CHECK(sluice::limits(Stub{}).length == Limits::unlimited);
  CHECK(sluice::limits(Limited{}).slot_count == 7);
  CHECK(sluice::limits(Limited{}).length == 9);
  CHECK(sluice::source_length(Stub{}, "abc") == 3);
  CHECK(sluice::source_length(Limited{}, "abc") == 6);
  CHECK(sluice::source_length(OfNumbers{}, 5) == -1);
  CHECK_FALSE((sluice::encodes(Stub{}) || sluice::proposes(Stub{})));
}

TEST_CASE("a token set holds what was put in, and nothing outside the vocabulary", "[concepts]") {
  TokenSet set(130);
  for (Token const t : {0, 63, 64, 129}) set.insert(t);
  for (Token t = 0; t < 130; ++t) CHECK(set.contains(t) == (t == 0 || t == 63 || t == 64 || t == 129));
  set.erase(64);
  CHECK_FALSE(set.contains(64));
  CHECK_FALSE(set.contains(-1));
  CHECK_FALSE(set.contains(1000000));
  CHECK_FALSE(TokenSet{}.contains(0));
}

TEST_CASE("every failure has a name", "[concepts]") {
  std::vector<std::string> names;
  for (auto const failure :
       {Failure::none, Failure::bad_request, Failure::source, Failure::search, Failure::model, Failure::not_a_number,
        Failure::no_token_left, Failure::late, Failure::refused, Failure::cancelled, Failure::schedule})
    names.push_back(name(failure));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(std::find(names.begin(), names.end(), "unknown") == names.end());
}
