// SPDX-License-Identifier: Apache-2.0
// Any text as JSON, beside another reader; and as texts and numbers of a trace, which that reader reads as they were.
#include <sluice/decode/detail/trace_json.hpp>
#include <sluice/grammar/detail/json_value.hpp>

#include <fuzz/compiled.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace {

using sluice::detail::JsonValue;

nlohmann::json same(JsonValue const& value) {
  using Kind = JsonValue::Kind;
  switch (value.kind) {
    case Kind::null: return nullptr;
    case Kind::boolean: return value.truth;
    case Kind::number: return nlohmann::json::parse(value.text);
    case Kind::string: return nlohmann::json::parse(sluice::detail::json_quoted(value.text));
    case Kind::array: break;
    case Kind::object: {
      auto out = nlohmann::json::object();
      for (auto const& [name, part] : value.members) out[name] = same(part);
      return out;
    }
  }
  auto out = nlohmann::json::array();
  for (auto const& item : value.items) out.push_back(same(item));
  return out;
}

void traced(std::string_view text) {
  sluice::detail::JsonLine line;
  float numbers[4]{};
  std::memcpy(numbers, text.data(), std::min(text.size(), sizeof numbers));
  line.open('[').string(text);
  for (auto const x : numbers) line.number(x), line.number(static_cast<double>(x) / 3);
  auto const written = line.close(']').finish();
  nlohmann::json read;
  try {
    read = nlohmann::json::parse(written);
  } catch (nlohmann::json::parse_error const&) {
    sluice::test::demand(false, "a line of a trace that is no JSON", written);
  }
  if (sluice::detail::is_utf8(text)) sluice::test::demand(read[0] == text, "another text in a trace", text);
  for (std::size_t i = 0; i < 4; ++i) {
    auto const one = read[2 * i + 1], third = read[2 * i + 2];
    auto const x = numbers[i];
    sluice::test::demand(std::isfinite(x) ? one.get<float>() == x && third.get<double>() == static_cast<double>(x) / 3
                                          : one.is_null(),
                         "another number in a trace", written);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice;
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  traced(text);
  // The other reader passes over a mark of byte order, and takes a zero byte for the end.
  if (text.starts_with("\xEF\xBB\xBF") || text.find('\0') != text.npos) return 0;
  nlohmann::json theirs;
  auto range = false;  // a number that the other one cannot hold, behind which it reads no more
  auto const good = [&] {
    try {
      theirs = nlohmann::json::parse(text);
      return true;
    } catch (nlohmann::json::out_of_range const&) {
      return range = true;
    } catch (nlohmann::json::parse_error const&) {
      return false;
    }
  }();
  try {
    auto const value = detail::JsonReader::parse("value", text, test::fuzz_limits());
    test::demand(good, "is no JSON", text);
    if (!range) test::demand(same(value) == theirs, "says something else", text);
    test::demand(json_equal(value, value), "is not itself", text);
    detail::JsonDecimal decimal;
    if (value.is(JsonValue::Kind::number) && detail::JsonDecimal::parse(value.text, decimal) && !range)
      test::demand(decimal.negative == (theirs.get<double>() < 0) || theirs.get<double>() == 0, "another sign", text);
  } catch (std::invalid_argument const& e) {
    std::string_view const why = e.what();
    auto const own = why.find("comes twice") != why.npos || why.find("limits.") != why.npos ||
                     why.find("a number whose exponent") != why.npos;
    test::demand(!good || own || range, why.data(), text);
  }
  return 0;
}
