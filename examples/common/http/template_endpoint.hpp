// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /apply-template, as llama-server has it: the prompt that a chat becomes.
#pragma once

#include <http/backend.hpp>
#include <http/service.hpp>
#include <string>

namespace serve {

/// A chat as a prompt, when it is the turn of this client.
/// \throws BadField, Refused, Gone, OverBudget
std::string prompt_of(Chat const& chat, House const& house, httplib::Request const& request);

Endpoint templating();

}  // namespace serve
