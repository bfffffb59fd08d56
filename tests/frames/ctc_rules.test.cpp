// SPDX-License-Identifier: Apache-2.0
// Rules and language models inside CTC: at full width, against every text with the score that it should have; narrow, against a table of
// prefixes.
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>

#include <support/catch.hpp>
#include <support/ctc_reference.hpp>
#include <support/naive_ngrams.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(LanguageModel<NGramModel<>> && LanguageModel<WordModel<>> && LanguageModel<LexiconNGrams>);
static_assert(detail::RestrictingProcessor<Lexicon>);

constexpr auto no = -std::numeric_limits<double>::infinity();
using Text = std::vector<Token>;

/// Labels: 0 the blank, then these.
std::string const letters = "-ab ";
TokenBytes const bytes{std::vector<std::string>{"", "a", "b", " "}};

std::string written(Text const& text) {
  std::string out;
  for (auto const token : text) out += letters[std::size_t(token)];
  return out;
}
std::vector<std::string> words_of(std::string const& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// At full width the result has every text for which `added` is possible, each with its sum, in the order of what both give.
template <class S>
void check_all(S search, std::function<double(Text const&)> const& added, std::uint64_t seeds = 4) {
  search.width = search.n_best = 20000, search.top_tokens = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    RandomFrames const frames(seed, 6, 4, 2);
    std::vector<std::pair<double, Text>> expected;
    auto const texts = all_texts(frames, 0);
    for (auto const& [text, known] : texts)
      if (auto const more = added(text); more > no) expected.emplace_back(-std::log(known.probability) - more, text);
    std::sort(expected.begin(), expected.end());
    CtcFrames<> model(4, 0, Kind::log_probs);
    auto const result = decode(model, std::vector{frames.view()}, search).at(0);
    INFO(result.message);
    REQUIRE(result.hypotheses.size() == expected.size());
    REQUIRE(!expected.empty());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      auto const& h = result.hypotheses[i];
      CHECK_THAT(h.score, WithinAbs(-expected[i].first, 2e-5));
      CHECK_THAT(h.log_prob, WithinAbs(std::log(texts.at(h.tokens).probability), 1e-8));
      CHECK_THAT(h.score - h.log_prob, WithinAbs(added(h.tokens), 2e-5));
    }
  }
}

/// A narrow beam is that of a table whose prefixes are added what the language model says.
template <class R, class L>
void check_narrow(CtcBeamSearch<R, L> search, std::function<double(Text const&, Token)> const& add,
                  std::int32_t labels) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    RandomFrames const frames(40 + seed, 60, labels, 2);
    PlainCtc plain{.width = 2 + static_cast<std::int32_t>(seed) * 2, .add = add};
    if (seed % 2 == 1) plain.threshold = 8;
    search.width = search.n_best = plain.width, search.top_tokens = 0, search.threshold = plain.threshold;
    auto const expected = plain_ctc(frames, 0, plain);
    CtcFrames<> model(labels, 0, Kind::log_probs);
    auto const result = decode(model, std::vector{frames.view()}, search).at(0);
    REQUIRE(result.hypotheses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(result.hypotheses[i].tokens == expected[i].text);
      CHECK_THAT(result.hypotheses[i].score, WithinAbs(expected[i].score, 1e-4));
      CHECK_THAT(result.hypotheses[i].log_prob, WithinAbs(expected[i].log_prob, 1e-7));
    }
  }
}
/// What a language model adds, its state computed anew for each prefix; token 0 is the end.
template <class L>
std::function<double(Text const&, Token)> replayed(L const& model, Vocabulary const& vocabulary) {
  return [&model, &vocabulary](Text const& prefix, Token token) {
    auto state = model.initial({.vocabulary = &vocabulary});
    for (auto const one : prefix) state = model.next(state, one);
    return double(token == 0 ? model.end(state) : model.score(state, token));
  };
}

NGramTable table_of(NaiveNGrams const& grams) {
  std::istringstream stream(grams.arpa());
  return read_arpa(stream);
}
/// Random 3-grams over words.
NaiveNGrams grams_of(std::vector<std::string> const& words) {
  std::mt19937_64 random(17);
  auto grams = random_ngrams(random, 3, words.size(), 30);
  NaiveNGrams named{.order = 3};
  for (auto const& [gram, entry] : grams.entries) {
    auto renamed = gram;
    for (auto& word : renamed)
      if (word[0] == 'w') word = words[std::size_t(std::stoi(word.substr(1)))];
    named.entries[renamed] = entry;
  }
  return named;
}
/// The natural log-probability of words and their end.
double naive(NaiveNGrams const& grams, std::vector<std::string> const& words, double unknown) {
  Words context{"<s>"};
  double sum = 0;
  for (auto const& word : words) {
    sum += grams.log_prob(context, word) * std::numbers::ln10 + (grams.entries.contains({word}) ? 0 : unknown);
    context.push_back(word);
  }
  return sum + grams.log_prob(context, "</s>") * std::numbers::ln10;
}

/// n-grams as a model, whose rows and calls are counted, and which keeps its contract.
struct CountedNGrams {
  using Source = std::monostate;
  static constexpr Abilities abilities = NGramModel<>::abilities;
  NGramModel<> plain;
  Checked<NGramModel<>> model{plain};
  std::uint64_t rows = 0, calls = 0;

  explicit CountedNGrams(NGramTable const& table)
      : plain(table, {.size = 5, .bos = 3, .eos = {1}, .never = {3}}, {table.word("a"), 0, table.word("b"), 0, -1},
              {.unknown = -0.5}) {}
  Vocabulary vocabulary() const { return model.vocabulary(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> numbers) { model.start(sources, numbers); }
  void release(std::span<Slot const> numbers) { model.release(numbers); }
  auto step(std::span<Row const> planned) {
    rows += planned.size(), ++calls;
    return model.step(planned);
  }
};

/// Discourages repeats by a factor, which frames have not.
struct Factor {
  struct State {};
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>& edits) const { edits.push_back({1, 0, 2}); }
};

}  // namespace

TEST_CASE("rules: what a rule adds or forbids is added or forbidden once a token", "[ctc]") {
  check_all(CtcBeamSearch<TokenBias>{.rule = {{{1, 0.75f}, {3, -0.5f}}}}, [](Text const& text) {
    return 0.75 * double(std::count(text.begin(), text.end(), 1)) -
           0.5 * double(std::count(text.begin(), text.end(), 3));
  });
  check_all(CtcBeamSearch<Forbidden>{.rule = Forbidden{{1, 2}, {3, 3}, {2, 1, 2}}}, [](Text const& text) {
    auto const out = written(text);
    auto const has = [&](char const* part) { return out.find(part) != std::string::npos; };
    return has("ab") || has("  ") || has("bab") ? no : 0.0;
  });
}

TEST_CASE("rules: phrases that occur are paid, beginnings are not", "[ctc]") {
  std::vector<BiasedPhrase> const phrases{{.spellings = {{1, 2}}, .whole = 2.0f},
                                          {.spellings = {{2, 3, 1}}, .whole = 3.0f},
                                          {.spellings = {{1, 1}}, .whole = -1.0f}};
  auto const paid = [](Text const& text) {
    auto const out = written(text);
    double sum = 0;
    for (auto const& [part, boost] : {std::pair{"ab", 2.0}, {"b a", 3.0}, {"aa", -1.0}})
      for (auto at = out.find(part); at != std::string::npos; at = out.find(part, at + 1)) sum += boost;
    return sum;
  };
  detail::ContextGraph const graph(phrases);
  check_all(CtcBeamSearch<Bias>{.rule = Bias(phrases)}, paid);
  check_all(CtcBeamSearch<Rules<Bias, Forbidden>>{.rule = Rules(Bias(phrases), Forbidden{{3}})},
            [&](Text const& text) { return std::count(text.begin(), text.end(), 3) > 0 ? no : paid(text); });
  check_narrow(
      CtcBeamSearch<Bias>{.rule = Bias(phrases)},
      [&](Text const& prefix, Token token) {
        auto state = detail::ContextGraph::root;
        for (auto const one : prefix) state = graph.next(state, one);
        if (token == 0) return -double(graph.credit(state));
        auto const arrived = graph.arrive(state, token);
        return double(graph.paid(arrived)) + double(graph.credit(graph.settle(arrived))) - double(graph.credit(state));
      },
      6);
}

TEST_CASE("rules: texts match a regular expression, and are items of a catalogue", "[ctc]") {
  TokenTrie const trie(bytes, ctc_text_vocabulary(4, 0));
  CtcBeamSearch<Structure> const structured{.rule = Structure(Grammar::from_regex("a(b| a)*b?"), trie)};
  check_all(structured, [pattern = std::regex("a(b| a)*b?")](Text const& text) {
    return std::regex_match(written(text), pattern) ? 0.0 : no;
  });
  CatalogueBuilder builder;
  std::set<Text> const items{{1, 2}, {1}, {2, 2, 1}, {3, 1, 3, 1, 3}};
  for (auto const& item : items) builder.add(item);
  check_all(CtcBeamSearch<InCatalogue>{.rule = InCatalogue(builder.build())},
            [&](Text const& text) { return items.contains(text) ? 0.0 : no; });
  // Nothing that the frames allow is complete: five frames cannot hold five letters that repeat.
  RandomFrames const frames(1, 5, 4);
  CtcFrames<> model(4, 0, Kind::log_probs);
  CtcBeamSearch<Structure> const long_one{.rule = Structure(Grammar::from_regex("a{5}"), trie)};
  auto const result = decode(model, std::vector{frames.view()}, long_one).at(0);
  CHECK(result.failure == Failure::no_token_left);
  CHECK(result.message == "no text in the beam may end where the frames do");
}

TEST_CASE("a lexicon: words alone, in any of their spellings", "[ctc]") {
  std::vector<Spelling> const spellings{{"ab", {1, 2}}, {"a", {1}}, {"bab", {2, 1, 2}}, {"bab", {2, 2}}};
  std::set<std::string> const words{"ab", "a", "bab", "bb"};
  check_all(CtcBeamSearch<Lexicon>{.rule = Lexicon(spellings, {3})}, [&](Text const& text) {
    for (auto const& word : words_of(written(text)))
      if (!words.contains(word)) return no;
    return 0.0;
  });
  // Without a separator: 1 begins words, 2 and 3 go on.
  check_all(CtcBeamSearch<Lexicon>{.rule = Lexicon({{"x", {1}}, {"xy", {1, 2}}, {"xyz", {1, 2, 3}}})},
            [pattern = std::regex("(a(b ?)?)*")](Text const& text) {
              return std::regex_match(written(text), pattern) ? 0.0 : no;
            });
  check_all(CtcBeamSearch<Lexicon>{}, [](Text const&) { return 0.0; });
  // Several separators.
  check_all(CtcBeamSearch<Lexicon>{.rule = Lexicon({{"a", {1}}, {"aa", {1, 1}}}, {2, 3})},
            [pattern = std::regex("[b ]*(aa?[b ]+)*(aa?)?")](Text const& text) {
              return std::regex_match(written(text), pattern) ? 0.0 : no;
            });

  CHECK_THROWS_WITH(Lexicon({{"ab", {1, 2}}, {"none", {}}}, {3}),
                    "sluice: lexicon: word = none: has a spelling without tokens");
  CHECK_THROWS_WITH(Lexicon({{"a b", {1, 3, 2}}}, {3}),
                    "sluice: lexicon: word = a b: is spelt with token 3, which is no part of a word");
  CHECK_THROWS_WITH(
      Lexicon({{"a", {1}}, {"aa", {1, 1}}}),
      "sluice: lexicon: word = a: token 1 goes on from it to a longer word, and begins words: give separators");
  RandomFrames const frames(1, 5, 4);
  CtcFrames<> model(4, 0, Kind::log_probs);
  auto const refused = [&](Lexicon const& lexicon) {
    auto const result = decode(model, std::vector{frames.view()}, CtcBeamSearch<Lexicon>{.rule = lexicon}).at(0);
    CHECK(result.failure == Failure::bad_request);
    return result.message;
  };
  CHECK(refused(Lexicon({{"ok", {1}}, {"zoo", {1, 9}}}, {3}))
            .find("lexicon: word = zoo: cannot be spelt: token 9 is outside the vocabulary of 4") != std::string::npos);
  CHECK(refused(Lexicon({{"ok", {1}}, {"oh", {1, 0}}}, {3}))
            .find("lexicon: word = oh: cannot be spelt: token 0 ends a text (the blank, or eos)") != std::string::npos);
  CHECK(refused(Lexicon({{"ok", {1}}}, {4})).find("separator = 4: is outside the vocabulary of 4") !=
        std::string::npos);
}

TEST_CASE("the words of a lexicon's output, and where they are", "[ctc]") {
  using Words = std::vector<std::string>;
  auto const words = [](Lexicon const& lexicon, Hypothesis const& output) {
    Words found;
    for (auto const& one : lexicon.words(output)) {
      auto const word = one.spelling < 0 ? "..." : lexicon.spellings()[std::size_t(one.spelling)].word;
      found.push_back(word + " " + std::to_string(one.begin) + "-" + std::to_string(one.end) + " at " +
                      std::to_string(one.frames.begin) + "-" + std::to_string(one.frames.end));
    }
    return found;
  };
  // Pieces, of which 1 and 5 begin words, 3 too, but also stands within one: 1 v, 2 e, 3 n, 4 ew, 5 new.
  std::vector<Spelling> const spellings{{"vnews", {1, 2, 3, 4}}, {"new", {3, 4}}, {"new", {5}}, {"gnu", {3, 4}}};
  Lexicon const pieces(spellings);
  std::vector<float> frames(9 * 6, 0.0f);
  Token const path[] = {0, 1, 2, 2, 3, 4, 0, 5, 5};
  for (std::size_t t = 0; t < 9; ++t) frames[t * 6 + std::size_t(path[t])] = 9;
  CtcFrames<> model(6, 0);
  std::vector<MatrixView<float const>> const source{{frames.data(), 9, 6, 6}};
  auto const heard = decode(model, source, CtcBeamSearch<Lexicon>{.rule = pieces}).at(0).hypotheses.at(0);
  CHECK(words(pieces, heard) == Words{"vnews 0-4 at 1-6", "new 4-5 at 7-9"});
  CHECK((seconds(pieces.words(heard).at(1).frames, 0.04, 2).begin == 2 + 7 * 0.04));
  CHECK((seconds({0, 25}, 0.04).end == 1));
  // With separators, the same pieces in any order; an output that is cut within a word; eos; what is no word.
  Lexicon const spaced(spellings, {6});
  CHECK(words(spaced, {.tokens = {6, 3, 4, 6, 6, 5, 6}}) == Words{"new 1-3 at 0-0", "new 5-6 at 0-0"});
  CHECK(words(spaced, {.tokens = {5, 6, 1, 2}}) == Words{"new 0-1 at 0-0", "... 2-4 at 0-0"});
  CHECK(words(spaced, {.tokens = {5, 9}, .finished = true}) == Words{"new 0-1 at 0-0"});
  CHECK(words(spaced, {}).empty());
  CHECK_THROWS_WITH(spaced.words({.tokens = {5, 5}}), "sluice: token 1 = 5: goes on to no word of the lexicon");
  CHECK_THROWS_WITH(Lexicon().words({}), "sluice: lexicon = empty: must have words");
  // Listed twice is listed once; the first of equal spellings is told.
  Lexicon const twice({{"new", {5}}, {"knew", {5}}, {"new", {5}}}, {6, 6});
  CHECK(words(twice, {.tokens = {5, 6, 5}}) == Words{"new 0-1 at 0-0", "new 2-3 at 0-0"});
  CHECK_THROWS_WITH(Lexicon({{"new", {5}}}, {-1}), "sluice: lexicon: separator = -1: must not be negative");
}

TEST_CASE("n-grams of tokens", "[ctc][ngram]") {
  check_all(
      CtcBeamSearch<NoRule, NGramModel<>>{}, [](Text const&) { return 0.0; }, 1);
  check_all(
      CtcBeamSearch<NoRule, WordModel<>>{}, [](Text const&) { return 0.0; }, 1);
  check_all(
      CtcBeamSearch<NoRule, LexiconNGrams>{}, [](Text const&) { return 0.0; }, 1);
  auto const grams = grams_of({"a", "b"});  // the space is unknown
  auto const table = table_of(grams);
  NGramModel<> const model(table, {-1, table.word("a"), table.word("b"), -1},
                           {.weight = 0.7, .bonus = 0.4, .unknown = -0.5});
  check_all(CtcBeamSearch<NoRule, NGramModel<>>{.language_model = model}, [&](Text const& text) {
    std::vector<std::string> words;
    for (auto const token : text) words.push_back(token == 3 ? "?" : std::string(1, letters[std::size_t(token)]));
    return 0.7 * naive(grams, words, -0.5) + 0.4 * double(words.size());
  });
  auto const vocabulary = ctc_text_vocabulary(4, 0);
  check_narrow(CtcBeamSearch<NoRule, NGramModel<>>{.language_model = model}, replayed(model, vocabulary), 4);
}

TEST_CASE("n-grams of words, of any words and of a lexicon's", "[ctc][ngram]") {
  auto const grams = grams_of({"ab", "a", "bab", "b", "c"});
  auto const table = table_of(grams);
  FusionWeights const weights{.weight = 0.6, .bonus = 0.8, .unknown = -1.5};
  auto const vocabulary = ctc_text_vocabulary(4, 0);
  WordModel<> const open(table, bytes, weights);
  check_all(CtcBeamSearch<NoRule, WordModel<>>{.language_model = open}, [&](Text const& text) {
    auto const words = words_of(written(text));
    return 0.6 * naive(grams, words, -1.5) + 0.8 * double(words.size());
  });
  check_narrow(CtcBeamSearch<NoRule, WordModel<>>{.language_model = open}, replayed(open, vocabulary), 4);

  // "ab" and "c" are spelt alike; "new" is not in the table.
  std::vector<Spelling> const spellings{{"ab", {1, 2}},     {"c", {1, 2}},   {"a", {1}},
                                        {"bab", {2, 1, 2}}, {"bab", {2, 2}}, {"new", {1, 1}}};
  Lexicon const lexicon(spellings, {3});
  LexiconNGrams const closed(lexicon, table, weights);
  auto const best = [&](Text const& text) {
    Words context{"<s>"};
    double sum = 0;
    for (auto const& word : words_of(written(text))) {
      auto most = no;
      std::string which;
      for (auto const& one : spellings) {
        if (written(one.tokens) != word) continue;
        auto const its = grams.log_prob(context, one.word) * std::numbers::ln10 + (one.word == "new" ? -1.5 : 0);
        if (its > most) most = its, which = one.word;
      }
      if (which.empty()) return no;
      sum += 0.6 * most + 0.8, context.push_back(which);
    }
    return sum + 0.6 * grams.log_prob(context, "</s>") * std::numbers::ln10;
  };
  check_all(CtcBeamSearch<NoRule, LexiconNGrams>{.language_model = closed}, best);
  check_all(CtcBeamSearch<Lexicon, LexiconNGrams>{.rule = lexicon, .language_model = closed}, best, 2);
  check_narrow(CtcBeamSearch<NoRule, LexiconNGrams>{.language_model = closed}, replayed(closed, vocabulary), 4);
  // Without a separator.
  std::vector<Spelling> const pieces{{"ab", {1, 2}}, {"a", {1}}, {"bab", {1, 2, 3}}};
  LexiconNGrams const joined{Lexicon(pieces), table, weights};
  check_all(CtcBeamSearch<NoRule, LexiconNGrams>{.language_model = joined}, [&](Text const& text) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] != 1) return no;
      auto const two = i + 1 < text.size() && text[i + 1] == 2, three = two && i + 2 < text.size() && text[i + 2] == 3;
      words.push_back(three ? "bab" : two ? "ab" : "a");
      i += three ? 3 : two ? 2 : 1;
    }
    return 0.6 * naive(grams, words, 0) + 0.8 * double(words.size());
  });
  check_narrow(CtcBeamSearch<NoRule, LexiconNGrams>{.language_model = joined}, replayed(joined, vocabulary), 4);
}

TEST_CASE("any model as a language model: one row for each new prefix, those of all utterances in one call",
          "[ctc][ngram]") {
  auto const table = table_of(grams_of({"a", "b"}));
  FusionWeights const weights{.weight = 0.7, .bonus = 0.4, .unknown = -0.5};
  std::vector<RandomFrames> all;
  for (std::uint64_t i = 0; i < 24; ++i) all.emplace_back(300 + i, 1 + static_cast<std::int32_t>(i * 13 % 60), 4, 2);
  std::vector<MatrixView<float const>> sources;
  for (auto const& frames : all) sources.push_back(frames.view());
  CtcFrames<> frames(4, 0, Kind::log_probs);
  CtcBeamSearch<NoRule, NGramModel<>> const inside{
      .width = 6,
      .n_best = 3,
      .language_model = NGramModel<>(table, {-1, table.word("a"), table.word("b"), -1}, weights)};
  auto const expected = decode(frames, sources, inside);
  std::uint64_t rows = 0;
  std::vector<Result> first;
  for (auto const block : {64, 5})
    for (auto const size : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      CountedNGrams language(table);
      WithLanguageModel model(frames, language, {0, 0, 2, 4});
      CtcBeamSearch<NoRule, FusionWeights> const search{
          .width = 6, .n_best = 3, .block = block, .language_model = {weights}};
      Decoder decoder(model, search, Streaming{.size = size, .refill_below = 1.0});
      for (auto const& source : sources) decoder.submit({.source = source});
      std::vector<Result> results(sources.size());
      Result result;
      while (decoder.step())
        while (decoder.poll(result)) results[result.id] = result;
      while (decoder.poll(result)) results[result.id] = result;
      CHECK(language.calls <= decoder.statistics().steps);
      if (rows == 0) rows = language.rows;
      CHECK(language.rows == rows);
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO(results[i].message);
        REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
        for (std::size_t k = 0; k < expected[i].hypotheses.size(); ++k) {
          auto const &a = results[i].hypotheses[k], &b = expected[i].hypotheses[k];
          CHECK(a.tokens == b.tokens);
          CHECK(a.frames == b.frames);
          CHECK_THAT(a.log_prob, WithinAbs(b.log_prob, 1e-9));
          CHECK_THAT(a.score, WithinAbs(b.score, 1e-4));
          if (!first.empty()) CHECK((a.score == first[i].hypotheses[k].score));
        }
      }
      if (first.empty()) first = results;
    }
  // A label that stands for no token is impossible, at any weight.
  CountedNGrams language(table);
  WithLanguageModel model(frames, language, {0, 0, -1, 4});
  auto const without =
      decode(model, sources, CtcBeamSearch<NoRule, FusionWeights>{.width = 6, .language_model = {.weight = 0}});
  auto const forbidden = decode(frames, sources, CtcBeamSearch<ForbidTokens>{.width = 6, .rule = {{2}}});
  for (std::size_t i = 0; i < without.size(); ++i) {
    REQUIRE(without[i].hypotheses.size() == 1);
    CHECK(without[i].hypotheses[0].tokens == forbidden[i].hypotheses[0].tokens);
    CHECK_THAT(without[i].hypotheses[0].score, WithinAbs(forbidden[i].hypotheses[0].score, 1e-9));
  }
  auto const other =
      decode(model, sources, CtcBeamSearch<NoRule, FusionWeights>{.width = 6, .blank = 1, .language_model = {weights}})
          .at(0);
  CHECK(other.failure == Failure::bad_request);
  CHECK(other.message == "sluice: blank = 1: must be that of the model beside the language model, 0");
  CHECK_THROWS_WITH(WithLanguageModel(frames, language, {0}),
                    "sluice: WithLanguageModel: tokens.size() = 1: must be the number of labels, 4");
  CHECK_THROWS_WITH(WithLanguageModel(frames, language, {0, 1, 2, 5}),
                    "sluice: WithLanguageModel: token = 5: is outside the vocabulary of 5");
}

TEST_CASE("rules and language models that do not suit are named", "[ctc]") {
  auto const table = table_of(grams_of({"a"}));
  CHECK_THROWS_WITH(NGramModel<>(table, {9}), "sluice: NGramModel: word = 9: the table has 4");
  CHECK_THROWS_WITH(NGramModel<>(table, {}, FusionWeights{.weight = -1}),
                    "sluice: weights.weight = -1.000000: must be a number >= 0");
  CHECK_THROWS_WITH(LexiconNGrams(Lexicon(), table), "sluice: LexiconNGrams: lexicon = empty: must have words");
  RandomFrames const frames(1, 5, 4);
  CtcFrames<> model(4, 0, Kind::log_probs);
  auto const told = [&](auto const& search) {
    auto const result = decode(model, std::vector{frames.view()}, search).at(0);
    CHECK(result.failure == Failure::bad_request);
    return result.message;
  };
  CHECK(told(CtcBeamSearch<NoRule, NGramModel<>>{.language_model = NGramModel<>(table, {0, 0})})
            .find("NGramModel: words.size() = 2: must be that of the vocabulary, 4") != std::string::npos);
  CHECK(told(CtcBeamSearch<NoRule, WordModel<>>{.language_model = WordModel<>(table, {})})
            .find("WordModel: bytes.size() = 0: must be that of the vocabulary, 4") != std::string::npos);
  CHECK(
      told(CtcBeamSearch<Factor>{}).find("a rule's edit: penalty = 2.000000: a search over frames has no one score") !=
      std::string::npos);
}
