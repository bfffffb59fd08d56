// SPDX-License-Identifier: Apache-2.0
/// \file
/// ResultOrder: in which order results come.
#pragma once

#include <sluice/language.hpp>

#include <cstdint>

namespace sluice::inline v0 {

/// In which order decode_each() hands out results.
enum class ResultOrder : std::uint8_t {
  input,  ///< that of the inputs: a result waits for those before it
  ended,  ///< as sentences end; Result::id says which input it was
};

}  // namespace sluice::inline v0
