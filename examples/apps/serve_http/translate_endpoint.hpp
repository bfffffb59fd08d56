// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /translate.
#pragma once

#include <http/flight.hpp>
#include <httplib.h>

namespace serve {

/// \param guesses  whether the model proposes tokens: blockwise search
/// \throws BadField, Refused, Gone
void answer_translate(House const& house, bool guesses, httplib::Request const& request, httplib::Response& response);

}  // namespace serve
