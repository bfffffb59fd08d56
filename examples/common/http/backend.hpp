// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the endpoints call: texts in, texts out. They do not depend on a model; another program provides another Backend.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/server_options.hpp>

#include <nlohmann/json.hpp>

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
    std::string text;                                   ///< the bytes that it adds to the text
    float log_prob;                                     ///< NaN: unknown
    std::vector<std::pair<std::string, float>> best{};  ///< names of the most probable tokens here, best first
  };
  std::string text{};
  double score = 0, log_prob = 0;
  std::vector<Piece> pieces{};  ///< the tokens; the last may be eos
  bool finished = false;
  bool stopped = false;  ///< by a stop string, which is not in the text
};

/// A call of a tool that a chat has had.
struct ToolCall {
  std::string id, name;
  std::string arguments;  ///< JSON, an object
};
/// Of a chat.
struct Message {
  std::string role, content;
  std::vector<ToolCall> calls{};  ///< that the assistant made, behind its content
  std::string call{};             ///< of role tool: the id of the call of which the content is the result
  std::string name{};             ///< empty: none
  std::string reasoning{};        ///< what the assistant thought before
};
/// What a request has in place of a prompt.
struct Chat {
  using Variables = nlohmann::ordered_json;
  std::vector<Message> messages{};
  Tools tools{};                              ///< that may be called
  Variables variables = Variables::object();  ///< of the chat template: `chat_template_kwargs`
  std::optional<std::string> effort{};        ///< `reasoning_effort`
};

/// The result of one Ask.
struct Answer {
  sluice::Failure failure = sluice::Failure::none;
  std::string message{};
  std::string field{};                        ///< of the request, that is to blame; empty: the request as a whole
  std::vector<Candidate> candidates{};        ///< best first; after a failure, those found so far
  std::size_t source_tokens = 0, tokens = 0;  ///< tokens of the source; generated tokens of all candidates
  std::int32_t met = 0, demanded = 0;         ///< of the constraints
  std::vector<std::string> missing{}, forbidden{};
};

/// Earlier outputs, from which guesses come (suffix decoding).
struct Remembered {
  std::int64_t texts = 0, tokens = 0, bytes = 0;
};

/// An Ask that has been parsed. Used by one thread at a time.
class Job {
 public:
  Job() = default;
  Job(Job const&) = delete;
  Job& operator=(Job const&) = delete;
  virtual ~Job() = default;

  /// More of the answer is settled.
  /// \param tokens  those that are new
  /// \return        the text that is new
  virtual std::string append(std::span<sluice::Token const> tokens) = 0;
  /// The rest of the first candidate, after the text that append() has returned.
  virtual std::string rest(Answer const& answer) = 0;
  virtual Answer answer(sluice::Result const& result) = 0;
  /// What answer() costs, if it is work that calls Work::checkpoint(); 0: it takes no time worth mentioning.
  virtual double answer_work() const { return 0; }

  /// What it costs, estimated: rows of the model in each step, and steps.
  virtual std::size_t rows() const = 0;
  virtual std::size_t steps() const = 0;
  /// The memory that the decoders take for it, and for its result, at most.
  virtual std::size_t answer_bytes() const = 0;
};

/// What the sentences of a request have in common, made once.
class Preparation {
 public:
  Preparation() = default;
  Preparation(Preparation const&) = delete;
  Preparation& operator=(Preparation const&) = delete;
  virtual ~Preparation() = default;

  /// Parses an Ask of the task, as far as no model is needed.
  /// \throws BadField  for invalid values
  virtual std::unique_ptr<Job> job(Ask const& ask) = 0;
};

/// Any thread may call.
class Backend {
 public:
  using Ticket = std::pair<std::size_t, std::uint64_t>;  ///< decoder, its number
  using Pieces = std::vector<std::pair<sluice::Token, std::string>>;

  Backend() = default;
  Backend(Backend const&) = delete;
  Backend& operator=(Backend const&) = delete;
  virtual ~Backend() = default;

  virtual std::string const& name() const = 0;
  /// How prompts of /v1/completions are continued. May read additional fields.
  /// \throws BadField  for invalid or unsupported values
  virtual std::shared_ptr<Settings const> settings(Completion const& completion, Fields& fields,
                                                   Bounds const& bounds) const = 0;
  /// Long work of it and of the jobs that it makes calls Work::checkpoint().
  /// \param task  outlives what is returned
  /// \throws BadField  for invalid values
  virtual std::unique_ptr<Preparation> prepare(Task const& task) const = 0;
  /// A prompt may be tokens below this; 0: only texts.
  virtual std::int32_t token_count() const { return 0; }
  /// A chat as a prompt, whose names of control tokens are those tokens.
  /// \throws BadField  if there is no way to write it
  virtual std::string chat(Chat const&) const { throw BadField("messages", "this model does not chat"); }
  /// How outputs that may have calls of tools write them, as sluice::tool_format() calls it. Their texts have names of control
  /// tokens.
  virtual std::string tool_format() const { throw BadField("tools", "tools are not supported"); }
  /// Whether outputs of chats begin with what was thought, up to `</think>`.
  virtual bool reasons() const { return false; }
  /// Whether that of this prompt does, which chat() has made: it may say that nothing is to be thought.
  virtual bool reasons(std::string const&) const { return reasons(); }
  /// Hands a job, which must live until it is done, to a decoder; returns nothing if the decoders are closed.
  /// \param express  to the decoder for small requests, which do not wait for the steps of large ones
  virtual std::optional<Ticket> submit(Job& job, sluice::Delivery delivery, bool express) = 0;
  virtual void cancel(Ticket ticket) = 0;
  /// The tokens of a text that was an output, each with the bytes that it writes.
  /// \throws BadField  for one that is too long
  virtual Pieces pieces(std::string const& text) const = 0;
  /// Of all decoders.
  virtual sluice::Statistics statistics() const = 0;
  /// Sentences that are decoded together, without small requests.
  virtual std::size_t size() const = 0;
  /// Rows of one client that the decoder for small requests has at a time; 0: there is no such decoder.
  virtual std::size_t express_rows() const { return 0; }
  /// What it remembers of earlier outputs; nothing: it does not.
  virtual std::optional<Remembered> remembered() const { return std::nullopt; }
  /// Called once, after the last answer.
  virtual void save() {}
};

}  // namespace serve
