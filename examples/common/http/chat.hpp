// SPDX-License-Identifier: Apache-2.0
/// \file
/// What requests to /v1/chat/completions have in place of a prompt.
#pragma once

#include <http/backend.hpp>
#include <http/fields.hpp>

namespace serve {

/// `messages`, `chat_template_kwargs` and `reasoning_effort`; `tools`, `tool_choice` and `parallel_tool_calls`. Schemas are left to
/// the grammar that is made of them.
/// \throws BadField  naming the field, also within a message, and for choices without tools
Chat read_chat(Fields& fields);

}  // namespace serve
