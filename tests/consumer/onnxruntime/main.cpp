// SPDX-License-Identifier: Apache-2.0
// The component onnxruntime as others meet it: linked with ONNX Runtime, and run.
#include <sluice/core/model.hpp>
#include <sluice/engine/onnxruntime.hpp>

#include <iostream>
#include <stdexcept>

static_assert(sluice::Model<sluice::OnnxDecoder<>> && sluice::EncodingModel<sluice::OnnxEncoderDecoder<>>);

int main() {
  Ort::Env const environment(ORT_LOGGING_LEVEL_FATAL);
  try {
    sluice::load_onnx(environment, "missing.onnx");
  } catch (std::runtime_error const& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return 1;
}
