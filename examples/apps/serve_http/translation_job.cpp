// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>
#include <sluice/search/constraint/grid_beam_search.hpp>

#include <text/lines.hpp>
#include <translate/beam.hpp>
#include <translate/constraints.hpp>
#include <translate/mbr.hpp>

#include <algorithm>
#include <http/answers.hpp>
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
                                .length = lengths(o)});
    case SearchName::blockwise:
      if (o.accept_top) return Any(blockwise(o, sluice::acceptance::TopK{*o.accept_top}));
      return Any(blockwise(o, sluice::acceptance::Exact{.scores = scores}));
    default: return Any(beam(o, words));
  }
}

translate::WholeWords constraints_of(Ask const& ask, TranslationSettings const& settings, Language const& language,
                                     std::vector<sluice::Token> const& prefix) {
  if (ask.constraints.empty() && settings.glossary.empty()) return {};
  try {
    translate::Constraints const constraints({"constraints", "glossary"}, {ask.constraints}, settings.glossary,
                                             language.tokenizer, language.spellings);
    return constraints.of(1, "", ask.text, prefix);
  } catch (text::InputError const& error) {
    std::string what = error.what();
    auto const glossary = what.starts_with("glossary");
    if (auto const line = what.find("constraints:1: "); line == 0) what.erase(11, 2);  // there are no lines here
    throw BadField(glossary ? "glossary" : "constraints", what);
  }
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
      spellings(translate::Constraints::spellings(its_tokenizer)) {}

TranslationJob::TranslationJob(Ask const& ask, std::shared_ptr<TranslationSettings const> settings,
                               Language const& language)
    : source(language.tokenizer.encode(ask.text)),
      prefix(language.tokenizer.encode(ask.prefix)),
      seed(sluice::derive(settings->search.seed, ask.number)),
      settings_(std::move(settings)),
      language_(language),
      constraints_(constraints_of(ask, *settings_, language, prefix)),
      stop_({.strings = settings_->stop, .bytes = language.bytes}),
      stream_(stop_) {
  auto const masks = translate::make_masks(settings_->search, settings_->forbid, language.tokenizer);
  auto const& [ngrams, repetition, forbidden] = masks.rules;
  search = Search(Plain(plain_search(*settings_, constraints_), Rules(ngrams, repetition, forbidden, stop_)));
  if (settings_->told >= 0) search.best = settings_->told, search.notes = std::make_shared<Notes>();
}

std::string TranslationJob::settle(std::span<sluice::Token const> tokens) {
  std::string more(stream_.settle(tokens));
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

Answer TranslationJob::answer(sluice::Result const& result) {
  Answer answer{.failure = result.failure, .message = result.message, .source_tokens = source.size()};
  auto hypotheses = result.hypotheses;
  if (settings_->search.mbr && result.ok() && !hypotheses.empty()) {
    auto const text = [&](sluice::Hypothesis const& one) { return candidate(one).text; };
    auto const& best = translate::least_risk(settings_->search, hypotheses, text);
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
