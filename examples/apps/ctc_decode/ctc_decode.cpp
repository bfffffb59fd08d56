// SPDX-License-Identifier: Apache-2.0
// ctc_decode: texts of matrices of frames, which any recogniser trained with CTC has computed, over the C interface: words, n-grams, hotwords,
// n-best lists, times of words, forced alignment, and the weight of a language model.
#include <sluice/c/sluice.h>

#include <text/bias.hpp>
#include <text/lines.hpp>
#include <text/words.hpp>
#include <translate/progress.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ctc_decode/errors.hpp>
#include <ctc_decode/labels.hpp>
#include <ctc_decode/matrix.hpp>
#include <ctc_decode/options.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ctc_decode {

namespace {

using Json = nlohmann::ordered_json;

void expect(sluice_status status) {
  if (status == SLUICE_OK) return;
  if (status == SLUICE_BAD_ARGUMENT) throw text::InputError(sluice_last_error());
  throw std::runtime_error(sluice_last_error());
}

template <auto free>
struct Free {
  template <class T>
  void operator()(T* handle) const {
    free(handle);
  }
};
using Ctc = std::unique_ptr<sluice_ctc, Free<sluice_ctc_free>>;
using Search = std::unique_ptr<sluice_search, Free<sluice_search_free>>;
using NGrams = std::unique_ptr<sluice_ngrams, Free<sluice_ngrams_free>>;
using Results = std::unique_ptr<sluice_frames_results, Free<sluice_frames_results_free>>;

std::vector<sluice_bytes> views(std::vector<std::string> const& texts) {
  std::vector<sluice_bytes> all;
  all.reserve(texts.size());
  for (auto const& one : texts) all.push_back({one.data(), one.size()});
  return all;
}

/// What the options say of texts, but for the weights of the language model.
class Texts {
 public:
  explicit Texts(Options const& options)
      : options_(options), labels_(options.labels, options.blank, options.separator) {
    if (!options.lexicon.empty()) lexicon_ = labels_.lexicon(options.lexicon);
    for (auto const& spelling : lexicon_) {
      words_.push_back(spelling.word), lengths_.push_back(spelling.labels.size());
      tokens_.insert(tokens_.end(), spelling.labels.begin(), spelling.labels.end());
    }
    if (!options.language.given()) return;
    sluice_ngrams* table = nullptr;
    expect(sluice_ngrams_open(options.language.ngrams.c_str(), &table));
    ngrams_.reset(table);
    if (options.language.of == "words") return;
    ngram_words_.resize(labels_.size());
    auto const names = text::label_words(text::read_lines(options.labels));
    expect(sluice_ngrams_find(table, views(names).data(), names.size(), ngram_words_.data()));
  }

  Labels const& labels() const { return labels_; }
  std::string const& word(std::int32_t spelling) const { return words_[static_cast<std::size_t>(spelling)]; }

  Ctc ctc(double weight, double bonus) const {
    auto const texts = views(labels_.texts()), words = views(words_);
    auto const separator = labels_.separator();
    sluice_ctc_options made{};
    made.size = sizeof made, made.labels = static_cast<std::int32_t>(labels_.size()), made.blank = labels_.blank();
    made.log_probs = options_.kind != "logits";
    made.texts = texts.data();
    made.separators = &separator, made.separator_count = separator >= 0 ? 1 : 0;
    made.words = words.data(), made.tokens = tokens_.data(), made.lengths = lengths_.data();
    made.spellings = words.size();
    made.ngrams = ngrams_.get(), made.ngram_words = ngram_words_.empty() ? nullptr : ngram_words_.data();
    made.weight = &weight, made.bonus = bonus, made.unknown = options_.language.unknown;
    sluice_ctc* ctc = nullptr;
    expect(sluice_ctc_create(&made, &ctc));
    return Ctc(ctc);
  }

  Search search() const {
    sluice_search* made = nullptr;
    expect(sluice_search_create("ctc", &made));
    Search search(made);
    auto const set = [&](char const* name, double value) { expect(sluice_search_set(made, name, value)); };
    set("width", options_.beam), set("n_best", (std::max)(1, options_.n_best)), set("viterbi", options_.viterbi);
    if (options_.top_tokens > 0) set("top_tokens", options_.top_tokens);
    if (options_.token_floor) set("token_floor", *options_.token_floor);
    if (options_.threshold) set("threshold", *options_.threshold);
    if (options_.skip_blank) set("skip_blank", *options_.skip_blank);
    if (!options_.hotwords.empty()) prefer(made);
    return search;
  }

 private:
  /// Where a label stands between words, phrases are whole words.
  void prefer(sluice_search* search) const {
    auto const terms = text::read_bias(options_.hotwords);
    if (terms.empty()) return;
    auto const separator = labels_.separator();
    std::vector<std::vector<sluice_token>> spelt(terms.size());
    std::vector<std::size_t> lengths(terms.size());
    std::vector<sluice_biased_phrase> phrases(terms.size());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      spelt[i] = labels_.spell(terms[i].phrase, terms[i].name);
      if (separator >= 0) spelt[i].insert(spelt[i].begin(), separator), spelt[i].push_back(separator);
      lengths[i] = spelt[i].size();
      phrases[i] = {spelt[i].data(), &lengths[i], 1, terms[i].boost, terms[i].per_token};
    }
    sluice_bias_options given{};
    given.size = sizeof given, given.lead = separator >= 0 ? 1 : 0;
    sluice_bias* bias = nullptr;
    expect(sluice_bias_create(phrases.data(), phrases.size(), &given, &bias));
    auto const status = sluice_search_prefer(search, bias);
    sluice_bias_free(bias);
    expect(status);
  }

  Options const& options_;
  Labels labels_;
  std::vector<Spelling> lexicon_{};
  std::vector<std::string> words_{};
  std::vector<sluice_token> tokens_{};
  std::vector<std::size_t> lengths_{};
  NGrams ngrams_{};
  std::vector<std::int32_t> ngram_words_{};
};

class Program {
 public:
  explicit Program(Options const& options) : options_(options), files_(options.matrices), texts_(options) {
    if (!options.list.empty())
      for (auto& line : text::read_lines(options.list))
        if (!line.empty()) files_.emplace_back(std::move(line));
    if (!options.references.empty()) {
      references_ = text::read_lines(options.references);
      if (references_.size() != files_.size())
        throw text::InputError(options.references.string() + " has " + std::to_string(references_.size()) +
                               " lines, and there are " + std::to_string(files_.size()) + " matrices");
    }
  }

  int run() {
    if (options_.align) return align();
    if (options_.sweep) return sweep();
    auto const ctc = texts_.ctc(options_.language.weight, options_.language.bonus);
    auto const search = texts_.search();
    translate::Progress progress(options_.progress, "ctc_decode", "matrices");
    progress.expect(files_.size());
    auto const threads = options_.threads > 0
                             ? static_cast<std::size_t>(options_.threads)
                             : (std::max)(std::size_t{1}, std::size_t{std::thread::hardware_concurrency()});
    auto failed = false;
    for (std::size_t begin = 0; begin < files_.size(); begin += 8 * threads) {
      auto const count = (std::min)(8 * threads, files_.size() - begin);
      std::vector<Matrix> matrices;
      matrices.reserve(count);
      for (std::size_t i = begin; i < begin + count; ++i) matrices.push_back(read(files_[i]));
      auto const results = decode(*ctc, *search, matrices);
      for (std::size_t i = 0; i < count; ++i) {
        auto const& result = *sluice_frames_results_at(results.get(), i);
        auto const& file = files_[begin + i];
        if (result.count == 0) progress.say(file.string() + ": " + result.message), failed = true;
        else if (!references_.empty()) compare(result, begin + i, characters_, words_);
        print(result, file);
      }
      progress.add(count);
    }
    progress.finish();
    text::finish_standard_output();
    if (!references_.empty())
      std::fprintf(stderr, "ctc_decode: errors: %.2f %% of %zu characters, %.2f %% of %zu words\n",
                   characters_.percent(), characters_.of, words_.percent(), words_.of);
    return failed ? 1 : 0;
  }

 private:
  Matrix read(std::filesystem::path const& file) const {
    auto matrix = read_matrix(file, texts_.labels().size());
    if (options_.kind == "probs")
      for (auto& score : matrix.scores) {
        if (!(score >= 0)) throw text::InputError(file.string() + ": has a number that is no probability");
        score = std::log(score);
      }
    return matrix;
  }

  Results decode(sluice_ctc const& ctc, sluice_search const& search, std::vector<Matrix> const& matrices) const {
    std::vector<sluice_ctc_matrix> given;
    given.reserve(matrices.size());
    for (auto const& one : matrices) given.push_back({one.scores.data(), one.frames, 0});
    sluice_frames_results* results = nullptr;
    expect(sluice_ctc_decode(&ctc, &search, given.data(), given.size(), static_cast<std::size_t>(options_.threads),
                             &results));
    return Results(results);
  }

  void compare(sluice_frames_result const& result, std::size_t number, ErrorRate& characters, ErrorRate& words) const {
    auto const found = result.count == 0 ? std::string() : text_of(result.hypotheses[0]);
    characters.add(text::characters(found), text::characters(references_[number]));
    words.add(Labels::split(found), Labels::split(references_[number]));
  }

  std::string text_of(sluice_frames_hypothesis const& found) const {
    return texts_.labels().text(found.tokens, found.count);
  }
  Json time(std::int32_t frame) const {
    return options_.seconds > 0 ? Json(std::round(frame * options_.seconds * 1e6) / 1e6) : Json(frame);
  }
  static double rounded(double value) { return std::round(value * 1e4) / 1e4; }
  static void write(Json const& json) {
    std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }

  void print(sluice_frames_result const& result, std::filesystem::path const& file) const {
    if (options_.json) {
      Json json{{"file", file.string()}, {"frames", result.frames}};
      if (result.count == 0) json["error"] = result.message;
      json["hypotheses"] = Json::array();
      for (std::size_t i = 0; i < result.count; ++i) json["hypotheses"].push_back(json_of(result.hypotheses[i]));
      write(json);
      return;
    }
    if (result.count == 0) std::printf("\n");
    for (std::size_t i = 0; i < result.count; ++i) {
      if (options_.n_best > 0) std::printf("%.4f\t", result.hypotheses[i].score);
      std::printf("%s\n", text_of(result.hypotheses[i]).c_str());
    }
  }
  Json json_of(sluice_frames_hypothesis const& found) const {
    Json words = Json::array();
    for (std::size_t i = 0; i < found.word_count; ++i) {
      auto const& word = found.words[i];
      auto const text = word.spelling >= 0 ? texts_.word(word.spelling)
                                           : texts_.labels().text(found.tokens + word.begin,
                                                                  static_cast<std::size_t>(word.end - word.begin));
      words.push_back({{"word", text},
                       {"start", time(word.first_frame)},
                       {"end", time(word.end_frame)},
                       {"confidence", rounded(static_cast<double>(word.confidence))}});
    }
    return {{"text", text_of(found)},
            {"score", rounded(found.score)},
            {"log_prob", rounded(found.log_prob)},
            {"words", words}};
  }

  int align() {
    auto const ctc = texts_.ctc(options_.language.weight, options_.language.bonus);
    auto const tokens = texts_.labels().spell(*options_.align, "--align");
    if (tokens.empty()) throw text::InputError("--align: '': must have a label");
    auto failed = false;
    for (auto const& file : files_) {
      auto const matrix = read(file);
      sluice_ctc_matrix const given{matrix.scores.data(), matrix.frames, 0};
      std::vector<std::int32_t> frames(2 * tokens.size());
      std::vector<double> log_probs(tokens.size());
      double log_prob = 0;
      expect(sluice_ctc_align(ctc.get(), &given, tokens.data(), tokens.size(), frames.data(), log_probs.data(),
                              &log_prob));
      if (!std::isfinite(log_prob)) {
        std::fprintf(stderr, "ctc_decode: %s: its %zu frames cannot be '%s'\n", file.c_str(), matrix.frames,
                     options_.align->c_str());
        failed = true;
        continue;
      }
      Json labels = Json::array();
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        auto const& label = texts_.labels().texts()[static_cast<std::size_t>(tokens[i])];
        auto const begin = time(frames[2 * i]), end = time(frames[2 * i + 1]);
        if (options_.json)
          labels.push_back({{"label", label}, {"start", begin}, {"end", end}, {"log_prob", rounded(log_probs[i])}});
        else std::printf("%s\t%s\t%s\n", begin.dump().c_str(), end.dump().c_str(), label.c_str());
      }
      if (options_.json)
        write(
            {{"file", file.string()}, {"text", *options_.align}, {"log_prob", rounded(log_prob)}, {"labels", labels}});
    }
    text::finish_standard_output();
    return failed ? 1 : 0;
  }

  int sweep() {
    std::vector<Matrix> matrices;
    matrices.reserve(files_.size());
    for (auto const& file : files_) matrices.push_back(read(file));
    auto const search = texts_.search();
    translate::Progress progress(options_.progress, "ctc_decode", "matrices");
    progress.expect(files_.size() * options_.weights.size() * options_.bonuses.size());
    struct Row {
      double weight, bonus;
      ErrorRate characters, words;
    };
    std::vector<Row> rows;
    for (auto const weight : options_.weights)
      for (auto const bonus : options_.bonuses) {
        auto& row = rows.emplace_back(Row{weight, bonus, {}, {}});
        auto const results = decode(*texts_.ctc(weight, bonus), *search, matrices);
        for (std::size_t i = 0; i < files_.size(); ++i)
          compare(*sluice_frames_results_at(results.get(), i), i, row.characters, row.words);
        progress.add(files_.size());
      }
    progress.finish();
    std::printf("weight\tbonus\tcharacters\twords\n");
    for (auto const& row : rows)
      std::printf("%g\t%g\t%.2f %%\t%.2f %%\n", row.weight, row.bonus, row.characters.percent(), row.words.percent());
    auto const& best = *std::min_element(rows.begin(), rows.end(), [](Row const& a, Row const& b) {
      return std::pair(a.characters.errors, a.words.errors) < std::pair(b.characters.errors, b.words.errors);
    });
    std::printf("best: --weight %g --bonus %g\n", best.weight, best.bonus);
    text::finish_standard_output();
    return 0;
  }

  Options const& options_;
  std::vector<std::filesystem::path> files_;
  Texts texts_;
  std::vector<std::string> references_{};
  ErrorRate characters_{}, words_{};
};

}  // namespace

}  // namespace ctc_decode

int main(int argc, char** argv) {
  return text::run_program("ctc_decode", [&]() -> int {
    auto const options = ctc_decode::parse(argc, argv);
    return options ? ctc_decode::Program(*options).run() : 0;
  });
}
