// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a search asks of each line, the answers that it gets, and the Expander concept, which makes them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A change to one token's score: first `penalty`, then `add`.
struct Edit {
  Token token = 0;
  float add = 0;      ///< -infinity forbids the token
  float penalty = 1;  ///< divides a positive score, multiplies a negative one

  static constexpr Edit forbid(Token token) { return {token, -std::numeric_limits<float>::infinity(), 1}; }
};

namespace detail {

/// A promise about edits, which expanders may use or not. The first `count` edits are of ascending tokens, and so are the
/// `second` after them, which are other tokens; all are of the vocabulary, have penalty 1, and add finite numbers of at
/// most 1e30, those of the first ones at most `most`.
struct SortedEdits {
  std::int32_t count = 0, second = 0;
  float most = 0;
};

/// Additions that many lines share: to the log-probability of each of these tokens, after the softmax. They change before the edits of a
/// query, and not at all a token that its edits name.
struct SharedEdits {
  static constexpr std::size_t padding = 1024;

  std::vector<Edit> edits;   ///< of ascending tokens; each has penalty 1, and adds a finite number of at most 1e30
  std::vector<float> dense;  ///< the same by token, 0 for others; its size is a multiple of `padding`

  SharedEdits() = default;
  /// \param sorted  as `edits`
  SLUICE_LAZY explicit SharedEdits(std::vector<Edit> sorted) : edits(std::move(sorted)) {
    if (edits.empty()) return;
    dense.resize((static_cast<std::size_t>(edits.back().token) / padding + 1) * padding);
    for (auto const& one : edits) dense[static_cast<std::size_t>(one.token)] = one.add;
  }
  /// What is added to a token.
  float operator[](Token token) const {
    auto const place = static_cast<std::size_t>(token);
    return place < dense.size() ? dense[place] : 0;
  }
};

}  // namespace detail

/// When edits and `only` are applied.
enum class Stage : std::uint8_t {
  before_softmax,  ///< to the scores: the remaining probabilities sum to one
  after_softmax,  ///< to the log-probabilities, which are not normalised again. Tokens are still ranked by scores: `add` is added
                  ///< to the score and rounded there; a penalised log-probability is converted back to a score
};

/// A set of tokens of one vocabulary: a shortlist, the tokens that a grammar allows.
class TokenSet {
 public:
  TokenSet() = default;
  /// The empty set over a vocabulary of `size` tokens.
  explicit TokenSet(std::int32_t size) : words_((static_cast<std::size_t>(size) + 63) / 64) {}

  /// Inserts a token. The set grows if it was made for a smaller vocabulary.
  /// \throws std::invalid_argument  for a negative token
  void insert(Token token) {
    require(token >= 0, "TokenSet: token", token, "must not be negative");
    if (word(token) >= words_.size()) words_.resize(word(token) + 1);
    words_[word(token)] |= bit(token);
  }
  void insert(std::span<Token const> tokens) {
    std::uint32_t largest = 0;
    for (auto const token : tokens) largest = (std::max)(largest, static_cast<std::uint32_t>(token));
    if (largest / 64 >= words_.size()) {  // one is negative, or the set grows
      for (auto const token : tokens) insert(token);
      return;
    }
    auto* const words = words_.data();
    for (auto const token : tokens) words[word(token)] |= bit(token);
  }
  /// Inserts all tokens of another set.
  void insert(TokenSet const& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  /// Keeps only the tokens that another set holds too.
  void keep(TokenSet const& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= i < other.words_.size() ? other.words_[i] : 0;
  }
  void erase(Token token) {
    if (contains(token)) words_[word(token)] &= ~bit(token);
  }
  /// Whether the set holds the token; false for a token outside the vocabulary.
  bool contains(Token token) const { return word(token) < words_.size() && (words_[word(token)] & bit(token)) != 0; }
  /// Its token if it has exactly one; else -1.
  Token only() const {
    Token found = -1;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == 0) continue;
      if (found >= 0 || !std::has_single_bit(words_[i])) return -1;
      found = static_cast<Token>(i * 64 + static_cast<std::size_t>(std::countr_zero(words_[i])));
    }
    return found;
  }
  /// The bits: bit t % 64 of word t / 64 says whether it holds token t.
  std::span<std::uint64_t const> words() const { return words_; }

 private:
  static std::size_t word(Token token) { return static_cast<std::size_t>(static_cast<std::uint32_t>(token)) / 64; }
  static std::uint64_t bit(Token token) { return std::uint64_t{1} << (static_cast<std::uint32_t>(token) % 64); }
  detail::Buffer<std::uint64_t> words_;
};

namespace detail {

template <class>
class ProcessedSearch;

/// Says where outputs end, of the candidates of a step.
struct CandidateStops {
  CandidateStops() = default;
  CandidateStops(CandidateStops const&) = delete;
  CandidateStops& operator=(CandidateStops const&) = delete;
  virtual std::int32_t stop(std::size_t line, Token token) = 0;

 protected:
  ~CandidateStops() = default;
};

/// Changes the scores of a whole line in place.
struct LineProcessor {
  LineProcessor() = default;
  LineProcessor(LineProcessor const&) = delete;
  LineProcessor& operator=(LineProcessor const&) = delete;
  virtual void process(std::span<float> scores) = 0;  ///< [V]

 protected:
  ~LineProcessor() = default;
};

}  // namespace detail

/// What a search asks about one line. The fields `best` to `at_least` select the list: it holds every token that any of them
/// selects, best first; equal scores in ascending order of tokens. Tokens of score -infinity are never listed. With `noise`,
/// and only then, the order is that of the perturbed values.
///
/// Order of processing: edits, `only` and `process` at Stage::before_softmax, shortlist, temperature, softmax, edits, `only` and
/// `process` at Stage::after_softmax, selection. Every span must live until the answer has been given.
struct Query {
  double base = 0;        ///< the hypothesis' log-probability so far; like `rank`, used only by Group::keep
  std::int32_t rank = 0;  ///< its place in the beam: decides between equal candidates, the lower first
  std::int32_t best = 1;  ///< list so many best tokens; 0 = none
  float mass = 0;         ///< list the best tokens until they hold this probability (top-p); in [0, 1]
  float within = 0;       ///< list all tokens at least this times as probable as the best (min-p); in [0, 1]; 0 = off
  float typical = 0;      ///< list the tokens whose information is nearest to the entropy, until they hold this
  float deviations =
      0;  ///< list all tokens whose score is at most so many standard deviations of the line's scores (those of
          ///< -infinity left out) below the best (top-n-sigma); 0 = off
  float at_least = 0;               ///< list all tokens of at least this probability; in [0, 1]; 0 = off
  std::span<Token const> probes{};  ///< the log-probability of these, whatever their rank; edits and `only` apply
  std::span<Edit const> edits{};    ///< a token named twice is edited twice
  detail::SortedEdits sorted{};     ///< of edits; {}: nothing is promised
  detail::SharedEdits const* shared =
      nullptr;  ///< acts after the softmax. Only an expander with `static constexpr bool takes_shared_edits =
                ///< true` sees it, and only in a query that is plain(): else it stands in `edits`
  Stage stage = Stage::before_softmax;
  TokenSet const* only = nullptr;            ///< all other tokens are forbidden
  detail::LineProcessor* process = nullptr;  ///< of processors that need all scores; only for an expander with `static
                                             ///< constexpr bool processes_lines = true`
  TokenSet const* shortlist = nullptr;       ///< so are tokens not in this, always before the softmax
  float temperature =
      1;  ///< scores are divided by it; > 0. If the best one would leave the range of floats, it is subtracted from
          ///< all of them first, on the host; log_sum_exp is then the largest float
  bool normalise = true;    ///< false: no softmax, scores as they are (an argmax needs no probabilities)
  bool entropy = false;     ///< compute the line's entropy (after Stage::before_softmax; later edits do not count)
  std::int32_t label = -1;  ///< for traces only: the search's own number for the line's hypothesis, which no answer
                            ///< depends on (how many constraints it has met, say); -1: none
  float shift = 0;          ///< for traces only: what a rule adds to every log-probability once the answer is there
  std::uint64_t noise = 0;  ///< not 0: select by log_prob + gumbel(noise, token), see core/noise.hpp; `mass`,
                            ///< `within`, `typical`, `deviations` and `at_least` still select by log_prob

  /// Whether more than the `best` tokens may be listed, which takes a second pass over the line.
  bool selects() const { return mass > 0 || within > 0 || typical > 0 || deviations > 0 || at_least > 0; }
  /// Whether nothing but the best and probes are asked for, after edits that are few, of log-probabilities.
  bool plain() const {
    constexpr std::size_t few = 256;
    return stage == Stage::after_softmax && only == nullptr && process == nullptr && noise == 0 && !selects() &&
           !entropy && probes.size() + edits.size() <= few;
  }
  /// Whether it asks for a list.
  bool lists() const { return best > 0 || selects(); }
};

/// The lines of one sentence in a step. Queries are in the order of groups.
struct Group {
  std::int32_t lines = 0;
  /// > 0: the lists may leave out a candidate if the group has `keep` better ones. Better: by base + log_prob (plus noise, if
  /// any), then by Query::rank, then the earlier line, then the earlier in its list. 0: every list is complete.
  std::int32_t keep = 0;
  std::int32_t direction = 0;  ///< Request::direction
};

/// A token and its log-probability (natural log), or its score if Query::normalise is off.
struct Candidate {
  Token token;
  float log_prob;
  friend bool operator==(Candidate, Candidate) = default;
};

/// The answer to one Query.
struct Line {
  std::span<Candidate const> best;  ///< best first: higher first, then the lower token; under noise by perturbed value
  std::span<float const> probes;    ///< in the order of Query::probes
  float log_sum_exp = 0;  ///< of the scores, after edits before the softmax and temperature; 0 if not normalised
  float entropy = 0;      ///< of the line, in nats, if Query::entropy asks
  bool valid = true;      ///< false: the scores, masks and edits applied, held a NaN or +infinity; all else is empty
  bool impossible =
      false;  ///< true: `best` is empty since every token is forbidden or -infinity. False where an expander on a
              ///< device does not say, and where Group::keep left nothing of the list
};

/// The answers to the queries of a step, or of one sentence's part of it: a view into an expander's memory, valid until
/// its next call.
class Expansion {
 public:
  /// Where the entries of one line begin in the common arrays.
  struct Entry {
    std::size_t best = 0, probes = 0;  ///< first index
    std::size_t best_count = 0, probe_count = 0;
    float log_sum_exp = 0;
    float entropy = 0;
    bool valid = true;
    bool impossible = false;
  };

  Expansion() = default;
  Expansion(std::span<Entry const> entries, std::span<Candidate const> best, std::span<float const> probes)
      : entries_(entries), best_(best), probes_(probes) {}

  std::size_t size() const { return entries_.size(); }
  Line operator[](std::size_t i) const {
    auto const& e = entries_[i];
    return {best_.subspan(e.best, e.best_count),
            probes_.subspan(e.probes, e.probe_count),
            e.log_sum_exp,
            e.entropy,
            e.valid,
            e.impossible};
  }
  Line back() const { return (*this)[size() - 1]; }
  /// The index of the stop that a candidate of line i completes, as processors say; -1: none. Only a search that says
  /// how often it asks (stops_asked, see Search) is answered, and not in a window().
  std::int32_t stop(std::size_t i, Token token) const { return stops_ == nullptr ? -1 : stops_->stop(i, token); }
  /// Only the lines first .. first + count - 1.
  Expansion window(std::size_t first, std::size_t count) const {
    return {entries_.subspan(first, count), best_, probes_};
  }
  /// Whether every line is valid.
  bool valid() const {
    for (auto const& e : entries_)
      if (!e.valid) return false;
    return true;
  }

 private:
  std::span<Entry const> entries_;
  std::span<Candidate const> best_;
  std::span<float const> probes_;
  detail::CandidateStops* stops_ = nullptr;

  template <class>
  friend class detail::ProcessedSearch;
};

// clang-format off
/// Turns a model's answer into answers to queries: `queries` has one entry per line of the model's answer, `groups` says which
/// lines belong to one sentence (in order; their `lines` add up). The answer for a line depends on that line only, or on its
/// group if Group::keep > 0. A model's answer may be expanded twice: Request::confidence needs a pass of its own. An expander
/// that cannot answer Query::entropy has `static constexpr bool answers_entropy = false`; a trace that wants it gets none.
template <class E, class AnswerType>
concept Expander = requires(E& expander, AnswerType const& answer, std::span<Query const> queries,
                            std::span<Group const> groups) {
  { expander.expand(answer, queries, groups) } -> std::same_as<Expansion>;
};
// clang-format on

}  // namespace sluice::inline v0
