// SPDX-License-Identifier: Apache-2.0
/// \file
/// The page at /, in the program.
#pragma once

#include <string_view>

namespace serve {

/// HTML without outside parts. NONCE stands where the content security policy's goes.
extern std::string_view const page;

}  // namespace serve
