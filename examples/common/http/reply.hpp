// SPDX-License-Identifier: Apache-2.0
/// \file
/// The message of a model that may call tools, or think first.
#pragma once

#include <sluice/grammar/tool_calls.hpp>

#include <http/fields.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace serve {

/// One choice's message, from its text, whole or while it is written.
class Reply {
 public:
  /// \param format   of calls; nothing: there are none
  /// \param tools    of the request, JSON
  /// \param reasons  the text begins with what was thought, up to `</think>`
  /// \param choice   what the ids of its calls begin with
  Reply(std::optional<sluice::ToolFormat> format, std::string const& tools, bool reasons, std::string choice)
      : parser_(format, format ? tools : std::string(),
                reasons ? std::optional(sluice::Reasoning{}) : std::nullopt),  // as vLLM's deepseek_r1 and qwen3
        choice_(std::move(choice)) {}

  /// What more of the text adds, as deltas of OpenAI's chunks: what was thought, content, and of each call first its id and name,
  /// then its arguments.
  std::vector<Json> append(std::string_view text) { return deltas(parser_.append(text)); }
  /// What is left at the end.
  std::vector<Json> finish() { return deltas(parser_.finish()); }

  /// All deltas together.
  Json message() const;
  bool calls() const { return !calls_.empty(); }

 private:
  std::vector<Json> deltas(std::vector<sluice::ToolCallEvent> const& events);

  sluice::ToolCallParser parser_;
  std::string choice_, content_{}, reasoning_{};
  std::vector<Json> calls_{};
};

}  // namespace serve
