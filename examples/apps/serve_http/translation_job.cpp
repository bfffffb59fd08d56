// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <text/lines.hpp>
#include <translate/beam.hpp>
#include <translate/constraints.hpp>
#include <translate/mbr.hpp>

#include <algorithm>
#include <http/answers.hpp>
#include <http/memory.hpp>
#include <http/work.hpp>
#include <serve_http/translation_job.hpp>
#include <utility>

namespace serve {

namespace {

using translate::SearchName;

sluice::LengthLimits lengths(translate::Options const& o) { return {.min = o.min_length, .max = o.max_length}; }

Constrained beam(translate::Options const& o, translate::WholeWords const& words) {
  auto const plain = translate::make_beam_search(o);
  auto search = o.grid_base ? sluice::grid_beam_search(*o.grid_base, words, plain)
                            : Constrained{.beam = plain, .constraints = words};
  search.prune_finished = o.prune_finished;
  return search;
}

template <class A>
sluice::Blockwise<A> blockwise(translate::Options const& o, A const& accept) {
  return {.block = o.block, .accept = accept, .minimum = o.minimum, .length = lengths(o), .adaptive = o.adaptive};
}

/// As translate's make_greedy, make_beam and so on.
decltype(Plain::search) plain_search(TranslationSettings const& settings, translate::WholeWords const& words) {
  using Any = decltype(Plain::search);
  auto const& o = settings.search;
  // Probabilities are needed only if the request wants them or a penalty depends on them.
  auto const scores = settings.scores || o.repetition_penalty != 1;
  switch (o.search) {
    case SearchName::greedy: return Any(sluice::Greedy{.length = lengths(o), .scores = scores});
    case SearchName::sample:
      return Any(sluice::Sample{.temperature = o.temperature,
                                .top_k = o.top_k,
                                .top_p = o.top_p,
                                .samples = o.candidates,
                                .length = lengths(o),
                                .watermark = settings.watermark});
    case SearchName::blockwise:
      if (o.accept_top) return Any(blockwise(o, sluice::acceptance::TopK{*o.accept_top}));
      return Any(blockwise(o, sluice::acceptance::Exact{.scores = scores}));
    default: return Any(beam(o, words));
  }
}

/// What is wrong with a request's constraints or glossary, which are no files.
[[noreturn]] void refuse(std::string what) {
  auto const glossary = what.starts_with("glossary");
  if (auto const end = what.find(": "); what.starts_with("constraints:") && end != what.npos)
    what.erase(11, end - 11);  // there are no lines here
  throw BadField(glossary ? "glossary" : "constraints", what);
}

/// The same that ends as soon as the request is late, or its client has gone.
std::shared_ptr<translate::Spellings const> cancellable(std::shared_ptr<translate::Spellings const> const& plain) {
  auto pieces = plain->pieces();
  pieces.inside = [inside = pieces.inside](std::string_view text) {
    Work::checkpoint();
    return inside(text);
  };
  return std::make_shared<translate::Spellings const>(std::move(pieces));
}

std::vector<std::string> texts_of(translate::Tokenizer const& tokenizer) {
  std::vector<std::string> texts;
  for (sluice::Token token = 0; token < tokenizer.size(); ++token) texts.push_back(tokenizer.text(token));
  return texts;
}

/// The tokenizer puts a space before the first word.
std::string without_space(std::string text) {
  if (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace

Language::Language(translate::Tokenizer const& its_tokenizer)
    : tokenizer(its_tokenizer),
      bytes(texts_of(its_tokenizer)),
      spellings(cancellable(translate::Constraints::spellings(its_tokenizer))) {}

TranslationPreparation::TranslationPreparation(Task const& task, Language const& language)
    : settings_(std::dynamic_pointer_cast<TranslationSettings const>(task.settings)), language_(language) {
  {
    Account::Naming const naming("stop");
    stop_ = sluice::StopSequences({.strings = settings_->stop, .bytes = language.bytes});
  }
  {
    Account::Naming const naming("forbid");
    masks_ = translate::make_masks(settings_->search, settings_->forbid, language.tokenizer);
  }
  Work::checkpoint();
  {
    Account::Naming const naming("bias");
    try {
      bias_ = translate::make_bias(settings_->bias.terms, settings_->bias.once, language.tokenizer);
    } catch (text::InputError const& error) {
      throw BadField("bias", error.what());
    }
  }
  Work::checkpoint();
  std::vector<std::string> lines;
  for (auto const& ask : task.asks)
    if (ask.constraints != nullptr && lines_.try_emplace(ask.constraints.get(), lines.size() + 1).second)
      lines.push_back(*ask.constraints);
  if (lines.empty() && settings_->glossary.empty()) return;
  Account::Naming const naming("glossary");
  try {
    constraints_.emplace(translate::Constraints::Names{"constraints", "glossary"}, std::move(lines),
                         settings_->glossary, language.tokenizer, language.spellings);
  } catch (text::InputError const& error) {
    refuse(error.what());
  }
}

std::unique_ptr<Job> TranslationPreparation::job(Ask const& ask) {
  auto const prefix_tokens = prefix(ask);
  auto words = constraints(ask, *prefix_tokens);
  Account::Naming const naming("text");
  return std::make_unique<TranslationJob>(language_.tokenizer.encode(ask.text), *prefix_tokens, ask.number, settings_,
                                          language_, std::move(words), stop_, masks_, bias_);
}

TranslationPreparation::Tokens TranslationPreparation::prefix(Ask const& ask) {
  Account::Naming const naming("prefix");
  auto& known = prefixes_[ask.prefix.get()];
  if (known == nullptr)
    known = std::make_shared<std::vector<sluice::Token> const>(
        ask.prefix == nullptr ? std::vector<sluice::Token>{} : language_.tokenizer.encode(*ask.prefix));
  return known;
}

translate::WholeWords TranslationPreparation::constraints(Ask const& ask, std::vector<sluice::Token> const& prefix) {
  if (!constraints_) return {};
  Account::Naming const naming(ask.constraints == nullptr ? "glossary" : "constraints");
  Key key{ask.constraints.get(), ask.prefix.get(), constraints_->terms(ask.text)};
  if (auto const known = words_.find(key); known != words_.end()) return known->second;
  try {
    auto const line = lines_.find(ask.constraints.get());
    auto const words =
        constraints_->of(line == lines_.end() ? lines_.size() + 1 : line->second, "", std::get<2>(key), prefix);
    words_.emplace(std::move(key), words);
    return words;
  } catch (text::InputError const& error) {
    refuse(error.what());
  }
}

TranslationJob::TranslationJob(std::vector<sluice::Token> its_source, std::vector<sluice::Token> its_prefix,
                               std::size_t number, std::shared_ptr<TranslationSettings const> settings,
                               Language const& language, translate::WholeWords constraints, sluice::StopSequences stop,
                               translate::Masks const& masks, sluice::Bias const& bias)
    : source(std::move(its_source)),
      prefix(std::move(its_prefix)),
      seed(sluice::derive(settings->search.seed, number)),
      settings_(std::move(settings)),
      language_(language),
      constraints_(std::move(constraints)),
      stop_(std::move(stop)),
      stream_(stop_) {
  // Sampling marks by itself.
  sluice::GreenList const green{settings_->search.search == SearchName::sample ? sluice::Watermark{}
                                                                               : settings_->watermark};
  search = Search(Plain(plain_search(*settings_, constraints_),
                        {masks.ngrams, masks.repetition, masks.forbidden, stop_, bias, green}));
  if (settings_->told >= 0) search.best = settings_->told, search.notes = std::make_shared<Notes>();
}

std::size_t TranslationJob::rows() const {
  auto const& o = settings_->search;
  auto const told = std::size_t{settings_->told >= 0 ? 1U : 0U};
  switch (o.search) {
    case SearchName::beam: return static_cast<std::size_t>(o.width) + told;
    case SearchName::sample: return static_cast<std::size_t>(o.candidates) + told;
    default: return 1 + told;
  }
}

/// A translation is about as long as its source.
std::size_t TranslationJob::steps() const {
  auto const& o = settings_->search;
  auto const least = static_cast<std::size_t>(std::max(1, o.min_length));
  return std::max(least, std::min(static_cast<std::size_t>(o.max_length), 2 + source.size() + source.size() / 4));
}

/// Tokens and text of each hypothesis, and how they are written; with log-probabilities some objects for each token.
std::size_t TranslationJob::answer_bytes() const {
  auto const& o = settings_->search;
  auto const of_token = 24 + (settings_->told < 0 ? 0 : 500 + 300 * static_cast<std::size_t>(settings_->told));
  return 2048 + 8 * (source.size() + prefix.size()) +
         static_cast<std::size_t>(o.candidates) * static_cast<std::size_t>(o.max_length) * of_token;
}

std::string TranslationJob::append(std::span<sluice::Token const> tokens) {
  std::string more(stream_.append(tokens));
  if (!begun_ && !more.empty()) begun_ = true, more = without_space(std::move(more));
  shown_ += more;
  return more;
}

std::string TranslationJob::rest(Answer const& answer) {
  if (answer.candidates.empty()) return {};
  auto const& text = answer.candidates.front().text;
  return text.starts_with(shown_) ? text.substr(shown_.size()) : std::string();
}

Candidate TranslationJob::candidate(sluice::Hypothesis const& hypothesis) const {
  auto const& tokenizer = language_.tokenizer;
  Candidate one{.score = hypothesis.score,
                .log_prob = hypothesis.log_prob,
                .finished = hypothesis.finished,
                .stopped = hypothesis.stop >= 0};
  std::span<sluice::Token const> tokens(hypothesis.tokens);
  if (!tokens.empty() && tokens.back() == tokenizer.eos()) tokens = tokens.first(tokens.size() - 1);
  one.text = one.stopped ? without_space(stop_.text(hypothesis)) : tokenizer.decode(tokens);
  return one;
}

std::vector<Candidate::Piece> TranslationJob::pieces(sluice::Hypothesis const& hypothesis,
                                                     std::vector<Told> const& told) const {
  std::vector<Candidate::Piece> pieces;
  for (std::size_t i = 0; i < told.size(); ++i) {
    auto const text_of = [&](sluice::Token token) {
      auto const text = language_.tokenizer.text(token);
      return i == 0 ? without_space(text) : text;
    };
    auto const text = text_of(hypothesis.tokens[i]);
    auto& piece = pieces.emplace_back(Candidate::Piece{token_name(text), text, told[i].log_prob});
    for (auto const& one : told[i].best) piece.best.emplace_back(token_name(text_of(one.token)), one.log_prob);
  }
  return pieces;
}

/// Least risk compares every hypothesis with every other one.
double TranslationJob::answer_work() const {
  auto const& o = settings_->search;
  return o.mbr ? static_cast<double>(o.candidates) * o.candidates * static_cast<double>(steps()) : 0;
}

Answer TranslationJob::answer(sluice::Result const& result) {
  Answer answer{.failure = result.failure, .message = result.message, .source_tokens = source.size()};
  auto hypotheses = result.hypotheses;
  if (settings_->search.mbr && result.ok() && !hypotheses.empty()) {
    auto const text = [&](sluice::Hypothesis const& one) { return candidate(one).text; };
    auto const& best = translate::least_risk(settings_->search, hypotheses, text, &Work::checkpoint);
    std::rotate(hypotheses.begin(), hypotheses.begin() + (&best - hypotheses.data()),
                hypotheses.begin() + (&best - hypotheses.data()) + 1);
  }
  for (auto const& hypothesis : hypotheses) {
    auto& one = answer.candidates.emplace_back(candidate(hypothesis));
    auto const place = answer.candidates.size() - 1;  // notes are in the order of the search
    if (search.notes && place < search.notes->hypotheses.size())
      one.pieces = pieces(hypothesis, search.notes->hypotheses[place]);
    answer.tokens += hypothesis.tokens.size();
  }
  auto const verdict = constraints_.judge(answer.candidates.empty() ? "" : answer.candidates.front().text);
  answer.met = verdict.met, answer.demanded = verdict.total;
  answer.missing = verdict.missing, answer.forbidden = verdict.forbidden;
  return answer;
}

}  // namespace serve
