// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tools, calls and their results within the messages of a prompt. llama.cpp's library applies chat templates without them, so
/// that they are written into the messages first.
#pragma once

#include <sluice/grammar/tool_calls.hpp>

#include <http/backend.hpp>
#include <llama/engine.hpp>
#include <string_view>
#include <vector>

namespace serve {

/// The format that a model's chat template writes calls in; `hermes` where it does not say.
sluice::ToolFormat guess_tool_format(std::string_view pattern);

/// Messages that have only a role and a content.
/// \param tools  named in the system message
std::vector<generate::Message> plain_messages(std::vector<Message> const& messages, Tools const& tools,
                                              sluice::ToolFormat format);

}  // namespace serve
