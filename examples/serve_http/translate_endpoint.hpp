// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /translate.
#pragma once

#include <httplib.h>
#include <serve_http/flight.hpp>

namespace serve {

/// \throws BadField, Refused, Gone
void answer_translate(House const& house, httplib::Request const& request, httplib::Response& response);

}  // namespace serve
