// SPDX-License-Identifier: Apache-2.0
/// \file
/// Endpoint: where an utterance is over, although frames go on.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <cstdint>

namespace sluice::inline v0 {

/// When a search over frames ends an utterance by itself, for sound that does not end. Each rule is a number of frames; 0: off. They look
/// at the best hypothesis, after every frame, so where an utterance ends does not depend on how its frames come. The rules of Kaldi's
/// online endpoint detection (and of sherpa-onnx: rule1, rule2, rule3) with silence counted in frames without a token.
struct Endpoint {
  std::int32_t silence = 0;  ///< so many frames since its last token ended
  std::int32_t nothing = 0;  ///< so many frames, and it has no token
  std::int32_t longest = 0;  ///< so many frames at most

  bool on() const { return silence > 0 || nothing > 0 || longest > 0; }
  void check() const {
    require(silence >= 0, "endpoint.silence", silence, "must not be negative");
    require(nothing >= 0, "endpoint.nothing", nothing, "must not be negative");
    require(longest >= 0, "endpoint.longest", longest, "must not be negative");
  }
  /// \param frames  of the utterance so far
  /// \param end     of the last token: the frame after its last; 0: there is no token
  bool reached(std::int32_t frames, std::int32_t end) const {
    return (longest > 0 && frames >= longest) || (end > 0 && silence > 0 && frames - end >= silence) ||
           (end == 0 && nothing > 0 && frames >= nothing);
  }
};

}  // namespace sluice::inline v0
