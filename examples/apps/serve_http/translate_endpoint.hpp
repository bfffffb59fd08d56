// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /translate.
#pragma once

#include <http/flight.hpp>
#include <httplib.h>
#include <serve_http/settings.hpp>

namespace serve {

/// \throws BadField, Refused, Gone
void answer_translate(House const& house, Offer const& offer, httplib::Request const& request,
                      httplib::Response& response);

}  // namespace serve
