// SPDX-License-Identifier: Apache-2.0
// Any text as a grammar in GBNF, and in Lark's syntax.
#include <sluice/grammar/lark.hpp>

#include <fuzz/compiled.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice;
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  auto const grammar = test::compiled([&] { return Grammar::from_gbnf(text, test::fuzz_limits()); });
  if (grammar) test::examine(*grammar);
  if (auto const lark = test::compiled([&] { return lark_grammar(text, {.limits = test::fuzz_limits()}); }))
    (void)test::examine(*lark);
  return 0;
}
