// SPDX-License-Identifier: Apache-2.0
// Frames of speech and handwriting that others recorded, and the texts that others say are in them.
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>

#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

auto const folder = std::filesystem::path(SLUICE_SHARED_DIR) / "frames";

bool missing() {
  if (std::filesystem::is_directory(folder)) return false;
  std::cout << "SKIPPED: needs " << folder << '\n';
  return true;
}
std::string contents(std::filesystem::path const& file) {
  std::ifstream stream(file, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Frames and the spelling of their labels; the last one is the blank.
struct Utterance {
  std::vector<std::string> labels;  // without the blank
  std::vector<float> scores;        // [frames, labels + 1]

  std::int32_t size() const { return static_cast<std::int32_t>(labels.size()) + 1; }
  Token blank() const { return size() - 1; }
  Scores<float> frames(Kind kind) const {
    return sluice::scores(scores.data(), std::ssize(scores) / size(), size(), kind);
  }
  std::string text(std::vector<Token> const& tokens) const {
    std::string out;
    for (auto const token : tokens) out += labels[static_cast<std::size_t>(token)];
    return out;
  }
  std::vector<Token> tokens(std::string const& text) const {
    std::vector<Token> out;
    for (auto const letter : text)
      out.push_back(
          static_cast<Token>(std::find(labels.begin(), labels.end(), std::string(1, letter)) - labels.begin()));
    return out;
  }
  TokenBytes bytes() const {
    auto all = labels;
    all.emplace_back();
    return TokenBytes(all);
  }
  template <class S>
  Result decode(S const& search, Kind kind = Kind::logits) const {
    CtcFrames<> model(size(), blank(), kind);
    return sluice::decode(model, std::vector<MatrixView<float const>>{frames(kind)}, search).at(0);
  }
  template <class S>
  std::string best(S const& search, Kind kind = Kind::logits) const {
    auto const result = decode(search, kind);
    INFO(result.message);
    REQUIRE(!result.hypotheses.empty());
    return text(result.hypotheses[0].tokens);
  }
};

Utterance speech() {
  Utterance made;
  for (auto const letter : std::string(" abcdefghijklmnopqrstuvwxyz'")) made.labels.emplace_back(1, letter);
  auto const json = nlohmann::json::parse(contents(folder / "libri/libri_logits.json"));
  for (auto const& frame : json)
    for (auto const& x : frame) made.scores.push_back(x.get<float>());
  return made;
}

Utterance handwriting(int number) {
  Utterance made;
  auto const chars = contents(folder / "handwriting/chars.txt");
  for (std::size_t i = 0; i < chars.size();) {  // UTF-8
    auto const lead = static_cast<unsigned char>(chars[i]);
    auto const length = lead < 0x80 ? 1u : lead < 0xE0 ? 2u : lead < 0xF0 ? 3u : 4u;
    made.labels.push_back(chars.substr(i, length)), i += length;
  }
  std::istringstream lines(contents(folder / ("handwriting/mat_" + std::to_string(number) + ".csv")));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ';');)
      if (!cell.empty() && cell != "\r") made.scores.push_back(std::stof(cell));
  }
  return made;
}

/// pyctcdecode's case: the first word is "bugs" with 0.49 and "bunny" with 0.51, the second "bunny" for certain.
Utterance bunny() {
  Utterance made{.labels = {" ", "b", "g", "n", "s", "u", "y"}, .scores = {}};
  auto const probability = [&](std::string const& first, std::string const& second) {
    for (std::size_t i = 0; i < first.size(); ++i)
      for (Token v = 0; v < 8; ++v) {
        auto const is = [&](char letter) { return (letter == '-' ? 7 : made.tokens(std::string(1, letter))[0]) == v; };
        auto const p = (is(first[i]) ? 0.49 : 0) + (is(second[i]) ? 0.51 : 0);
        made.scores.push_back(static_cast<float>(std::log((std::max)(p, 1e-15))));
      }
  };
  probability("bugs--", "bun-ny"), probability(" ", " "), probability("bun-ny", "bun-ny");
  return made;
}

/// A text ends with the separator, as a word of flashlight's lexicon does.
struct EndsSeparated {
  Token separator = 0, end = -1;
  struct State {
    bool separated = false;
  };
  State initial(Sentence const&) const { return {}; }
  State next(State, Token token) const { return {token == separator}; }
  void edit(State const& state, Output const&, std::vector<Edit>& edits) const {
    if (!state.separated) edits.push_back({.token = end, .add = -std::numeric_limits<float>::infinity()});
  }
};

/// flashlight/text's DecoderTest: ASG over letters with one repetition, a lexicon, and 3-grams of words.
struct Letters {
  std::vector<std::string> labels;
  std::vector<float> scores, transitions;
  std::vector<Spelling> lexicon;  // without the separator at the end, which is label 0
  NGramTable table;

  Letters() : table(read_table()) {
    std::ifstream letters(folder / "letters/letters.lst"), words(folder / "letters/words.lst");
    for (std::string label; letters >> label;) labels.push_back(label);
    labels.emplace_back("<1>");
    scores = floats("emission.bin"), transitions = floats("transition.bin");
    for (std::string line; std::getline(words, line);) {
      std::istringstream fields(line);
      Spelling one;
      fields >> one.word;
      for (std::string label; fields >> label;)
        one.tokens.push_back(static_cast<Token>(std::find(labels.begin(), labels.end(), label) - labels.begin()));
      REQUIRE(one.tokens.back() == 0);
      one.tokens.pop_back();
      one.tokens = pack_repetitions(one.tokens, repetition());
      lexicon.push_back(std::move(one));
    }
  }
  Token repetition() const { return size() - 1; }
  std::vector<Token> spell(std::string const& word) const {
    std::vector<Token> tokens;
    for (auto const letter : word)
      tokens.push_back(
          static_cast<Token>(std::find(labels.begin(), labels.end(), std::string(1, letter)) - labels.begin()));
    return pack_repetitions(tokens, repetition());
  }
  std::string text(std::vector<Token> const& tokens) const {
    std::string out;
    for (auto const token : unpack_repetitions(tokens, repetition()))
      out += token == 0 ? " " : labels[static_cast<std::size_t>(token)];
    return out;
  }
  std::int32_t size() const { return static_cast<std::int32_t>(labels.size()); }
  MatrixView<float const> moves() const { return {transitions.data(), size(), size(), size()}; }
  MatrixView<float const> frames() const { return {scores.data(), std::ssize(scores) / size(), size(), size()}; }

 private:
  static NGramTable read_table() {
    std::ifstream stream(folder / "letters/lm.arpa");
    return read_arpa(stream);
  }
  static std::vector<float> floats(char const* name) {
    auto const bytes = contents(folder / "letters" / name);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
};

}  // namespace

TEST_CASE("letters: flashlight's decoder test, ASG with transitions, a lexicon and 3-grams of words", "[asg][ngram]") {
  if (missing()) return;
  Letters letters;
  REQUIRE((letters.size() == 29 && letters.frames().rows == 235 && letters.transitions.size() == 29 * 29));
  auto const& table = letters.table;
  auto const in_tens = [](float log_prob) { return static_cast<double>(log_prob) / std::numbers::ln10; };

  // Its scores of the language model (KenLM, logarithms to base 10), and of the smeared trie: the best of the words that begin so, as
  // the first of a text; words that are spelt alike are added up.
  std::map<std::vector<Token>, double> firsts;
  for (auto const& one : letters.lexicon) {
    auto start = table.start();
    auto const its = in_tens(table.advance(start, table.word(one.word)));
    auto const [at, made] = firsts.emplace(one.tokens, its);
    if (!made) at->second = std::max(at->second, its) + std::log1p(std::exp(-std::abs(at->second - its)));
  }
  std::vector const grams{-1.05971, -4.19448, -3.33383, -2.76726, -1.16237, -4.64589},
      smeared{-1.05971, -2.87742, -2.64553, -3.05081, -1.05971, -3.08968};
  auto state = table.start();
  double total = 0;
  std::size_t place = 0;
  for (auto const* const word : {"the", "cat", "sat", "on", "the", "mat"}) {
    auto const log_prob = in_tens(table.advance(state, table.word(word)));
    CHECK_THAT(log_prob, WithinAbs(grams[place], 1e-5));
    total += log_prob;
    auto const start = letters.spell(word);
    auto most = -std::numeric_limits<double>::infinity();
    for (auto const& [tokens, its] : firsts)
      if (tokens.size() >= start.size() && std::equal(start.begin(), start.end(), tokens.begin()))
        most = std::max(most, its);
    CHECK_THAT(most, WithinAbs(smeared[place++], 1e-5));
  }
  CHECK_THAT(total + in_tens(table.advance(state, table.end())), WithinAbs(-19.5123, 1e-4));

  // Its options: lm_weight 2, word_score 2, sil_score -1 (a frame), no unknown words, threshold 100, log_add false.
  for (std::size_t frame = 0; frame < 235; ++frame) letters.scores[frame * 29] -= 1;
  auto const end = letters.size();
  AsgFrames<> model(letters.moves());
  AsgTransitions const transitions(letters.moves());
  LexiconNGrams const words(Lexicon(letters.lexicon, {0}), table, {.weight = 2 / std::numbers::ln10, .bonus = 2});

  // The texts that it finds with a beam of 2,500 have the scores that it says. There silence may stand first and is no part of the text.
  std::string const first = "slurp uday lexis zambia if i trista weeks' ",
                    second = " man loose slowdown ecosystem oldie elvis zoloft ionizer gmc freons mta pms nhl loara ",
                    third = "was wwf jc wpa to";
  std::vector<std::pair<std::string, double>> const expected{{"hijack" + second + "pin ", -284.0998},
                                                             {"hijack" + second, -284.108},
                                                             {"hijacker" + second + "pin ", -284.119},
                                                             {"hijacker" + second, -284.127},
                                                             {"hijack" + second + "pe ", -284.296}};
  for (auto const& [middle, score] : expected) {
    CatalogueBuilder builder;
    std::istringstream stream(first + middle + third);
    std::vector<Token> tokens{0};
    for (std::string word; stream >> word; tokens.push_back(0))
      for (auto const token : letters.spell(word)) tokens.push_back(token);
    builder.add(tokens);
    tokens.erase(tokens.begin());
    builder.add(tokens);
    CtcBeamSearch<Rules<InCatalogue, AsgTransitions>, LexiconNGrams> const one{
        .width = 1000,
        .top_tokens = 0,
        .viterbi = true,
        .rule = Rules(InCatalogue(builder.build()), transitions),
        .language_model = words};
    auto const result = decode(model, std::vector{letters.frames()}, one).at(0);
    REQUIRE(result.ok());
    CHECK_THAT(result.hypotheses[0].score, WithinAbs(score, 1e-3));
  }

  // There is better to be found. With a beam of 100,000 it says -283.415; here, where a growing word is charged what is best as a unigram,
  // and not after the beginning of a text, 5,000 are enough for:
  CtcBeamSearch<Rules<EndsSeparated, AsgTransitions>, LexiconNGrams> const free{
      .width = 5000,
      .top_tokens = 0,
      .threshold = 100,
      .viterbi = true,
      .rule = Rules(EndsSeparated{0, end}, transitions),
      .language_model = words};
  auto const result = decode(model, std::vector{letters.frames()}, free).at(0);
  REQUIRE(result.ok());
  CHECK(result.hypotheses[0].score > -283.415);
  CHECK(letters.text(result.hypotheses[0].tokens).substr(0, 17) == "slurp uday lexis ");
}

TEST_CASE("speech: pyctcdecode's text, and its hotwords", "[ctc]") {
  if (missing()) return;
  auto const libri = speech();
  REQUIRE(libri.scores.size() == 371 * 29);
  std::string const expected =
      "i have a good deal of will you remember and what i have set my mind upon no doubt i shall some day achieve";
  // pyctcdecode's options, ours, and none.
  CHECK(libri.best(CtcBeamSearch<>{.width = 100, .top_tokens = 0, .token_floor = -5, .threshold = 10}) == expected);
  CHECK(libri.best(CtcBeamSearch<>{}) == expected);
  auto const result = libri.decode(CtcBeamSearch<>{.width = 500, .n_best = 5, .top_tokens = 0});
  CHECK(libri.text(result.hypotheses[0].tokens) == expected);
  auto const& best = result.hypotheses[0];
  for (std::size_t i = 1; i < best.frames.size(); ++i) CHECK(best.frames[i].begin >= best.frames[i - 1].end);
  CHECK(best.frames.back().end <= 371);
  // Its words, and others that are spelt like beginnings of them: the same text. A wrong word that is boosted enough replaces a right one.
  std::vector<Spelling> lexicon;
  std::istringstream words(expected + " dough sum goo reach ember hand");
  for (std::string word; words >> word;) lexicon.push_back({word, libri.tokens(word)});
  CHECK(libri.best(CtcBeamSearch<Lexicon>{.rule = Lexicon(lexicon, {0})}) == expected);
  auto const boosted = [&](std::string const& phrase, float whole) {
    return Bias({{.spellings = {libri.tokens(phrase)}, .whole = whole}});
  };
  CHECK(libri.best(CtcBeamSearch<Bias>{.rule = boosted("dead", 10)}) == expected);
  CHECK(libri.best(CtcBeamSearch<Bias>{.rule = boosted("sum day", 40)}).find("sum day") != std::string::npos);
}

TEST_CASE("pyctcdecode's bunny: n-grams and hotwords change the first word", "[ctc][ngram]") {
  if (missing()) return;
  auto const both = bunny();
  std::ifstream stream(folder / "libri/bugs_bunny_kenlm.arpa");
  auto const table = read_arpa(stream);
  auto const grams = [&](double weight) {
    return CtcBeamSearch<NoRule, WordModel<>>{
        .language_model = WordModel<>(table, both.bytes(), {.weight = weight, .bonus = 1.5, .unknown = -10})};
  };
  // pyctcdecode's hotwords are whole words. Here phrases are of labels, so the space after the word belongs to them: without it the best
  // text is "bugsny bunny".
  auto const words = [&](std::vector<std::string> const& hotwords, float whole) {
    std::vector<BiasedPhrase> phrases;
    for (auto const& one : hotwords) phrases.push_back({.spellings = {both.tokens(one + " ")}, .whole = whole});
    return Bias(phrases);
  };
  auto const kind = Kind::log_probs;
  CHECK(both.best(CtcBeamSearch<>{}, kind) == "bunny bunny");
  CHECK(both.text(ctc_best_path(both.frames(kind), both.blank()).tokens) == "bunny bunny");
  CHECK(both.best(grams(0), kind) == "bunny bunny");
  CHECK(both.best(grams(1), kind) == "bugs bunny");
  CHECK(both.best(CtcBeamSearch<Bias>{.rule = words({"bugs"}, 10)}, kind) == "bugs bunny");
  CtcBeamSearch<Bias, WordModel<>> fused{.rule = words({"bunny"}, 40), .language_model = grams(0.5).language_model};
  CHECK(both.best(fused, kind) == "bunny bunny");
  fused.rule = words({"bugs", "bunny"}, 40);
  CHECK(both.best(fused, kind) == "bugs bunny");
  fused.rule = words({"bugs bunny"}, 40);
  CHECK(both.best(fused, kind) == "bugs bunny");
  // Only the best label of each frame.
  auto narrow = grams(1);
  narrow.token_floor = 0;
  CHECK(both.best(narrow, kind) == "bunny bunny");
}

TEST_CASE("handwriting: what is written, with and without words of the corpus", "[ctc]") {
  if (missing()) return;
  auto const corpus = contents(folder / "handwriting/corpus.txt"),
             letters = contents(folder / "handwriting/wordChars.txt");
  for (auto const number : {0, 1}) {
    auto const line = handwriting(number);
    REQUIRE(line.scores.size() == static_cast<std::size_t>(100 * line.size()));
    auto const truth = contents(folder / ("handwriting/gt_" + std::to_string(number) + ".txt"));
    auto const written = line.text(ctc_best_path(line.frames(Kind::logits), line.blank()).tokens);
    std::set<std::string> known;
    std::string word;
    std::vector<Token> separators;
    for (Token v = 0; v < line.blank(); ++v)
      if (letters.find(line.labels[static_cast<std::size_t>(v)]) == std::string::npos) separators.push_back(v);
    for (auto const letter : corpus + " ")
      if (letters.find(letter) != std::string::npos) word += letter;
      else if (!word.empty()) known.insert(word), word.clear();
    std::vector<Spelling> lexicon;
    for (auto const& one : known) lexicon.push_back({one, line.tokens(one)});
    auto const beam = line.best(CtcBeamSearch<>{.width = 100});
    INFO(written << " | " << beam);
    CHECK((written == truth) == (number == 0));  // the second is read wrong without its word
    CHECK((beam == truth) == (number == 0));
    CHECK(line.best(CtcBeamSearch<Lexicon>{.rule = Lexicon(lexicon, separators)}) == truth);
  }
}
