// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a fuzzer says that something does not hold.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace sluice::test {

inline void demand(bool holds, char const* what, std::string_view text = {}) {
  if (holds) return;
  std::fprintf(stderr, "%s: '%.*s'\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

}  // namespace sluice::test
