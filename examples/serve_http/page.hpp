// SPDX-License-Identifier: Apache-2.0
/// \file
/// The page at /, in the program.
#pragma once

#include <http/flight.hpp>
#include <httplib.h>
#include <string_view>

namespace serve {

/// HTML without outside parts. NONCE stands where the content security policy's goes.
extern std::string_view const page;

void answer_page(House const& house, httplib::Request const& request, httplib::Response& response);

}  // namespace serve
