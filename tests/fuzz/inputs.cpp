// SPDX-License-Identifier: Apache-2.0
// Files, lists and command lines of strangers; the first byte says of which kind. Each is read, or refused in words.
#include <fuzz/inputs/files.hpp>
#include <fuzz/inputs/texts.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

// Of the command line, which is linked without what loads models.
std::filesystem::path translate::default_model() { return "model"; }

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice::test;
  if (size == 0) return 0;
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  switch (data[0]) {
    case 's': safetensors(text); break;
    case 'c': clusters(text); break;
    case 't': catalogue(text); break;
    case 'd': demands(text); break;
    case 'g': glossary(text); break;
    case 'i': image(text); break;
    case 'm': manifest(text); break;
    case 'o': command_line(text); break;
    default: return -1;  // not to be kept
  }
  return 0;
}
