// SPDX-License-Identifier: Apache-2.0
// draw_llama FILE [LAYERS [SEED [CHAT_TEMPLATE [json]]]]: writes a small llama.cpp model with random weights; json: that can spell JSON.
#include <support/llama_models.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  sluice::test::LlamaShape shape;
  if (argc > 2) shape.layers = static_cast<std::uint32_t>(std::atoi(argv[2]));
  if (argc > 3) shape.seed = static_cast<std::uint64_t>(std::atoi(argv[3]));
  if (argc > 4) shape.chat = argv[4];
  shape.json = argc > 5;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen(argv[1], "wb"), std::fclose);
  if (file == nullptr) return 1;
  sluice::test::write_llama(shape, file.get());
}
