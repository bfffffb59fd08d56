// SPDX-License-Identifier: Apache-2.0
// What each wrapper of a model passes on, in one table. The wrappers are those of docs/api.txt: a model that is in no list here fails.
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/deprecated.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/model/projected.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/heads.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/speculated.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <support/catch.hpp>

#include <cstdint>
#include <fstream>
#include <functional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

using namespace sluice;

namespace {

/// A model with every optional member that does not exclude another.
template <Abilities A, class AnswerType = Scores<float>>
struct Whole {
  using Source = std::vector<Token>;
  using Encoded = int;
  static constexpr Abilities abilities = A;
  static constexpr Limits most{.slot_count = 50, .length = 70, .tokens = 90};

  Vocabulary vocabulary() const { return {.size = 5, .bos = 0, .eos = {1}}; }
  Limits limits() const { return most; }
  std::int32_t source_length(Source const&) const { return 11; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  AnswerType step(std::span<Row const>) { return {}; }
  void release(std::span<Slot const>) {}
  Encoded encode(std::span<Source const* const>) const { return 0; }
  void start(Encoded&, std::span<std::int32_t const>, std::span<Slot const>) {}
  void propose(std::span<Draft const>) {}
  void remember(Decoded const&) {}
  Attachments attachments() { return {}; }
};
/// One whose sources grow.
template <Abilities A, class AnswerType = Scores<float>>
struct Growing {
  using Source = std::vector<Token>;
  static constexpr Abilities abilities = A;
  Vocabulary vocabulary() const { return {.size = 5, .bos = 0, .eos = {1}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  AnswerType step(std::span<Row const>) { return {}; }
  SourceGrowth growth(Source const&) const { return {}; }
  void append(Source&, int) {}
};
struct Language {
  using Source = std::monostate;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  Vocabulary vocabulary() const { return {.size = 5, .bos = 0, .eos = {1}}; }
  Limits limits() const { return {.slot_count = 40, .length = 60, .tokens = 80}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};
/// A draft that does not encode ahead.
struct Language_of_tokens : Language {
  using Source = std::vector<Token>;
  void start(std::span<Source const* const>, std::span<Slot const>) {}
};
struct Heads {
  std::int32_t size() const { return 1; }
  void apply(std::int32_t, MatrixView<float const>, MatrixView<float>) {}
};
struct Layer {
  Scores<float> logits(Hidden<float> const&) { return {}; }
  Expansion expand(Hidden<float> const&, std::span<Query const>, std::span<Group const>) { return {}; }
};

constexpr Abilities all{.ragged = true, .blocks = true, .roll_back = true}, plain{.ragged = true};
using Model_ = Whole<all>;
using Plain = Whole<plain>;
using Of_vectors = Whole<all, Hidden<float>>;

/// The optional members of a model of which it has something to pass on.
template <class W>
std::string passes() {
  std::string found;
  auto const add = [&](bool has, char const* name) {
    if (has) found += (found.empty() ? "" : " ") + std::string(name);
  };
  add(ReleasingModel<W>, "release");
  add(EncodingModel<W>, "encode");
  add(ProposingModel<W>, "propose");
  add(RememberingModel<W>, "remember");
  add(AttachingModel<W>, "attachments");
  return found;
}
template <class W>
constexpr bool grows = GrowingModel<W>&& requires(W& model, typename W::Source& source) {
  model.append(source, 1);
};

void check_limits(std::string const& name, Limits const& found, Limits const& expected) {
  INFO(name);
  CHECK(found.slot_count == expected.slot_count);
  CHECK(found.length == expected.length);
  CHECK(found.tokens == expected.tokens);
}

}  // namespace

// Names of earlier releases stand for what has taken their place.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("old names of proposers mean the new ones", "[wrappers]") {
  Model_ model;
  Of_vectors vectors;
  Heads heads;
  Layer layer;
  SuffixCache cache;
  WithLookup<Model_> lookup(model, Lookup{.longest = 2});
  WithLookup by_default(model);
  WithDraft draft(model, model);
  WithDraft drawing(model, model, {}, acceptance::Rejection{});
  WithHeads headed(vectors, heads, layer, {.best = 2});
  WithSuffixCache remembering(lookup, cache, {.own = false});
  Speculated<Model_, PromptLookup>& first = lookup;
  Speculated<Model_, DraftModel<Model_>>& second = draft;
  Speculated<Model_, DraftModel<Model_, LogSoftmaxTopK, acceptance::Rejection>>& third = drawing;
  Speculated<Of_vectors, DraftHeads<Heads, Layer>>& fourth = headed;
  Speculated<WithLookup<Model_>, SuffixDecoding>& fifth = remembering;
  CHECK((first.proposes() && second.proposes() && third.proposes() && fourth.proposes() && fifth.proposes()));
}
#pragma GCC diagnostic pop

TEST_CASE("what wrappers of models pass on", "[wrappers]") {
  std::string const everything = "release encode propose remember attachments";
  std::string const but_ahead = "release propose remember attachments";
  CHECK(passes<Model_>() == everything);
  CHECK(passes<Checked<Model_>>() == everything);
  CHECK(passes<Speculated<Model_, DraftModel<Model_>>>() == everything);
  CHECK(passes<Speculated<Model_, PromptLookup>>() == everything);
  CHECK(passes<Speculated<Model_, SuffixDecoding>>() == everything);
  CHECK(passes<Speculated<Model_, PromptLookup, DraftModel<Model_>>>() == everything);
  CHECK(passes<Speculated<Model_, PromptLookup, DraftModel<Language_of_tokens>>>() == but_ahead);
  CHECK(passes<Speculated<Of_vectors, DraftHeads<Heads, Layer>>>() == everything);
  CHECK(passes<Projected<Of_vectors, Layer>>() == everything);
  CHECK(passes<TokenByToken<Plain>>() == everything);
  CHECK(passes<AnyModel<std::vector<Token>>>() == everything);
  CHECK(passes<Fused<Model_, Language>>() == everything);
  CHECK(passes<Restarting<Plain>>() == but_ahead);  // a sentence may have to be encoded again
  // Several models have several guesses and attachments; the lines of frames are not those of a text.
  CHECK(passes<Ensemble<Model_, Model_>>() == "release encode");
  CHECK(passes<EnsembleOf<Model_>>() == "release encode");
  CHECK(passes<WithLanguageModel<Model_, Language>>() == "release");

  using Stream = Growing<all>;
  CHECK(grows<Checked<Stream>>);
  CHECK(grows<Speculated<Stream, PromptLookup>>);
  CHECK(grows<Speculated<Stream, SuffixDecoding>>);
  CHECK(grows<Speculated<Stream, DraftModel<Stream>>>);
  CHECK(grows<Speculated<Growing<all, Hidden<float>>, DraftHeads<Heads, Layer>>>);
  CHECK(grows<Projected<Growing<all, Hidden<float>>, Layer>>);
  CHECK(grows<TokenByToken<Growing<plain>>>);
  CHECK(grows<WithLanguageModel<Stream, Language>>);
  // Fused, Ensemble, Restarting and AnyModel do not compile with one.

  std::set<std::string> const wrappers{"Checked",   "Speculated", "Projected",         "TokenByToken",
                                       "AnyModel",  "Fused",      "Interpolate",       "Restarting",
                                       "Ensemble",  "EnsembleOf", "WithLanguageModel", "WithDraft",
                                       "WithHeads", "WithLookup", "WithSuffixCache"},
      models{"Llama",     "OnnxEncoderDecoder", "OnnxDecoder", "AsgFrames", "CtcFrames",        "CtcPrefixModel",
             "CtcStream", "Transducer",         "NGramModel",  "WordModel", "CTranslate2Model", "CTranslate2"};
  std::ifstream file(SLUICE_SOURCE_DIR "/docs/api.txt");
  std::size_t found = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind != "model") continue;
    name = name.substr(name.rfind(':') + 1);
    INFO(name);
    CHECK((wrappers.contains(name) || models.contains(name)));
    found += wrappers.contains(name);
  }
  CHECK(found == wrappers.size());
}

TEST_CASE("the limits of wrappers are those of their models", "[wrappers]") {
  Model_ model;
  Plain few;
  Of_vectors vectors;
  Language language;
  Heads heads;
  Layer layer;
  SuffixCache cache;
  Limits const own = Model_::most, least = language.limits();
  auto const check = [&](std::string const& name, auto const& wrapper, Limits const& expected) {
    check_limits(name, sluice::limits(wrapper), expected);
    INFO(name);
    CHECK(sluice::source_length(wrapper, {1, 2}) == 11);
    CHECK(sluice::abilities(wrapper).ragged);
  };
  check("Checked", Checked<Model_>(model), {own.slot_count - 2, own.length, (own.tokens - 4) / 3});
  check("DraftModel", Speculated(model, DraftModel(model)), own);
  check("PromptLookup", Speculated(model, PromptLookup()), own);
  check("SuffixDecoding", Speculated(model, SuffixDecoding(cache)), own);
  check("DraftHeads", Speculated(vectors, DraftHeads(heads, layer)), own);
  check("Projected", Projected<Of_vectors, Layer>(vectors, layer), own);
  check("TokenByToken", TokenByToken<Plain>(few), own);
  check("Restarting", Restarting<Plain>(few), own);
  check("AnyModel", AnyModel<std::vector<Token>>(model), own);
  check("Fused", Fused<Model_, Language>(model, language), least);
  Model_ other;
  check("Ensemble", Ensemble<Model_, Model_>(model, other), own);
  std::vector<Model_*> const both{&model, &other};
  check("EnsembleOf", EnsembleOf<Model_>(std::span<Model_* const>(both)), own);
  // Slots of frames and of texts hold different tokens: the wrapper keeps to both limits itself.
  check("WithLanguageModel", WithLanguageModel<Model_, Language>(model, language, {0, 1, 2, 3, 4}),
        {.slot_count = least.slot_count});
}

TEST_CASE("the earlier names of language models beside frames are still there", "[wrappers]") {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  static_assert(std::is_same_v<TokenNGrams, NGramModel<>> && std::is_same_v<WordNGrams, WordModel<>>);
  static_assert(std::is_same_v<WithTextModel<Model_, Language>, WithLanguageModel<Model_, Language>>);
  CtcBeamSearch<NoRule, TextModel> const search{.language_model = {{.weight = 0.5}}};
#pragma GCC diagnostic pop
  CHECK(search.language_model.weight == 0.5);
  CHECK(search.slot_count() > 1);  // texts are rows of the model
}
