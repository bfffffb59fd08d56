// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tools, calls and their results within the messages of a prompt. What a chat template does not write by itself is written into the
/// messages first.
#pragma once

#include <sluice/grammar/tool_calls.hpp>

#include <http/backend.hpp>
#include <llama/chat_template.hpp>
#include <string_view>

namespace serve {

/// The format that a model's chat template writes calls in; `hermes` where it does not say.
sluice::ToolFormat guess_tool_format(std::string_view pattern);

/// Messages as the template takes them, in OpenAI's form. Tools that it does not describe stand in the system message; where it writes
/// no calls, there are none, and results are messages with only a role and a content.
/// \throws BadField  for results of no call
generate::ChatTemplate::Json prompt_messages(Chat const& chat, generate::ChatTemplate const& pattern,
                                             sluice::ToolFormat format);

}  // namespace serve
