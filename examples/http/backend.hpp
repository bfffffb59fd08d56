// SPDX-License-Identifier: Apache-2.0
/// \file
/// What stands behind the endpoints: texts in, texts out. They know of no model; another program brings another Backend.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/server_options.hpp>

#include <cstddef>
#include <cstdint>
#include <http/completion.hpp>
#include <http/fields.hpp>
#include <http/task.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace serve {

/// One hypothesis as text.
struct Candidate {
  struct Piece {
    std::string name;                                   ///< UTF-8
    std::string text;                                   ///< what it adds to the text: bytes
    float log_prob;                                     ///< NaN: not known
    std::vector<std::pair<std::string, float>> best{};  ///< names of the most probable tokens in its place, best first
  };
  std::string text{};
  double score = 0, log_prob = 0;
  std::vector<Piece> pieces{};  ///< the tokens; the last may be the end
  bool finished = false;
  bool stopped = false;  ///< by a stop string, which is not in the text
};

/// What became of one Ask.
struct Answer {
  sluice::Failure failure = sluice::Failure::none;
  std::string message{};
  std::vector<Candidate> candidates{};        ///< best first, maybe only what there was when it failed
  std::size_t source_tokens = 0, tokens = 0;  ///< read; generated, of all candidates
  std::int32_t met = 0, demanded = 0;         ///< of the constraints
  std::vector<std::string> missing{}, forbidden{};
};

/// An Ask that has been understood. Used by one thread at a time.
class Job {
 public:
  Job() = default;
  Job(Job const&) = delete;
  Job& operator=(Job const&) = delete;
  virtual ~Job() = default;

  /// More of the answer is certain.
  /// \param tokens  all that is settled
  /// \return        the text that they add
  virtual std::string settle(std::span<sluice::Token const> tokens) = 0;
  /// The rest of the first candidate, behind all that settle() has given.
  virtual std::string rest(Answer const& answer) = 0;
  virtual Answer answer(sluice::Result const& result) = 0;
};

/// Any thread may call.
class Backend {
 public:
  using Ticket = std::pair<std::size_t, std::uint64_t>;  ///< decoder, its number

  Backend() = default;
  Backend(Backend const&) = delete;
  Backend& operator=(Backend const&) = delete;
  virtual ~Backend() = default;

  virtual std::string const& name() const = 0;
  /// How prompts of /v1/completions are continued. Asks for fields of its own, too.
  /// \throws BadField  for what makes no sense, or cannot be had
  virtual std::shared_ptr<Settings const> settings(Completion const& completion, Fields& fields,
                                                   Bounds const& bounds) const = 0;
  /// Understands an Ask: all that needs no model.
  /// \throws BadField  for what makes no sense
  virtual std::unique_ptr<Job> prepare(Ask const& ask, std::shared_ptr<Settings const> settings) const = 0;
  /// Hands a job, that must live until it is done, to a decoder; nothing if they are closed.
  virtual std::optional<Ticket> submit(Job& job, sluice::Delivery delivery) = 0;
  virtual void cancel(Ticket ticket) = 0;
  /// Of all decoders.
  virtual sluice::Statistics statistics() const = 0;
  /// Sentences that are decoded together.
  virtual std::size_t size() const = 0;
};

}  // namespace serve
