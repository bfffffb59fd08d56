// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>
#include <transformer/safetensors.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

using namespace sluice::example;
using namespace sluice::test;

namespace {

/// A file of this header and so many bytes of data, 0, 1, 2 ...
std::vector<std::byte> file(std::string const& header, std::size_t data_bytes, std::uint64_t claimed) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &claimed, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) bytes[8 + header.size() + i] = static_cast<std::byte>(i);
  return bytes;
}
std::vector<std::byte> file(std::string const& header, std::size_t data_bytes) {
  return file(header, data_bytes, header.size());
}

/// The message that the file is refused with; empty if it is accepted.
std::string refusal(std::vector<std::byte> bytes) {
  try {
    Safetensors("F", std::move(bytes));
  } catch (std::runtime_error const& error) {
    return error.what();
  }
  return "";
}
std::string refusal(std::string const& header, std::size_t data_bytes) { return refusal(file(header, data_bytes)); }

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a good file is read", "[safetensors]") {
  auto const bytes = file(R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]},)"
                          R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                          R"("empty":{"dtype":"F16","shape":[0,3],"data_offsets":[8,8]}}   )",
                          9);
  Safetensors const read("F", bytes);
  CHECK(read.metadata().at("k") == "v");
  REQUIRE(read.tensors().size() == 3);
  CHECK(read.tensors().at("b").data.size() == 1);
  CHECK(read.tensors().at("a").shape == std::vector<std::int64_t>{2, 1});
  auto const floats = read.floats("a", {2, 1});
  CHECK(std::memcmp(floats.data(), read.tensors().at("a").data.data(), 8) == 0);
  CHECK(read.floats("empty", {0, 3}).empty());
  CHECK_THROWS_WITH(read.floats("a", {2}), "F: tensor 'a' has shape [2,1], expected [2]");
  CHECK_THROWS_WITH(read.floats("c", {2}), "F: tensor 'c' is missing");
  CHECK_THROWS_WITH(read.floats("b", {}), "F: tensor 'b' has dtype U8, expected F32, F16 or BF16");
}

TEST_CASE("halves and bfloat16 are read", "[safetensors]") {
  auto bytes = file(R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},)"
                    R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]}})",
                    10);
  std::uint16_t const numbers[] = {0x3C00, 0xC000, 0x0001, 0x7C00, 0x4049};
  std::memcpy(bytes.data() + bytes.size() - 10, numbers, 10);
  Safetensors const read("F", bytes);
  CHECK(read.floats("h", {4}) == std::vector<float>{1, -2, 0x1p-24f, HUGE_VALF});
  CHECK(read.floats("b", {1}) == std::vector<float>{3.140625f});
}

TEST_CASE("every half has its value", "[safetensors]") {
  bool right = true;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto const exponent = static_cast<int>(bits >> 10 & 31);
    auto const fraction = static_cast<float>(bits & 1023);
    auto const sign = bits & 0x8000 ? -1.0f : 1.0f;
    auto const value = half_to_float(static_cast<std::uint16_t>(bits));
    if (exponent == 31) {
      right = right && (fraction == 0 ? value == sign * HUGE_VALF : std::isnan(value));
    } else {
      auto const expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      right = right && value == sign * expected && std::signbit(value) == (sign < 0);
    }
  }
  CHECK(right);
}

TEST_CASE("bad headers are refused", "[safetensors]") {
  CHECK(refusal(std::vector<std::byte>(7)) == "F: has 7 bytes, too few for a safetensors file");
  CHECK(contains(refusal(file("{}", 0, 3)), "header's length 3 exceeds the file's 10 bytes"));
  CHECK(contains(refusal(file("{}", 0, ~std::uint64_t{0})), "exceeds the file's 10 bytes"));
  CHECK(contains(refusal("", 0), "not JSON"));
  CHECK(contains(refusal("{\"a\":", 0), "not JSON"));
  CHECK(contains(refusal("{} x", 0), "not JSON"));
  CHECK(contains(refusal("{\"\xFF\":1}", 0), "not JSON"));
  CHECK(contains(refusal("[1]", 0), "the header is not an object but [1]"));
  CHECK(contains(refusal(std::string(100000, '['), 0), "nested too deeply"));
  CHECK(contains(refusal(R"({"__metadata__":7})", 0), "__metadata__ is not an object but 7"));
  CHECK(contains(refusal(R"({"__metadata__":{"k":7}})", 0), "__metadata__: 'k' is not a string but 7"));
  CHECK(contains(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "the header names \"k\" twice"));
  CHECK(refusal("{}", 0).empty());
}

TEST_CASE("names that come twice are refused", "[safetensors]") {
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                         2),
                 "the header names \"a\" twice"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
                 "the header names \"dtype\" twice"));
}

TEST_CASE("bad tensors are refused", "[safetensors]") {
  auto const tensor = [](std::string const& dtype, std::string const& shape, std::string const& offsets) {
    return refusal(R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 8);
  };
  auto const* const f32 = "\"F32\"";
  CHECK(tensor(f32, "[2]", "[0,8]").empty());
  CHECK(contains(refusal(R"({"a":5})", 0), "tensor 'a' is not an object but 5"));
  CHECK(contains(refusal(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1), "tensor 'a' has no dtype"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1), "tensor 'a' has no shape"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[1]}})", 1), "tensor 'a' has no data_offsets"));
  CHECK(contains(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1), "unknown field 'x'"));
  CHECK(contains(tensor("\"F33\"", "[2]", "[0,8]"), "tensor 'a' has an unknown dtype \"F33\""));
  CHECK(contains(tensor("4", "[2]", "[0,8]"), "unknown dtype 4"));
  CHECK(contains(tensor(f32, "2", "[0,8]"), "a shape that is no array: 2"));
  CHECK(contains(tensor(f32, "[-2]", "[0,8]"), "impossible shape [-2]"));
  CHECK(contains(tensor(f32, "[2.0]", "[0,8]"), "impossible shape [2.0]"));
  CHECK(contains(tensor(f32, "[\"2\"]", "[0,8]"), "impossible shape"));
  CHECK(contains(tensor(f32, "[9223372036854775808]", "[0,8]"), "impossible shape"));
  CHECK(contains(tensor(f32, "[4294967296,4294967296]", "[0,8]"), "overflows: [4294967296,4294967296]"));
  CHECK(contains(tensor(f32, "[4611686018427387904]", "[0,8]"), "overflows"));
  CHECK(contains(tensor(f32, "[2]", "[0]"), "data_offsets that are not two numbers: [0]"));
  CHECK(contains(tensor(f32, "[2]", "[-8,0]"), "not two numbers"));
  CHECK(contains(tensor(f32, "[2]", "8"), "not two numbers"));
  CHECK(contains(tensor(f32, "[2]", "[8,0]"), "outside the 8 bytes"));
  CHECK(contains(tensor(f32, "[2]", "[0,9]"), "outside the 8 bytes"));
  CHECK(contains(tensor(f32, "[2]", "[18446744073709551608,18446744073709551615]"), "outside the 8 bytes"));
  CHECK(contains(tensor(f32, "[3]", "[0,8]"), "has 8 bytes, but dtype and shape [3] need 12"));
  CHECK(contains(tensor(f32, "[1]", "[0,4]"), "the tensors end at 4, but there are 8 bytes of data"));
}

TEST_CASE("overlaps and gaps are refused", "[safetensors]") {
  auto const two = [](std::string const& first, std::string const& second, std::string const& length) {
    return refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first + R"(},"b":{"dtype":"U8","shape":[)" +
                       length + R"(],"data_offsets":)" + second + "}}",
                   8);
  };
  CHECK(two("[0,4]", "[4,8]", "4").empty());
  CHECK(two("[4,8]", "[0,4]", "4").empty());
  CHECK(contains(two("[0,4]", "[0,4]", "4"), "overlaps tensor 'a'"));
  CHECK(contains(two("[0,4]", "[3,8]", "5"), "tensor 'b' begins at 3, but the data before it end at 4"));
  CHECK(contains(two("[0,4]", "[5,8]", "3"), "tensor 'b' begins at 5, but the data before it end at 4"));
  CHECK(contains(two("[4,8]", "[0,0]", "0"), "tensor 'a' begins at 4, but the data before it end at 0"));
}

TEST_CASE("a damaged file never crashes the reader", "[safetensors]") {
  auto const good = file(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    auto bytes = good;
    for (auto n = random() % 4 + 1; n > 0; --n) bytes[random() % (bytes.size() - 8)] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    refusal(std::move(bytes));
  }
  SUCCEED();
}

TEST_CASE("files that cannot be read are named", "[safetensors]") {
  CHECK_THROWS_WITH(Safetensors(std::filesystem::path("does/not/exist")), "does/not/exist: cannot be opened");
  CHECK_THROWS_AS(Safetensors(std::filesystem::temp_directory_path()), std::runtime_error);
}
