// SPDX-License-Identifier: Apache-2.0
/// \file
/// Presets for the sampling of other engines: a Sample with that engine's defaults and order. Any member can be changed
/// afterwards.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/sample/sample.hpp>

namespace sluice::inline v0::presets {

/// llama.cpp's defaults (common/common.h, common_params_sampling): top_k 40, top_p 0.95, min_p 0.05, then the
/// temperature, 0.8. Its penalties, DRY and logit bias, off by default, come first: Ruled with Rules(TokenBias,
/// Penalties, Dry).
/// Not reproduced: its random numbers; `--mirostat 2` uses no sampler other than the temperature: switch the others
/// off.
inline Sample llama_cpp_sample() {
  return {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .order = SamplerOrder::llama_cpp()};
}

/// Hugging Face transformers' `do_sample=True` (4.50, GenerationConfig): top_k 50.
/// Not reproduced: its random numbers; on a tie with the last token kept, Hugging Face keeps all tied tokens, and this
/// keeps the lowest.
inline Sample huggingface_sample() { return {.top_k = 50, .order = SamplerOrder::hugging_face()}; }

}  // namespace sluice::inline v0::presets
