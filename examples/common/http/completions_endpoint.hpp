// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /v1/completions and /v1/chat/completions, GET /v1/models, in OpenAI's shape.
#pragma once

#include <http/flight.hpp>
#include <http/service.hpp>
#include <httplib.h>
#include <string>

namespace serve {

/// The Backend decides what a prompt is: for translation, a sentence in the source language.
/// \throws BadField, Refused, Gone
void answer_completions(House const& house, httplib::Request const& request, httplib::Response& response);
/// \param name  of the model that is wanted; empty: all
void answer_models(House const& house, std::string const& name, httplib::Response& response);
/// POST /v1/chat/completions, for a Backend that can write messages as a prompt.
Endpoint chatting();

}  // namespace serve
