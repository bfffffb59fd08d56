// SPDX-License-Identifier: Apache-2.0
/// \file
/// Common logits processors: those here, and Forbidden for phrases. All of them are off by default. GreenList: a
/// watermark for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/detail/recent_tokens.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Adds Watermark::delta to the scores of green tokens (Kirchenbauer et al. 2023, Algorithm 2; or sbw), in any search: Greedy
/// and beams too, where nothing is drawn. detect_watermark() finds the marks with the same Watermark. Sample::watermark does
/// it after its samplers, this before them. Where the output so far ends in a context that it had before, nothing is added.
/// Off without a scheme.
///
/// In a beam it acts at the search's stage: after the softmax (the default), the log-probability and score of an output hold
/// delta for each green token, so hypotheses compete with it, as with Hugging Face's.
///
/// O(V) per line: a number for each token, and an edit for each green one.
struct GreenList {
  Watermark watermark{};
  static constexpr std::string_view name = "GreenList";  ///< for messages

  /// Whether outputs' log-probabilities may rise. Beside ExactSearch and BestFirstBeam it is refused.
  bool raising() const { return watermark.on(); }

  void check() const {
    watermark.check();
    require(!watermark.on() || watermark.scheme == WatermarkScheme::red_green ||
                watermark.scheme == WatermarkScheme::sbw,
            "watermark.scheme", sluice::name(watermark.scheme), "draws tokens, which a rule cannot: give it to Sample");
  }
  /// The watermark, ready; null: off.
  struct State {
    std::shared_ptr<detail::Marker const> marker{};
  };
  SLUICE_LAZY State initial(Sentence const&) const {
    return {watermark.on() ? std::make_shared<detail::Marker const>(watermark) : nullptr};
  }
  State next(State const& state, Token) const { return state; }
  SLUICE_LAZY void edit(State const& state, Output const& output, std::vector<Edit>& edits) const {
    if (state.marker == nullptr) return;
    auto const mark = state.marker->mark_with(output.tokens, false);
    if (!mark.marked) return;
    for (Token token = 0; token < output.vocabulary.size; ++token)
      if (state.marker->is_green(mark, token)) edits.push_back({token, watermark.delta, 1});
  }
};

/// llama.cpp's penalties sampler (llama_sampler_init_penalties). If a token occurs n >= 1 times in the window, its
/// score is divided by `repetition` (multiplied if it is not positive; Keskar et al. 2019), then reduced by n *
/// frequency + presence. OpenAI's service and vLLM have the same frequency and presence penalties, over the whole
/// output and without the prompt. Without prompt and window, `repetition` alone is RepetitionPenalty. Off by default.
///
/// O(w log w) per line, with w the number of tokens in the window; one edit per distinct token; more than 64 edits cost
/// a copy of the line.
struct Penalties {
  float repetition = 1;      ///< > 0; 1 = off; llama.cpp: penalty_repeat
  float frequency = 0;       ///< finite; llama.cpp: penalty_freq
  float presence = 0;        ///< finite; llama.cpp: penalty_present
  std::int32_t window = 64;  ///< number of most recent tokens to look at; 0 = off; -1 = all; llama.cpp: penalty_last_n
  bool prompt = true;        ///< whether to include the prompt, as llama.cpp does

  void check() const {
    require(repetition > 0 && std::isfinite(repetition) && std::isfinite(1 / repetition), "penalties.repetition",
            repetition, "must be a number > 0");
    require(std::isfinite(frequency), "penalties.frequency", frequency, "must be a number");
    require(std::isfinite(presence), "penalties.presence", presence, "must be a number");
    detail::require_window("penalties.window", window);
  }
  using State = detail::SeenPrompt;
  State initial(Sentence const& sentence) const { return prompt ? State{sentence.prompt} : State{}; }
  State next(State state, Token) const { return state; }
  void edit(State state, Output const& output, std::vector<Edit>& edits) const {
    if (window == 0 || (repetition == 1 && frequency == 0 && presence == 0)) return;
    detail::RecentTokens const recent(state.prompt, output.tokens, window);
    auto const first = edits.size();
    for (std::size_t i = 0; i < recent.size(); ++i)
      if (output.vocabulary.contains(recent.back(i))) edits.push_back({recent.back(i)});
    auto const begin = edits.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, edits.end(), [](Edit const& a, Edit const& b) { return a.token < b.token; });
    auto to = first;
    for (auto i = first; i < edits.size();) {
      auto const token = edits[i].token;
      auto count = 0.0f;
      for (; i < edits.size() && edits[i].token == token; ++i) ++count;
      edits[to++] = {token, -(count * frequency + presence), repetition};
    }
    edits.resize(to);
  }
};

namespace detail {

struct Stateless {};
inline void require_inside(std::span<Token const> tokens, Sentence const& sentence, char const* name) {
  for (auto const token : tokens)
    require(sentence.vocabulary->contains(token), name, token,
            "is outside the vocabulary of " + std::to_string(sentence.vocabulary->size));
}

}  // namespace detail

/// Tokens that are never generated (suppress_tokens, bad_words of one token, no `<unk>`).
struct ForbidTokens {
  std::vector<Token> tokens{};

  using State = detail::Stateless;
  State initial(Sentence const& sentence) const {
    return detail::require_inside(tokens, sentence, "forbidden token"), State{};
  }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>& edits) const {
    for (auto const token : tokens) edits.push_back(Edit::forbid(token));
  }
};

/// Tokens that must not be the first one chosen, at the beginning or after a forced prefix (begin_suppress_tokens).
struct ForbidFirst {
  std::vector<Token> tokens{};

  using State = detail::Stateless;
  State initial(Sentence const& sentence) const {
    return detail::require_inside(tokens, sentence, "forbidden first token"), State{};
  }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    if (output.tokens.size() != output.prefix) return;
    for (auto const token : tokens) edits.push_back(Edit::forbid(token));
  }
};

/// No n-gram occurs twice in one output, forced prefix included (Paulus et al. 2017; no_repeat_ngram_size).
struct NoRepeatNgram {
  std::int32_t n = 0;  ///< 0 = off; 1: no token twice

  void check() const { require(n >= 0, "no_repeat_ngram.n", n, "must not be negative"); }
  using State = detail::Stateless;
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    auto const length = static_cast<std::size_t>(n);
    auto const& t = output.tokens;
    if (n == 0 || t.size() < length) return;
    auto const end = t.last(length - 1);
    for (std::size_t i = 0; i + length <= t.size(); ++i)
      if (std::equal(end.begin(), end.end(), t.begin() + static_cast<std::ptrdiff_t>(i)))
        edits.push_back(Edit::forbid(t[i + length - 1]));
  }
};

/// Makes every token that already occurs in the output less likely (Keskar et al. 2019, CTRL): a positive score is
/// divided, a negative one multiplied, once regardless of how often it occurs.
struct RepetitionPenalty {
  float penalty = 1;  ///< > 0; 1 = off; more than 1 discourages

  void check() const {
    require(penalty > 0 && std::isfinite(penalty), "repetition_penalty", penalty, "must be a number > 0");
  }
  using State = detail::Stateless;
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    Penalties{.repetition = penalty, .window = -1, .prompt = false}.edit({}, output, edits);
  }
};

/// Notices loops: an output that ends in the same `n` tokens `min_count` times over, for an n from `min_pattern_size` to
/// `max_pattern_size` (vLLM's RepetitionDetectionParams). It ends such an output, or keeps it from getting there. Of several sizes, the
/// smallest counts. A forced prefix counts, the prompt does not. Off by default.
///
/// O(max_pattern_size) a line, and as long as the loop where there is one.
struct RepetitionDetection {
  /// What happens to an output with a loop.
  enum class Action : std::uint8_t {
    end,     ///< the output is over; Hypothesis::stop is the pattern's size
    forbid,  ///< the token that would complete a loop is forbidden
  };
  std::int32_t max_pattern_size = 0;  ///< tokens; 0 = off
  std::int32_t min_pattern_size = 1;  ///< tokens; in [1, max_pattern_size]
  std::int32_t min_count = 2;         ///< >= 2; times that the pattern stands there
  Action action = Action::end;

  bool trivial() const { return max_pattern_size == 0; }
  void check() const {
    require(max_pattern_size >= 0, "repetition_detection.max_pattern_size", max_pattern_size, "must not be negative");
    if (trivial()) return;
    require(min_pattern_size >= 1 && min_pattern_size <= max_pattern_size, "repetition_detection.min_pattern_size",
            min_pattern_size, "must be from 1 to max_pattern_size, " + std::to_string(max_pattern_size));
    require(min_count >= 2, "repetition_detection.min_count", min_count, "must be at least 2");
  }
  using State = detail::Stateless;
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    if (action != Action::forbid) return;
    for (auto n = min_pattern_size; n <= max_pattern_size; ++n)
      if (repeats(output.tokens, n, 1))
        edits.push_back(Edit::forbid(output.tokens[output.tokens.size() - static_cast<std::size_t>(n)]));
  }
  std::int32_t stop(State, Output const& output) const {
    if (action != Action::end) return -1;
    for (auto n = min_pattern_size; n <= max_pattern_size; ++n)
      if (repeats(output.tokens, n, 0)) return n;
    return -1;
  }

 private:
  /// Whether the tokens, and `more` that may come, end in a pattern of n tokens, min_count times.
  bool repeats(std::span<Token const> tokens, std::int32_t n, std::int64_t more) const {
    auto const size = std::int64_t{n}, whole = size * min_count - more;
    if (std::ssize(tokens) < whole) return false;
    auto const end = tokens.last(static_cast<std::size_t>(whole));
    for (auto i = whole - 1; i >= size; --i)
      if (end[static_cast<std::size_t>(i)] != end[static_cast<std::size_t>(i - size)]) return false;
    return true;
  }
};

/// Adds to the scores of some tokens: logit bias; unknown-word penalty ({{unk, -2}}).
struct TokenBias {
  std::vector<std::pair<Token, float>> biases{};  ///< token, added to its score; -infinity forbids

  using State = detail::Stateless;
  State initial(Sentence const& sentence) const {
    for (auto const& [token, bias] : biases) {
      detail::require_inside({&token, 1}, sentence, "token bias");
      require(!std::isnan(bias) && bias < std::numeric_limits<float>::infinity(), "token bias", bias,
              "must be a number");
    }
    return {};
  }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>& edits) const {
    for (auto const& [token, bias] : biases) edits.push_back({token, bias, 1});
  }
};

}  // namespace sluice::inline v0
