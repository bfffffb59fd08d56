// SPDX-License-Identifier: Apache-2.0
// A SuffixCache; the first byte says how. 'o': a program of insertions, look-ups, files and damage, beside a list of texts that is
// searched token by token. 'f': a file of any content, whose lengths and checksums are made right: it is read, or refused in words,
// and what was read can be used.
#include <sluice/speculative/suffix_cache.hpp>

#include <fuzz/suffix/suffix_files.hpp>
#include <fuzz/suffix/suffix_program.hpp>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice::test;
  if (size == 0) return 0;
  switch (data[0]) {
    case 'o': SuffixProgram({data + 1, size - 1}).run(); break;
    case 'f': suffix_file({data + 1, size - 1}); break;
    default: return -1;  // not to be kept
  }
  return 0;
}
