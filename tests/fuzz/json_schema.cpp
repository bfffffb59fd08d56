// SPDX-License-Identifier: Apache-2.0
// Any text as a JSON schema: what its grammar accepts is JSON, with and without white space. And as a structural tag.
#include <sluice/grammar/tool_calls.hpp>

#include <fuzz/compiled.hpp>

#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice;
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  auto const compile = [&](std::int32_t white_space) {
    return test::compiled(
        [&] { return Grammar::from_json_schema(text, {.white_space = white_space, .limits = test::fuzz_limits()}); });
  };
  if (auto const tag = test::compiled([&] { return structural_tag(text, {.limits = test::fuzz_limits()}); }))
    (void)test::examine(*tag);
  auto const grammar = compile(0);
  if (!grammar) return 0;
  auto const value = test::examine(*grammar);
  if (!value) return 0;
  test::demand(nlohmann::json::accept(*value), "an output is no JSON", *value);
  if (auto const free = compile(-1))
    test::demand(free->matches(*value), "does not match where white space is allowed", *value);
  return 0;
}
