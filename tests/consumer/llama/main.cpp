// SPDX-License-Identifier: Apache-2.0
// The component llama as others meet it: linked with llama.cpp, and run.
#include <sluice/core/model.hpp>
#include <sluice/engine/llama.hpp>

#include <iostream>
#include <stdexcept>

static_assert(sluice::Model<sluice::Llama>);

int main() {
  try {
    sluice::Llama const model(nullptr);
  } catch (std::invalid_argument const& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return 1;
}
