// SPDX-License-Identifier: Apache-2.0
/// \file
/// The page at /, in the program.
#pragma once

#include <http/flight.hpp>
#include <httplib.h>
#include <string_view>

namespace serve {

/// HTML that loads nothing from elsewhere. NONCE stands for the nonce of the content security policy.
extern std::string_view const page;

void answer_page(House const& house, httplib::Request const& request, httplib::Response& response);

}  // namespace serve
