// SPDX-License-Identifier: Apache-2.0
// That nothing in a trace can leave its place in the page. What the page does with it: tests/page.
#include <sluice/decode/detail/trace_json.hpp>
#include <sluice/decode/trace_page.hpp>

#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string page_of(std::string const& lines) {
  std::istringstream in(lines);
  std::ostringstream out;
  write_trace_page(in, out);
  return out.str();
}

/// What stands between the marks of the page.
std::string inside(std::string const& page) {
  constexpr std::string_view begin = "<script type=\"application/jsonl\" id=\"trace\">\n";
  auto const from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the lines of a page are those of the trace", "[trace]") {
  std::string const lines = "{\"sluice_trace\":1}\n{\"token\":3,\"text\":\"na\xC3\xAFve\"}\n";
  auto const page = page_of(lines);
  CHECK(inside(page) == lines);
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
}

TEST_CASE("what could end a part of the page is written in another way", "[trace]") {
  auto const plain = page_of("{}\n");
  auto const evil = page_of("{\"token\":3,\"text\":\"</script><!--<script>alert(1)\"}\n\xFF{\xED\xA0\x80}");
  CHECK(count(evil, "<") == count(plain, "<"));
  auto const text = inside(evil);
  CHECK(nlohmann::json::parse(text.substr(0, text.find('\n'))).at("text") == "</script><!--<script>alert(1)");
  CHECK(detail::is_utf8(evil));
  CHECK(text.ends_with("\n\xEF\xBF\xBD{\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD}\n"));
}

TEST_CASE("the page forbids itself the network and what is not its own", "[trace]") {
  auto const page = page_of("");
  CHECK(count(page, "default-src 'none'; script-src 'sha256-") == 1);
  CHECK(count(page, "http-equiv=\"Content-Security-Policy\"") == 1);
  CHECK(count(page, "unsafe") == 0);
  CHECK(count(page, "eval(") == 0);
  CHECK(count(page, " src=") == 0);
  CHECK(count(page, "@import") + count(page, "url(") == 0);
}

TEST_CASE("a page that cannot be written says so", "[trace]") {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  std::istringstream in("{}\n");
  CHECK_THROWS_AS(write_trace_page(in, out), std::runtime_error);
  std::ostringstream open;
  {
    TracePage const page(open);
    open << "{}\n";
  }
  CHECK(open.str() == page_of("{}\n"));  // the destructor ends it
}

TEST_CASE("numbers and texts of a line come back as they were", "[trace]") {
  std::mt19937_64 random(3);
  detail::JsonLine line;
  for (int i = 0; i < 2000; ++i) {
    auto const wide = std::bit_cast<double>(random());
    auto const narrow = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += static_cast<char>(random() % 256);
    line.open('[').number(wide).number(narrow).number(random()).string(text).boolean(true).open('{').close('}').close(
        ']');
    std::string const written(line.finish());
    CHECK(detail::is_utf8(written));
    CHECK(written.find('<') == written.npos);
    auto const read = nlohmann::json::parse(written);
    REQUIRE(read.size() == 6);
    if (std::isfinite(wide)) CHECK(read[0].get<double>() == wide);
    else CHECK(read[0].is_null());
    if (std::isfinite(narrow)) CHECK(read[1].get<float>() == narrow);
    else CHECK(read[1].is_null());
    if (detail::is_utf8(text)) CHECK(read[3].get<std::string>() == text);
  }
}

TEST_CASE("UTF-8 is told from what is none", "[trace]") {
  for (auto const* good : {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(detail::is_utf8(good));
  for (auto const* bad : {"\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    CHECK_FALSE(detail::is_utf8(bad));
}

TEST_CASE("the bytes of a character are those that its number is written with, and no others", "[trace]") {
  // What Unicode numbers are written as; all else is none.
  auto const written = [](std::uint32_t code) {
    auto const tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
    auto const head = [&](int shift, int mark) {
      return static_cast<char>(static_cast<std::uint32_t>(mark) | code >> shift);
    };
    if (code < 0x80) return std::string{head(0, 0)};
    if (code < 0x800) return std::string{head(6, 0xC0), tail(0)};
    if (code < 0x10000) return std::string{head(12, 0xE0), tail(6), tail(0)};
    return std::string{head(18, 0xF0), tail(12), tail(6), tail(0)};
  };
  auto const is_good = [&](std::string const& text) {
    std::uint32_t code = static_cast<unsigned char>(text[0]);
    if (text.size() > 1) code &= 0x7Fu >> text.size();
    for (std::size_t i = 1; i < text.size(); ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
    return code < 0x110000 && (code < 0xD800 || code > 0xDFFF) && text == written(code);
  };
  CHECK(detail::utf8_character("") == 0);
  // All that one to four of the bytes at the edges of the ranges make.
  std::string const edges(
      "\x00\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF", 24);
  std::size_t wrong = 0, good = 0;
  for (auto const a : edges)
    for (auto const b : edges)
      for (auto const c : edges)
        for (auto const d : edges) {
          std::string const text{a, b, c, d};
          std::size_t expected = 0;
          for (std::size_t n = 1; n <= 4 && expected == 0; ++n)
            if (is_good(text.substr(0, n))) expected = n;
          good += expected > 0 ? 1 : 0;
          for (std::size_t n = 1; n <= 4; ++n)  // cut off
            wrong += detail::utf8_character(std::string_view(text).substr(0, n)) != (n < expected ? 0 : expected);
        }
  CHECK(wrong == 0);
  CHECK(good > 30'000);
}

TEST_CASE("a line of any shape is read as what was written", "[trace]") {
  std::mt19937_64 random(5);
  detail::JsonLine line;
  // Writes a value of some depth, and says what it is.
  std::function<nlohmann::json(int)> const value = [&](int depth) -> nlohmann::json {
    auto const text = [&] {
      std::string bytes;
      for (auto n = random() % 4; n > 0; --n) bytes += static_cast<char>(random() % 128);
      return bytes;
    };
    switch (random() % (depth > 0 ? 7 : 4)) {
      case 0: {
        auto const x = static_cast<std::int64_t>(random());
        line.number(x);
        return x;
      }
      case 1: {
        auto const x = random() % 2 == 0;
        line.boolean(x);
        return x;
      }
      case 2: {
        auto const x = text();
        line.string(x);
        return x;
      }
      case 3: {
        std::vector<int> numbers(random() % 4, static_cast<int>(random() % 100));
        line.numbers(numbers);
        return numbers;
      }
      case 4:
      case 5: {
        auto all = nlohmann::json::array();
        line.open('[');
        for (auto n = random() % 4; n > 0; --n) all.push_back(value(depth - 1));
        line.close(']');
        return all;
      }
      default: {
        auto all = nlohmann::json::object();
        line.open('{');
        for (auto n = random() % 4; n > 0; --n) {
          auto const key = std::to_string(n) + text();
          line.key(key);
          all[key] = value(depth - 1);
        }
        line.close('}');
        return all;
      }
    }
  };
  for (int i = 0; i < 300; ++i) {
    auto const expected = value(4);
    std::string const written(line.finish());
    INFO(written);
    REQUIRE(written.ends_with('\n'));
    for (auto const c : written.substr(0, written.size() - 1))
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '<' || c == '>' || c == '&') CHECK(c == ' ');
    CHECK(nlohmann::json::parse(written) == expected);
  }
}
