// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /v1/completions and GET /v1/models, in OpenAI's shape.
#pragma once

#include <http/flight.hpp>
#include <httplib.h>

namespace serve {

/// The Backend decides what a prompt is: for translation, a sentence in the source language.
/// \throws BadField, Refused, Gone
void answer_completions(House const& house, httplib::Request const& request, httplib::Response& response);
void answer_models(House const& house, httplib::Response& response);

}  // namespace serve
