// SPDX-License-Identifier: Apache-2.0
/// \file
/// The message of a model that may call tools, or think first.
#pragma once

#include <sluice/grammar/tool_calls.hpp>

#include <cstdint>
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
      : choice_(std::move(choice)), part_(reasons ? Part::begin : Part::answer) {
    if (format) parser_.emplace(*format, tools);
  }

  /// What more of the text adds, as deltas of OpenAI's chunks: what was thought, content, and of each call first its id and name,
  /// then its arguments.
  std::vector<Json> append(std::string_view text) { return deltas(read(text, false)); }
  /// What is left at the end.
  std::vector<Json> finish() { return deltas(read({}, true)); }

  /// All deltas together.
  Json message() const;
  bool calls() const { return !calls_.empty(); }

 private:
  using Events = std::vector<sluice::ToolCallEvent>;
  enum class Part : std::uint8_t { begin, reasoning, space, answer };

  Events read(std::string_view text, bool last);
  /// Of what waits: what belongs to the reasoning, and whether it has ended.
  void think(bool last, Events& events);
  std::vector<Json> deltas(Events const& events);

  std::optional<sluice::ToolCallParser> parser_{};
  std::string choice_, content_{}, reasoning_{}, waiting_{};
  Part part_;
  std::vector<Json> calls_{};
};

}  // namespace serve
