// SPDX-License-Identifier: Apache-2.0
/// \file
/// What requests to /v1/chat/completions have in place of a prompt.
#pragma once

#include <http/backend.hpp>
#include <http/fields.hpp>
#include <vector>

namespace serve {

/// \throws BadField  naming the field, also within a message
std::vector<Message> read_messages(Fields& fields);

/// `tools`, `tool_choice` and `parallel_tool_calls`. Schemas are left to the grammar that is made of them.
/// \throws BadField  naming the field, and for choices without tools
Tools read_tools(Fields& fields);

}  // namespace serve
