// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>

#include <text/bias.hpp>

#include <algorithm>
#include <cstdio>
#include <http/answers.hpp>
#include <http/memory.hpp>
#include <http/work.hpp>
#include <limits>
#include <numeric>
#include <serve_llama/continuation_job.hpp>
#include <stdexcept>
#include <utility>

namespace serve {

namespace {

decltype(Continuing::search) search_of(ContinuationSettings const& settings) {
  using Any = decltype(Continuing::search);
  sluice::LengthLimits const length{.min = 0, .max = settings.most};
  // As many tokens are guessed as are expected to be right. The text is the same; what is scored token by token needs the lines of all of them.
  auto const guesses = settings.guesses && settings.outputs == 1 && !settings.wants.logprobs;
  constexpr std::int32_t block = 16;
  if (settings.samples()) {
    auto sample = settings.sample;
    sample.samples = settings.outputs, sample.length = length, sample.watermark = settings.watermark;
    if (guesses && sample.chain().plain())
      return Any(sluice::Blockwise<sluice::acceptance::Sampling>{.block = block, .accept = {sample}, .length = length});
    return Any(sample);
  }
  if (guesses)
    return Any(
        sluice::Blockwise<sluice::acceptance::Exact>{.block = block, .accept = {.scores = false}, .length = length});
  if (settings.outputs == 1) return Any(sluice::Greedy{.length = length, .scores = false});
  return Any(sluice::BeamSearch{.width = settings.outputs,
                                .n_best = settings.outputs,
                                .length = length,
                                .penalty = {.alpha = 1},
                                .at_maximum = sluice::AtMaximum::truncate,  // "length", as greedy search says
                                .one_end = true});
}

/// Mean log-probability of the tokens, by which best_of ranks.
double mean(sluice::Hypothesis const& one) {
  return one.log_prob / static_cast<double>(std::max<std::size_t>(1, one.log_probs.size()));
}

}  // namespace

void Texts::check_length(char const* field, std::string const& text) const {
  if (text.size() > longest)
    throw BadField(field,
                   std::string(field) + " has " + std::to_string(text.size()) + " bytes, more than " +
                       std::to_string(longest) + ", which is more than the model has room for",
                   413);
}

std::vector<sluice::Token> Texts::tokens(Ask const& ask) const {
  if (!ask.tokens.empty()) return ask.tokens;
  auto const cut = [&](bool with_special) {
    try {
      return tokenizer.tokens(ask.text, true, with_special);
    } catch (std::invalid_argument const&) {
      throw BadField("prompt", "prompt: the model's vocabulary has no token for one of its bytes");
    }
  };
  auto const parsed = special || ask.special;
  auto found = cut(parsed);
  if (!parsed && ask.text.find_first_of("<[") != std::string::npos && found != cut(true))
    std::call_once(told, [] {
      std::fprintf(stderr, "serve_llama: a prompt has names of control tokens, which are plain text without --special "
                           "(/v1/chat/completions applies the model's chat template)\n");
    });
  return found;
}

ContinuationJob::ContinuationJob(Ask const& ask, std::shared_ptr<ContinuationSettings const> settings,
                                 Texts const& texts, sluice::StopSequences stop, sluice::Structure const& structure,
                                 sluice::Bias const& bias)
    : prompt(texts.tokens(ask)),
      seed(sluice::derive(settings->seed, ask.number)),
      settings_(std::move(settings)),
      texts_(texts),
      stop_(std::move(stop)),
      stream_(stop_),
      prompt_size_(prompt.size()) {
  auto const& wants = settings_->wants;
  if (wants.echo) before_ = ask.tokens.empty() ? ask.text : texts.tokenizer.text(ask.tokens);
  auto dry = settings_->dry;
  if (dry.multiplier > 0) dry.breakers = texts.breakers;
  sluice::GreenList const green{settings_->samples() ? sluice::Watermark{}
                                                     : settings_->watermark};  // sampling marks itself
  search = Continuation(Continuing(search_of(*settings_), {sluice::TokenBias{settings_->biases}, settings_->penalties,
                                                           dry, stop_, structure, bias, green}));
  if (!wants.logprobs) return;
  search.best = *wants.logprobs, search.notes = std::make_shared<Notes>();
  search.ends = settings_->most == 0;
  if (!wants.echo || prompt.empty()) return;
  search.prompt.assign(prompt.begin() + 1, prompt.end());
  prompt.resize(1);
}

std::size_t ContinuationJob::rows() const {
  return static_cast<std::size_t>(settings_->outputs) + (settings_->wants.logprobs ? 1 : 0);
}

/// Prompts are fed in long blocks.
std::size_t ContinuationJob::steps() const { return static_cast<std::size_t>(settings_->most) + 1 + prompt_size_ / 16; }

/// Tokens and text of each output, and how they are written; with log-probabilities some objects for each token.
std::size_t ContinuationJob::answer_bytes() const {
  auto const& wants = settings_->wants;
  auto const of_token = 32 + (wants.logprobs ? 500 + 300 * static_cast<std::size_t>(*wants.logprobs) : 0);
  auto const tokens = static_cast<std::size_t>(settings_->most) + (wants.echo ? prompt_size_ : 0);
  return 2048 + 8 * prompt_size_ + static_cast<std::size_t>(settings_->outputs) * tokens * of_token;
}

std::string ContinuationJob::append(std::span<sluice::Token const> tokens) {
  auto more = shown_.empty() ? before_ : std::string();
  more += stream_.append(tokens);
  shown_ += more;
  return more;
}

std::string ContinuationJob::rest(Answer const& answer) {
  if (answer.candidates.empty()) return {};
  auto const& text = answer.candidates.front().text;
  return text.starts_with(shown_) ? text.substr(shown_.size()) : std::string();
}

Candidate::Piece ContinuationJob::piece(sluice::Token token, Told const& told) const {
  auto const& tokenizer = texts_.tokenizer;
  Candidate::Piece piece{token_name(tokenizer.bytes(token, true)), tokenizer.bytes(token), told.log_prob};
  for (auto const& one : told.best) piece.best.emplace_back(token_name(tokenizer.bytes(one.token, true)), one.log_prob);
  return piece;
}

std::vector<Candidate::Piece> ContinuationJob::prompt_pieces() const {
  std::vector<Candidate::Piece> pieces;
  if (!search.notes || !settings_->wants.echo) return pieces;
  // Nothing comes before the first token, unless the model puts its own (bos) there, which is not part of the text.
  if (!prompt.empty() && !texts_.tokenizer.bytes(prompt[0]).empty())
    pieces.push_back(piece(prompt[0], {.log_prob = std::numeric_limits<float>::quiet_NaN()}));
  auto const& told = search.notes->prompt;
  for (std::size_t i = 0; i < told.size(); ++i) pieces.push_back(piece(search.prompt[i], told[i]));
  if (!pieces.empty() && pieces[0].text.starts_with(' ') && !before_.starts_with(' '))
    pieces[0].text.erase(0, 1);  // which some tokenizers put in front
  return pieces;
}

Answer ContinuationJob::answer(sluice::Result const& result) {
  Answer answer{.failure = result.failure, .message = result.message, .source_tokens = prompt_size_};
  if (result.failure == sluice::Failure::search && settings_->grammar &&
      result.message.find("grammar") != std::string::npos)  // it is the request's: too ambiguous, too many states
    answer.failure = sluice::Failure::bad_request, answer.message = settings_->grammar->field + ": " + result.message;
  if (auto const at = answer.message.find("length.max"); at != std::string::npos)
    answer.message.replace(at, 10, answer.field = "max_tokens");
  auto const& all = result.hypotheses;
  auto const count = static_cast<std::size_t>(settings_->wants.choices);
  if (result.ok() && (all.empty() || settings_->most == 0)) {  // nothing was to be generated
    answer.candidates.assign(count, {.text = before_, .pieces = prompt_pieces()});
    return answer;
  }
  for (auto const& one : all) answer.tokens += one.tokens.size();
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > count) {
    if (settings_->samples())
      std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        auto const one = mean(all[a]), other = mean(all[b]);
        return one != other ? one > other : a < b;
      });
    order.resize(count);
  }
  for (auto const place : order) {
    auto const& hypothesis = all[place];
    auto& one = answer.candidates.emplace_back(Candidate{.text = before_ + stop_.text(hypothesis),
                                                         .score = hypothesis.score,
                                                         .log_prob = hypothesis.log_prob,
                                                         .pieces = prompt_pieces(),
                                                         .finished = hypothesis.finished,
                                                         .stopped = hypothesis.stop >= 0});
    if (!search.notes || place >= search.notes->hypotheses.size()) continue;
    auto const& told = search.notes->hypotheses[place];
    for (std::size_t i = 0; i < told.size(); ++i) one.pieces.push_back(piece(hypothesis.tokens[i], told[i]));
  }
  return answer;
}

ContinuationPreparation::ContinuationPreparation(Task const& task, Texts const& texts, Grammars& grammars)
    : settings_(std::dynamic_pointer_cast<ContinuationSettings const>(task.settings)), texts_(texts) {
  Account::Naming const naming("stop");
  // Control tokens may be the marks of calls, or of what was thought.
  auto const& wants = settings_->wants;
  auto const& bytes = wants.reasons || wants.tools.may_be_called() ? texts.spelled : texts.bytes;
  stop_ = sluice::StopSequences({.strings = wants.stop, .bytes = bytes});
  Work::checkpoint();
  {
    Account::Naming const biasing("bias");
    try {
      bias_ = text::make_bias(settings_->phrases.terms, settings_->phrases.once, [&](std::string const& phrase) {
        return text::spellings_within(phrase,
                                      [&](std::string const& text) { return texts.tokenizer.tokens(text, false); });
      });
    } catch (text::InputError const& error) {
      throw BadField("bias", error.what());
    }
  }
  Work::checkpoint();
  if (settings_->grammar) structure_ = grammars.of(*settings_->grammar);
  Work::checkpoint();
}

std::unique_ptr<Job> ContinuationPreparation::job(Ask const& ask) {
  Account::Naming const naming("prompt");
  texts_.check_length("prompt", ask.text);
  if (ask.tokens.size() > texts_.longest / bytes_of_cell)
    throw BadField(
        "prompt", "prompt has " + std::to_string(ask.tokens.size()) + " tokens, more than the model has room for", 413);
  return std::make_unique<ContinuationJob>(ask, settings_, texts_, stop_, structure_, bias_);
}

}  // namespace serve
