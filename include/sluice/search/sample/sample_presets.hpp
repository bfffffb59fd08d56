// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sampling of other engines, by name: a Sample with that engine's defaults and order. Change any member afterwards.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/sample/sample.hpp>

namespace sluice::inline v0::presets {

/// llama.cpp's (common/common.h, common_params_sampling): top_k 40, top_p 0.95, min_p 0.05, then the temperature, 0.8. Its
/// penalties, DRY and biases, off by default, come first: Ruled with Rules(TokenBias, Penalties, Dry).
/// Not reproduced: its random numbers; `--mirostat 2` takes no other sampler than the temperature: switch these off.
inline Sample llama_cpp_sample() {
  return {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .order = SamplerOrder::llama_cpp()};
}

/// Hugging Face transformers' `do_sample=True` (4.50, GenerationConfig): top_k 50.
/// Not reproduced: its random numbers; tokens that are as probable as the last one kept stay there, here the lower one stays.
inline Sample huggingface_sample() { return {.top_k = 50, .order = SamplerOrder::hugging_face()}; }

}  // namespace sluice::inline v0::presets
