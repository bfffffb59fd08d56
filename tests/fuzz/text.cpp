// SPDX-License-Identifier: Apache-2.0
// UTF-8 of strangers, and what only looks like it: characters, capitals, white space.
#include <fuzz/demand.hpp>
#include <text/json.hpp>
#include <text/lines.hpp>
#include <text/words.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using sluice::test::demand;
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  auto const characters = text::characters(text);
  auto const written = text::to_utf8(characters);
  demand(text::valid_utf8(written), "what is written is not UTF-8", text);
  demand(text::characters(written) == characters, "what is written is read as something else", text);
  demand(text::valid_utf8(text) == (written == text), "valid text is changed, or other text is not", text);
  auto const squeezed = text::squeezed(text);
  demand(text::squeezed(squeezed) == squeezed, "squeezed, it can be squeezed", text);
  for (auto const c : characters) {
    auto const upper = text::upper(c), lower = text::lower(c);
    demand(text::upper(upper) == upper && text::lower(lower) == lower, "a capital has a capital of its own", text);
    demand(upper == c || lower == c, "a letter is neither large nor small", text);
  }
  demand(text::shortened(std::string(written)).size() <= 80, "not shortened", text);
  return 0;
}
