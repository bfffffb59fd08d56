// SPDX-License-Identifier: Apache-2.0
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detail/philox.hpp>
#include <sluice/watermark/detail/sha256.hpp>
#include <sluice/watermark/watermark.hpp>

#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using detail::MarkContext;
using detail::Marker;

namespace {

std::vector<std::uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }
std::string hex(std::span<std::uint8_t const> all) {
  std::string out;
  for (auto const byte : all) out += "0123456789abcdef"[byte >> 4], out += "0123456789abcdef"[byte & 15];
  return out;
}
std::string sha256(std::span<std::uint8_t const> message, std::size_t piece) {
  detail::Sha256 hash;
  for (std::size_t i = 0; i < message.size(); i += piece)
    hash.add(message.subspan(i, (std::min)(piece, message.size() - i)));
  return hex(hash.digest());
}

nlohmann::json cases(char const* of) {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/oracles/watermark.json");
  REQUIRE(file);
  return nlohmann::json::parse(file).at(of);
}
std::uint64_t word(nlohmann::json const& text) { return std::stoull(text.get<std::string>()); }
WatermarkKey key(nlohmann::json const& texts) {
  std::vector<std::uint64_t> words;
  for (auto const& text : texts) words.push_back(word(text));
  return WatermarkKey(words);
}
/// Some of the tokens before an output's beginning: -1.
std::vector<Token> output(std::vector<Token> context) {
  std::erase(context, -1);
  return context;
}

}  // namespace

TEST_CASE("Philox gives the known answers of Random123", "[watermark]") {
  constexpr auto all = 0xffffffffu;
  CHECK(detail::philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(detail::philox({all, all, all, all}, {all, all}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(detail::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("SHA-256 gives NIST's example digests, in pieces of any size", "[watermark]") {
  for (auto const piece : std::array<std::size_t, 7>{1, 3, 55, 63, 64, 65, 1000000}) {
    CHECK(sha256(bytes(""), piece) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256(bytes("abc"), piece) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), piece) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(bytes("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqr"
                       "smnopqrstnopqrstu"),
                 piece) == "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  }
  CHECK(sha256(std::vector<std::uint8_t>(1000000, 'a'), 977) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("HMAC-SHA256 gives the test cases of RFC 4231", "[watermark]") {
  auto const hmac = [](std::vector<std::uint8_t> const& its_key, std::string_view message) {
    return hex(detail::HmacSha256(its_key)(bytes(message)));
  };
  CHECK(hmac(std::vector<std::uint8_t>(20, 0x0b), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac(bytes("Jefe"), "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::vector<std::uint8_t>(131, 0xaa), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("the numbers of philox and hmac_sha256 are vLLM's", "[watermark]") {
  for (auto const& one : cases("numbers")) {
    auto const context = one.at("context").get<std::vector<Token>>();
    auto const text = output(context);
    auto const width = static_cast<std::int32_t>(context.size());
    Watermark const philox{WatermarkScheme::gumbel, WatermarkPrf::philox, WatermarkKey(word(one.at("key"))), width};
    Watermark const hmac{WatermarkScheme::gumbel, WatermarkPrf::hmac_sha256, key(one.at("hmac_key")), width};
    philox.check(), hmac.check();
    Marker const by_philox(philox), by_hmac(hmac);
    MarkContext const place(text, width, -1);
    auto const& a = by_philox.numbers(false);
    auto const& b = by_hmac.numbers(false);
    for (std::size_t i = 0; i < one.at("tokens").size(); ++i) {
      auto const token = one.at("tokens")[i].get<Token>();
      CHECK(a.bits(a.place(place), token) == one.at("philox_words")[i].get<std::uint32_t>());
      CHECK(a.uniform(a.place(place), token) == one.at("philox")[i].get<double>());
      CHECK(b.uniform(b.place(place), token) == one.at("hmac")[i].get<double>());
    }
  }
}

TEST_CASE("a line's token is vLLM's, and so are green tokens and tournaments", "[watermark]") {
  for (auto const& one : cases("gumbel_tokens")) {
    auto const context = one.at("context").get<std::vector<Token>>();
    auto const text = output(context);
    std::vector<Candidate> list;
    for (auto const& x : one.at("logits")) list.push_back({static_cast<Token>(list.size()), x.get<float>()});
    detail::MarkScratch weights;
    Watermark options{WatermarkScheme::gumbel, WatermarkPrf::philox, WatermarkKey(word(one.at("key"))),
                      static_cast<std::int32_t>(context.size())};
    auto const token = [&] {
      Marker const marker(options);
      return list[marker.draw(list, marker.mark_with(text, false), 1, weights)].token;
    };
    // vLLM marks repeated contexts too where it is told to: these have none before them.
    if (MarkContext(text, options.width, -1).repeated()) continue;
    CHECK(token() == one.at("philox").get<Token>());
    options.prf = WatermarkPrf::hmac_sha256;
    CHECK(token() == one.at("hmac_sha256").get<Token>());
    CHECK(detail::derived_key(options.key, 'a') == WatermarkKey(word(one.at("key_a"))));
    CHECK(detail::derived_key(options.key, 'b') == WatermarkKey(word(one.at("key_b"))));
    options.prf = WatermarkPrf::philox, options.scheme = WatermarkScheme::red_green;
    {
      Marker const marker(options);
      auto const mark = marker.mark_with(text, false);
      for (auto const c : list)
        CHECK(marker.is_green(mark, c.token) == (one.at("green")[static_cast<std::size_t>(c.token)] == 1));
    }
    options.scheme = WatermarkScheme::synthid;
    Marker const marker(options);
    marker.draw(list, marker.mark_with(text, false), 7, weights);
    for (std::size_t v = 0; v < list.size(); ++v)
      CHECK_THAT(std::exp(weights.weights[v] - gumbel(7, list[v].token)),
                 WithinAbs(one.at("tournament")[v].get<double>(), 1e-12));
  }
}

TEST_CASE("the bits of synthid_text and hugging_face are theirs, and so are repeated contexts", "[watermark]") {
  auto const texts = cases("synthid_text"), others = cases("hugging_face");
  for (std::size_t n = 0; n < texts.size(); ++n) {
    auto const& one = texts[n];
    auto const tokens = one.at("tokens").get<std::vector<Token>>();
    auto const width = one.at("width").get<std::int32_t>();
    Watermark options{WatermarkScheme::synthid, WatermarkPrf::synthid_text, key(one.at("keys")), width};
    options.check();
    Marker const marker(options);
    options.prf = WatermarkPrf::hugging_face;
    Marker const table(options);
    auto const first = static_cast<std::size_t>(width);
    for (auto i = first; i < tokens.size(); ++i) {
      auto const before = std::span(tokens).first(i);
      auto const context = marker.context(before);
      auto const& a = marker.numbers(false);
      auto const& b = table.numbers(false);
      CHECK(a.bits(a.place(context), tokens[i]) == one.at("g")[i - first].get<std::uint32_t>());
      CHECK(b.bits(b.place(context), tokens[i]) == others[n].at("g")[i - first].get<std::uint32_t>());
      auto again = false;  // theirs begins with the first whole context
      for (auto k = first; k < i; ++k)
        again = again ||
                std::equal(before.end() - width, before.end(), tokens.begin() + static_cast<std::ptrdiff_t>(k) - width);
      CHECK(again == (one.at("new")[i - first] == 0));
      if (again) CHECK(context.repeated());
    }
  }
}

TEST_CASE("the green tokens of sbw are vLLM's", "[watermark]") {
  for (auto const& one : cases("sbw")) {
    auto const tokens = one.at("tokens").get<std::vector<Token>>();
    Watermark const options{.scheme = WatermarkScheme::sbw,
                            .prf = WatermarkPrf::philox,
                            .key = WatermarkKey(word(one.at("key"))),
                            .width = one.at("width").get<std::int32_t>(),
                            .gamma = one.at("gamma").get<float>()};
    options.check();
    Marker const marker(options);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto const context = marker.context(std::span(tokens).first(i));
      CHECK(detail::green(options, marker.numbers(false), {}, context, tokens[i]) == (one.at("green")[i] == 1));
    }
  }
}

TEST_CASE("a watermark's options are checked, and no message has a part of the key", "[watermark]") {
  auto const says = [](Watermark const& options) -> std::string {
    try {
      options.check();
    } catch (std::invalid_argument const& e) {
      CHECK(std::string(e.what()).find("987654321") == std::string::npos);
      return e.what();
    }
    return "";
  };
  using enum WatermarkScheme;
  WatermarkKey const some(987654321);
  std::vector<std::uint64_t> const two{987654321, 987654321};
  CHECK(says({}) == "");
  CHECK(says({.scheme = gumbel}) == "sluice: watermark.key = none: is needed to mark and to detect");
  CHECK(says({.scheme = gumbel, .key = some, .width = 0}) == "sluice: watermark.width = 0: must be in [1, 16]");
  CHECK(says({.scheme = gumbel, .key = some, .width = 17}) == "sluice: watermark.width = 17: must be in [1, 16]");
  CHECK(says({.scheme = gumbel, .key = some, .second = 1}) ==
        "sluice: watermark.second = 1.000000: must be 0, or in [0.01, 0.99]");
  CHECK(says({.scheme = synthid, .key = some, .second = 0.5f}) ==
        "sluice: watermark.second = 0.500000: is for the scheme gumbel: outputs of the others vary with the seed");
  CHECK(says({.scheme = red_green, .key = some, .gamma = 1}) ==
        "sluice: watermark.gamma = 1.000000: must be between 0 and 1");
  CHECK(says({.scheme = red_green, .key = some, .delta = 0}) ==
        "sluice: watermark.delta = 0.000000: must be a number > 0");
  CHECK(says({.scheme = synthid, .key = some, .depth = 33}) == "sluice: watermark.depth = 33: must be in [1, 32]");
  CHECK(says({.scheme = gumbel, .prf = WatermarkPrf::synthid_text, .key = some}) ==
        "sluice: watermark.prf = synthid_text: is for the scheme synthid: it gives bits, not numbers");
  CHECK(
      says({.scheme = synthid, .prf = WatermarkPrf::hmac_sha256, .key = some}) ==
      "sluice: watermark.prf = hmac_sha256: has no bits for the scheme synthid: choose sluice, philox or synthid_text");
  CHECK(says({.scheme = gumbel, .prf = WatermarkPrf::philox, .key = WatermarkKey(two)}) ==
        "sluice: watermark.key: words = 2: must be 1 for the prf philox");
  CHECK(says({.scheme = sbw, .key = some}) ==
        "sluice: watermark.prf = sluice: is not defined for the scheme sbw: choose philox");
  CHECK_THROWS_AS(WatermarkKey(std::vector<std::uint64_t>(33)), std::invalid_argument);
  CHECK(WatermarkKey(two) == WatermarkKey(two));
  CHECK_FALSE(WatermarkKey(two) == some);
  CHECK_FALSE(WatermarkKey(1) == some);
}
