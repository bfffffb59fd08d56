// SPDX-License-Identifier: Apache-2.0
// That nothing in a trace can leave its place in the page. What the page does with it: tests/page.
#include <sluice/decode/trace_json.hpp>
#include <sluice/decode/trace_page.hpp>

#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

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
