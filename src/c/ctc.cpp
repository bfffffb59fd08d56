// SPDX-License-Identifier: Apache-2.0
// CTC of the C interface; a separate file, compiled beside sluice.cpp. Its searches are four types: without rules and language
// model, with any n-grams, with any rules and n-grams, and with any rules and a language model that is run.

#include <sluice/c/sluice.h>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/frame_stream.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/phrase.hpp>

#include "frames.hpp"
#include "handles.hpp"
#include "options.hpp"
#include "passing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::c {

using PlainCtc = CtcBeamSearch<>;
using ModelledCtc = CtcBeamSearch<NoRule, AnyNGrams>;
using RuledCtc = CtcBeamSearch<TextRules, AnyNGrams>;
using FusedCtc = CtcBeamSearch<TextRules, FusionWeights>;
using AnyCtc = std::variant<PlainCtc, ModelledCtc, RuledCtc, FusedCtc>;

/// Decodes matrices, one after another.
template <class S>
class CtcWorker {
 public:
  CtcWorker(std::int32_t labels, Token blank, Kind kind)
      : model_(labels, blank, kind), decoder_(model_, S{}, Batched{.size = 1}) {}

  Result decode(MatrixView<float const> const& matrix, S const& search) {
    decoder_.submit({.source = matrix, .search = search});
    Result result;
    try {
      while (decoder_.step()) {
      }
    } catch (...) {  // which the result says
      if (!decoder_.poll(result)) throw;
      return result;
    }
    require(decoder_.poll(result), "matrix", "without a result", "must have one");
    return result;
  }

 private:
  CtcFrames<> model_;
  Decoder<CtcFrames<>, S> decoder_;
};

/// Workers of one type that no call has at present: what they have allocated is used again.
template <class S>
struct CtcWorkers {
  std::mutex mutex{};
  std::vector<std::unique_ptr<CtcWorker<S>>> idle{};
};
struct AllCtcWorkers {
  std::tuple<CtcWorkers<PlainCtc>, CtcWorkers<ModelledCtc>, CtcWorkers<RuledCtc>> of{};
};

}  // namespace sluice::c

using namespace sluice::c;
using sluice::require, sluice::Token;

namespace {

using sluice::MatrixView, sluice::Result;

bool flag_of(std::int32_t value, std::string_view name) {
  require(value == 0 || value == 1, name, value, "must be 0 or 1");
  return value == 1;
}

std::string numbered(std::string_view name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

/// Whether a line of logits or log-probabilities is one of probabilities.
bool sums_to_one(std::span<float const> line) {
  double sum = 0;
  for (auto const x : line) {
    if (!(x >= 0 && x <= 1)) return false;
    sum += static_cast<double>(x);
  }
  return std::abs(sum - 1) < 1e-3;
}

/// \param name  makes what the matrix is called in messages
template <class Name>
MatrixView<float const> matrix_of(sluice_ctc const& ctc, sluice_ctc_matrix const& given, Name const& name) {
  auto const labels = static_cast<std::size_t>(ctc.labels);
  auto const stride = given.stride == 0 ? labels : given.stride;
  if (given.scores == nullptr && given.frames != 0) require(false, name() + ".scores", "null", "must be numbers");
  if (stride < labels)
    require(false, name() + ".stride", stride, "must be at least the number of labels, " + std::to_string(labels));
  if (given.frames > std::size_t{(std::numeric_limits<std::int32_t>::max)()})
    require(false, name() + ".frames", given.frames, "must be below 2^31");
  auto const likely = [&](std::size_t frame) { return sums_to_one(std::span(given.scores + frame * stride, labels)); };
  if (given.frames != 0 && likely(0) && likely(given.frames / 2) && likely(given.frames - 1))
    require(false, name(), "numbers from 0 to 1 whose rows sum to 1",
            "are probabilities: give their logarithms, with log_probs");
  return {given.scores, static_cast<std::ptrdiff_t>(given.frames), ctc.labels, static_cast<std::ptrdiff_t>(stride)};
}

template <class S>
S with_options(sluice::CtcBeamSearch<> const& plain, Token blank) {
  S made;
  made.width = plain.width, made.n_best = plain.n_best, made.top_tokens = plain.top_tokens;
  made.token_floor = plain.token_floor, made.threshold = plain.threshold, made.skip_blank = plain.skip_blank;
  made.blank = blank, made.block = plain.block, made.endpoint = plain.endpoint, made.viterbi = plain.viterbi;
  return made;
}

AnyCtc search_of(sluice_ctc const& ctc, sluice_search const* given) {
  SearchOptions const usual{.plain = sluice::CtcBeamSearch<>{}};
  auto const& options = given == nullptr ? usual : given->options;
  auto const* const plain = std::get_if<sluice::CtcBeamSearch<>>(&options.plain);
  require(plain != nullptr, "search", "of another kind", "must be of kind ctc");
  auto trivial = false;
  auto rules = text_rules(options, ctc, trivial);
  auto const check = [](auto search) {
    search.check();
    return AnyCtc(std::move(search));
  };
  if (trivial && ctc.language.none() && ctc.model == nullptr) return check(with_options<PlainCtc>(*plain, ctc.blank));
  if (trivial && ctc.model == nullptr) {
    auto search = with_options<ModelledCtc>(*plain, ctc.blank);
    search.language_model = ctc.language;
    return check(std::move(search));
  }
  if (ctc.model != nullptr) {
    auto search = with_options<FusedCtc>(*plain, ctc.blank);
    search.rule = std::move(rules), search.language_model = ctc.weights;
    return check(std::move(search));
  }
  auto search = with_options<RuledCtc>(*plain, ctc.blank);
  search.rule = std::move(rules), search.language_model = ctc.language;
  return check(std::move(search));
}

template <class S>
std::vector<Result> decoded(sluice_ctc const& ctc, S const& search, std::span<MatrixView<float const> const> matrices,
                            std::size_t threads) {
  auto& workers = std::get<CtcWorkers<S>>(ctc.workers->of);
  std::vector<Result> results(matrices.size());
  std::atomic<std::size_t> next = 0;
  auto const work = [&] {
    std::unique_ptr<CtcWorker<S>> worker;
    {
      std::scoped_lock const lock(workers.mutex);
      if (!workers.idle.empty()) worker = std::move(workers.idle.back()), workers.idle.pop_back();
    }
    if (worker == nullptr) worker = std::make_unique<CtcWorker<S>>(ctc.labels, ctc.blank, ctc.kind);
    for (auto i = next++; i < matrices.size(); i = next++) results[i] = worker->decode(matrices[i], search);
    std::scoped_lock const lock(workers.mutex);
    workers.idle.push_back(std::move(worker));
  };
  if (threads == 0) threads = (std::max)(1u, std::thread::hardware_concurrency());
  threads = (std::min)(threads, matrices.size());
  if (threads <= 1) {
    work();
    return results;
  }
  std::vector<std::exception_ptr> problems(threads);
  {
    std::vector<std::jthread> pool;
    pool.reserve(threads);
    auto const run = [&](std::size_t number) {
      try {
        work();
      } catch (...) {
        problems[number] = std::current_exception();
      }
    };
    for (std::size_t i = 1; i < threads; ++i) pool.emplace_back(run, i);
    run(0);
  }
  for (auto const& problem : problems)
    if (problem != nullptr) std::rethrow_exception(problem);
  return results;
}
/// A language model that is run: by the caller's thread, for up to 32 matrices at a time.
std::vector<Result> decoded(sluice_ctc const& ctc, FusedCtc const& search,
                            std::span<MatrixView<float const> const> matrices, std::size_t /*threads*/) {
  ModelOf<sluice::CtcStream, FusedCtc> model(sluice::CtcStream(ctc.labels, ctc.blank, ctc.kind), ctc);
  std::vector<sluice::FrameStream> sources(matrices.size());
  for (std::size_t i = 0; i < matrices.size(); ++i) model.frames().append(sources[i], matrices[i], true);
  return sluice::decode(model.model(), sources, search, sluice::Streaming{.size = 32, .refill_below = 1});
}

std::string_view bytes_at(sluice_bytes const* all, std::size_t index, std::string_view name) {
  auto const& from = all[index];
  if (from.data == nullptr && from.count != 0)
    require(false, numbered(name, index) + ".data", "null", "must be as many bytes as it says");
  return {from.data, from.count};
}

sluice::Lexicon lexicon_of(sluice_ctc_options const& options, std::vector<Token> const& separators) {
  require(options.words != nullptr, "words", "null", "must be as many as `spellings` says");
  require(options.lengths != nullptr, "lengths", "null", "must be as many as `spellings` says");
  std::vector<sluice::Spelling> all(options.spellings);
  auto const* tokens = options.tokens;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].word = bytes_at(options.words, i, "words");
    all[i].tokens = copy(tokens, options.lengths[i], "tokens");
    tokens += options.lengths[i];
  }
  return sluice::Lexicon(std::move(all), separators);
}

AnyNGrams language_of(sluice_ctc_options const& options, sluice_ctc const& ctc) {
  auto const& table = options.ngrams->table;
  sluice::FusionWeights weights{.bonus = options.bonus, .unknown = options.unknown};
  if (options.weight != nullptr) weights.weight = *options.weight;
  if (options.ngram_words != nullptr)
    return AnyNGrams(sluice::NGramModel<>(table, {options.ngram_words, options.ngram_words + options.labels}, weights));
  if (!ctc.lexicon.trivial()) return AnyNGrams(sluice::LexiconNGrams(ctc.lexicon, table, weights));
  require(!ctc.texts.empty(), "texts", "null", "must be what labels write, for n-grams of words without a lexicon");
  return AnyNGrams(sluice::WordModel<>(table, sluice::TokenBytes(ctc.texts), weights));
}

void set_model(sluice_ctc_options const& options, sluice_ctc& ctc) {
  require(options.ngrams == nullptr, "model", "given",
          "is one language model, and ngrams are another: give one of them");
  require(options.unknown == 0, "unknown", options.unknown, "is for n-grams");
  auto& model = options.model->model;
  require(model.abilities().ragged, "model", "not ragged", "must be SLUICE_RAGGED: texts have different lengths");
  ctc.model = &model, ctc.weights.bonus = options.bonus;
  if (options.weight != nullptr) ctc.weights.weight = *options.weight;
  ctc.weights.check();
  ctc.model_tokens.resize(static_cast<std::size_t>(ctc.labels));
  if (options.model_tokens != nullptr) std::copy_n(options.model_tokens, ctc.labels, ctc.model_tokens.begin());
  else std::iota(ctc.model_tokens.begin(), ctc.model_tokens.end(), 0);
  auto const size = model.vocabulary().size;
  for (std::size_t label = 0; label < ctc.model_tokens.size(); ++label)
    if (auto const token = ctc.model_tokens[label]; static_cast<Token>(label) != ctc.blank)
      require(token >= -1 && token < size, numbered("model_tokens", label), token,
              "must be a token of the model's " + std::to_string(size) + ", or -1");
}

}  // namespace

sluice::c::TextRules sluice::c::text_rules(SearchOptions const& options, sluice_ctc const& texts, bool& trivial) {
  auto const& penalties = options.penalties;
  require(penalties.repetition == 1 && penalties.frequency == 0 && penalties.presence == 0, "penalties", "set",
          "are not for texts of frames");
  require(options.no_repeat_ngram.n == 0, "no_repeat_ngram", options.no_repeat_ngram.n, "is not for texts of frames");
  require(options.stop_tokens.empty() && options.stop_strings.empty(), "stop", "set",
          "is not for texts of frames, which end with these");
  require(options.callbacks.empty(), "process", "set", "is not for texts of frames, which have no row of scores");
  require(!options.watermark.on(), "watermark", "set", "is not for texts of frames");
  PhrasesOfWords phrases{options.bias, texts.separators.empty() ? -1 : texts.separators.front()};
  auto const words_alone = !texts.lexicon.trivial() && !texts.language.of_lexicon();
  trivial = options.forbidden.empty() && options.structure.trivial() && options.items.trivial() && phrases.trivial() &&
            !words_alone;
  return TextRules(Forbidden(options.forbidden), options.structure, options.items, std::move(phrases),
                   words_alone ? texts.lexicon : Lexicon());
}

std::vector<sluice_frames_word> sluice_ctc::words(sluice::Hypothesis const& found) const {
  std::vector<sluice_frames_word> all;
  auto const add = [&](std::int32_t begin, std::int32_t end, std::int32_t spelling) {
    if (begin == end) return;
    double sum = 0;
    for (auto i = begin; i < end; ++i) sum += static_cast<double>(found.log_probs[static_cast<std::size_t>(i)]);
    all.push_back({.begin = begin,
                   .end = end,
                   .first_frame = found.frames[static_cast<std::size_t>(begin)].begin,
                   .end_frame = found.frames[static_cast<std::size_t>(end) - 1].end,
                   .spelling = spelling,
                   .confidence = static_cast<float>(std::exp(sum / (end - begin)))});
  };
  if (!lexicon.trivial()) {
    for (auto const& word : lexicon.words(found)) add(word.begin, word.end, word.spelling);
    return all;
  }
  auto const size = static_cast<std::int32_t>(found.tokens.size());
  std::int32_t begin = 0;
  for (std::int32_t i = 0; i < size; ++i) {
    auto const token = found.tokens[static_cast<std::size_t>(i)];
    std::string_view const text = texts.empty() ? "" : std::string_view(texts[static_cast<std::size_t>(token)]);
    auto const separates = std::find(separators.begin(), separators.end(), token) != separators.end() ||
                           (!text.empty() && text.find_first_not_of(' ') == std::string_view::npos);
    if (separates || text.starts_with(' ')) add(begin, i, -1), begin = separates ? i + 1 : i;
    else if (text.ends_with(' ')) add(begin, i + 1, -1), begin = i + 1;
  }
  if (!separators.empty() || !texts.empty()) add(begin, size, -1);
  return all;
}

sluice_frames_result sluice_ctc::view(sluice::Result const& result, FramesView& view) const {
  static_assert(sizeof(sluice::FrameRange) == 2 * sizeof(std::int32_t));
  view.hypotheses.clear(), view.words.clear();
  view.hypotheses.reserve(result.hypotheses.size()), view.words.reserve(result.hypotheses.size());
  for (auto const& found : result.hypotheses) {
    auto const& its = view.words.emplace_back(words(found));
    view.hypotheses.push_back({.tokens = found.tokens.data(),
                               .frames = found.frames.empty() ? nullptr : &found.frames.front().begin,
                               .log_probs = found.log_probs.data(),
                               .count = found.tokens.size(),
                               .log_prob = found.log_prob,
                               .score = found.score,
                               .words = its.data(),
                               .word_count = its.size()});
  }
  return {.failure = name(result.failure),
          .message = result.message.c_str(),
          .hypotheses = view.hypotheses.data(),
          .count = view.hypotheses.size(),
          .frames = result.frames,
          .reserved = 0};
}

namespace {

template <class S>
class CtcStreamOf final : public StreamOf<sluice::CtcStream, S> {
  using Base = StreamOf<sluice::CtcStream, S>;

 public:
  CtcStreamOf(sluice_ctc const& its_ctc, S search)
      : Base(its_ctc, sluice::CtcStream(its_ctc.labels, its_ctc.blank, its_ctc.kind), std::move(search)) {
    this->begin(stream_);
  }
  void append(MatrixView<float const> const& frames, bool last) override {
    auto const all_came = stream_.over();  // before an endpoint, which left some
    require(!this->over && (!all_came || frames.rows == 0), "frames", frames.rows,
            "nothing may come after the last frame");
    this->over = last || all_came;
    if (this->ended) this->frames().append(stream_, frames, last);
    else if (all_came) this->go_on();
    else this->decode(frames, last);
  }
  bool next() override {
    auto const left = stream_.length() - this->found.frames;
    if (this->over && left <= 0) return false;
    stream_ = this->frames().rest(stream_, (std::min)(this->found.frames, stream_.length()));
    this->begin_next(stream_);
    return true;
  }

 private:
  sluice::FrameStream stream_{};
};

}  // namespace

extern "C" {

sluice_status sluice_ctc_create(sluice_ctc_options const* options, sluice_ctc** ctc) {
  return guarded([&] {
    auto const given = taken(not_null(options, "options"));
    auto& out = not_null(ctc, "ctc");
    require(given.reserved == 0, "sluice_ctc_options.reserved", given.reserved, "must be 0");
    sluice::ctc_vocabulary(given.labels, given.blank);
    auto made = std::make_unique<sluice_ctc>();
    made->workers = std::make_shared<AllCtcWorkers>();
    made->labels = given.labels, made->blank = given.blank;
    made->kind = flag_of(given.log_probs, "log_probs") ? sluice::Kind::log_probs : sluice::Kind::logits;
    if (given.texts != nullptr)
      for (std::size_t i = 0; i < static_cast<std::size_t>(given.labels); ++i)
        made->texts.emplace_back(static_cast<Token>(i) == given.blank ? "" : bytes_at(given.texts, i, "texts"));
    made->separators = copy(given.separators, given.separator_count, "separators");
    for (auto const separator : made->separators)
      require(separator >= 0 && separator < given.labels && separator != given.blank, "separators", separator,
              "must be a label other than the blank");
    if (given.spellings > 0) made->lexicon = lexicon_of(given, made->separators);
    if (given.ngrams != nullptr) made->language = language_of(given, *made);
    else require(given.ngram_words == nullptr, "ngram_words", "given", "needs ngrams");
    if (given.model != nullptr) set_model(given, *made);
    else require(given.model_tokens == nullptr, "model_tokens", "given", "needs model");
    if (!made->texts.empty())
      made->trie =
          sluice::TokenTrie(sluice::TokenBytes(made->texts), sluice::ctc_text_vocabulary(given.labels, given.blank));
    out = made.release();
    return SLUICE_OK;
  });
}
void sluice_ctc_free(sluice_ctc* ctc) { delete ctc; }

sluice_status sluice_ctc_grammar(sluice_ctc const* ctc, char const* kind, char const* text,
                                 sluice_grammar_options const* options, sluice_grammar** grammar) {
  return guarded([&] {
    auto const& its = not_null(ctc, "ctc");
    require(!its.texts.empty(), "texts", "null", "must be what labels write, for a grammar");
    make_grammar(its.trie, kind, text, options, grammar);
    return SLUICE_OK;
  });
}

sluice_status sluice_ctc_decode(sluice_ctc const* ctc, sluice_search const* search, sluice_ctc_matrix const* matrices,
                                size_t count, size_t threads, sluice_frames_results** results) {
  return guarded([&] {
    auto const& its = not_null(ctc, "ctc");
    auto& out = not_null(results, "results");
    require(matrices != nullptr || count == 0, "matrices", "null", "must be as many as it says");
    std::vector<MatrixView<float const>> views;
    views.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      views.push_back(matrix_of(its, matrices[i], [&] { return numbered("matrices", i); }));
    auto made = std::make_unique<sluice_frames_results>();
    made->results =
        std::visit([&](auto const& one) { return decoded(its, one, std::span(std::as_const(views)), threads); },
                   search_of(its, search));
    made->views.resize(count), made->list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) made->list.push_back(its.view(made->results[i], made->views[i]));
    out = made.release();
    return SLUICE_OK;
  });
}
sluice_frames_result const* sluice_frames_results_at(sluice_frames_results const* results, size_t index) {
  return results != nullptr && index < results->list.size() ? &results->list[index] : nullptr;
}
size_t sluice_frames_results_count(sluice_frames_results const* results) {
  return results == nullptr ? 0 : results->list.size();
}
void sluice_frames_results_free(sluice_frames_results* results) { delete results; }

sluice_status sluice_ctc_stream_create(sluice_ctc const* ctc, sluice_search const* search, sluice_ctc_stream** stream) {
  return guarded([&] {
    auto const& its = not_null(ctc, "ctc");
    auto& made = not_null(stream, "stream");
    std::visit([&]<class S>(S one) { made = new CtcStreamOf<S>(its, std::move(one)); }, search_of(its, search));
    return SLUICE_OK;
  });
}
void sluice_ctc_stream_free(sluice_ctc_stream* stream) { delete stream; }

sluice_status sluice_ctc_stream_append(sluice_ctc_stream* stream, sluice_ctc_matrix const* frames, int32_t last,
                                       int32_t* ended) {
  return guarded([&] {
    auto& its = not_null(stream, "stream");
    its.append(
        matrix_of(its.ctc, frames == nullptr ? sluice_ctc_matrix{} : *frames, [] { return std::string("frames"); }),
        flag_of(last, "last"));
    if (ended != nullptr) *ended = its.ended ? 1 : 0;
    return SLUICE_OK;
  });
}
sluice_status sluice_ctc_stream_settled(sluice_ctc_stream* stream, sluice_token const** tokens, size_t* count) {
  return guarded([&] {
    auto const& its = not_null(stream, "stream").settled;
    not_null(tokens, "tokens") = its.data(), not_null(count, "count") = its.size();
    return SLUICE_OK;
  });
}
sluice_status sluice_ctc_stream_result(sluice_ctc_stream* stream, sluice_frames_result const** result) {
  return guarded([&] {
    auto const& its = not_null(stream, "stream");
    auto& out = not_null(result, "result");
    if (!its.ended) return failed(SLUICE_REFUSED, "sluice: the utterance is not over");
    out = &its.result;
    return sluice_status{SLUICE_OK};
  });
}
sluice_status sluice_ctc_stream_next(sluice_ctc_stream* stream) {
  return guarded([&] {
    auto& its = not_null(stream, "stream");
    if (!its.ended) return failed(SLUICE_REFUSED, "sluice: the utterance is not over");
    if (!its.next()) return failed(SLUICE_REFUSED, "sluice: no frames are left");
    return sluice_status{SLUICE_OK};
  });
}

sluice_status sluice_ctc_align(sluice_ctc const* ctc, sluice_ctc_matrix const* matrix, sluice_token const* tokens,
                               size_t count, int32_t* frames, double* log_probs, double* log_prob) {
  return guarded([&] {
    auto const& its = not_null(ctc, "ctc");
    auto const view = matrix_of(its, not_null(matrix, "matrix"), [] { return std::string("matrix"); });
    auto const text = copy(tokens, count, "tokens");
    require((frames != nullptr && log_probs != nullptr) || count == 0, "frames, log_probs", "null",
            "must have room for as many as it says");
    auto& sum = not_null(log_prob, "log_prob");
    auto const found = sluice::ctc_align(sluice::scores(view.data, view.rows, view.columns, its.kind, view.stride),
                                         std::span<Token const>(text), its.blank);
    sum = found.log_prob;
    for (std::size_t i = 0; i < found.frames.size(); ++i) {
      frames[2 * i] = found.frames[i].begin, frames[2 * i + 1] = found.frames[i].end;
      log_probs[i] = found.log_probs[i];
    }
    return SLUICE_OK;
  });
}

}  // extern "C"
