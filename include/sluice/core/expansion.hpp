// SPDX-License-Identifier: Apache-2.0
/// \file
/// The answers that a search gets for each line, and the Expander concept, which makes them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0 {

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
