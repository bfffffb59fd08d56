// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;

TEST_CASE("tokens keep their bytes, zeros and halves of characters too", "[token_bytes]") {
  std::vector<std::string> const tokens{"", " the", std::string("\0x", 2), "\xE4", "", "\xBA\x8C"};
  TokenBytes const bytes(tokens);
  REQUIRE(bytes.size() == 6);
  for (Token token = 0; token < 6; ++token) CHECK(bytes.bytes(token) == tokens[static_cast<std::size_t>(token)]);
  CHECK(bytes.text(std::vector<Token>{1, 4, 3, 5, 0, 2}) == " the\xE4\xBA\x8C" + tokens[2]);
  CHECK(bytes.text({}).empty());
  auto const copy = bytes;
  CHECK(copy.bytes(1).data() == bytes.bytes(1).data());
}

TEST_CASE("tokens of any length keep their bytes", "[token_bytes]") {
  for (std::size_t longest = 0; longest < 40; ++longest) {
    std::vector<std::string> tokens;
    std::string all;
    for (std::size_t length = 0; length <= longest; ++length) {
      tokens.emplace_back(length, static_cast<char>('a' + length % 26));
      all += tokens.back();
    }
    TokenBytes const bytes(tokens);
    std::vector<Token> every;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      every.push_back(static_cast<Token>(i));
      CHECK(bytes.bytes(every.back()) == tokens[i]);
    }
    CHECK(bytes.text(every) == all);
    CHECK_FALSE(bytes.empty());
    CHECK(TokenBytes(std::vector<std::string>{tokens.back()}).bytes(0) == tokens.back());
  }
}

TEST_CASE("tokens that have no bytes are refused by name", "[token_bytes]") {
  TokenBytes const none, two(std::vector<std::string>{"a", "b"});
  CHECK(none.empty());
  CHECK(none.size() == 0);
  CHECK(none.text({}).empty());
  for (Token const token : {-1, 2}) {
    CHECK_THROWS_AS(two.bytes(token), std::invalid_argument);
    CHECK_THROWS_AS(two.text(std::vector<Token>{0, token}), std::invalid_argument);
  }
  CHECK_THROWS_WITH(two.bytes(2), "sluice: token = 2: has no bytes: there are those of 2 tokens");
  CHECK_THROWS_AS(none.bytes(0), std::invalid_argument);
}
