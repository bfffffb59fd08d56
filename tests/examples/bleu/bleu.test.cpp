// SPDX-License-Identifier: Apache-2.0
#include <bleu/bleu.hpp>
#include <support/catch.hpp>
#include <text/lines.hpp>

#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice::test;

namespace {

std::string tokens(std::string_view line) {
  std::string joined;
  for (auto const& word : bleu::tokenize_13a(line)) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

// Values below are worked out by hand; only the last sum is left to the machine.
constexpr double tolerance = 1e-9;

}  // namespace

TEST_CASE("tokenize_13a takes punctuation off words", "[bleu]") {
  CHECK(tokens("Hello, world!") == "Hello , world !");
  CHECK(tokens("(see [1]; or: \"this\")?") == "( see [ 1 ] ; or : \" this \" ) ?");
  CHECK(tokens("a/b 50% #1 $5 x+y=z me@home {~|^_`\\}") == "a / b 50 % # 1 $ 5 x + y = z me @ home { ~ | ^ _ ` \\ }");
}

TEST_CASE("tokenize_13a leaves apostrophes and the hyphens of words", "[bleu]") {
  CHECK(tokens("I don't well-known.") == "I don't well-known .");
}

TEST_CASE("tokenize_13a keeps the full stops and commas inside numbers", "[bleu]") {
  CHECK(tokens("1,234.56") == "1,234.56");
  CHECK(tokens("3.14, 2.") == "3.14 , 2 .");
  CHECK(tokens(".5 a.5 5.a") == ". 5 a . 5 5 . a");
  CHECK(tokens("e.g. U.S. ...") == "e . g . U . S . . . .");
}

TEST_CASE("tokenize_13a takes a hyphen off the digit before it", "[bleu]") {
  CHECK(tokens("1990-2000 9-to-5 -7 A-1") == "1990 - 2000 9 - to-5 -7 A-1");
}

TEST_CASE("tokenize_13a undoes entities and joins hyphenated line ends", "[bleu]") {
  CHECK(tokens("&quot;R&amp;D&quot; &lt;b&gt;") == "\" R & D \" < b >");
  CHECK(tokens("&amp;lt;") == "<");  // in this order, as mteval does
  CHECK(tokens("hyphen-\nated line\nend <skipped>") == "hyphenated line end");
}

TEST_CASE("tokenize_13a splits at any white space and at nothing else beyond ASCII", "[bleu]") {
  CHECK(tokens(" \t a  b\r") == "a b");
  CHECK(tokens("a\u00A0b\u202Fc\u3000d\u2009e\u0085f") == "a b c d e f");
  CHECK(tokens("\u201Etsch\u00FC\u00DF\u201C, \u2026\u20AC5") == "\u201Etsch\u00FC\u00DF\u201C , \u2026\u20AC5");
  CHECK(tokens("").empty());
  CHECK(tokens(" \t ").empty());
}

TEST_CASE("BLEU of a perfect translation is 100", "[bleu]") {
  auto const score = bleu::score(bleu::count("We saw four ducks there.", "We saw four ducks there."));
  CHECK_THAT(score.bleu, WithinAbs(100, tolerance));
  CHECK(score.brevity_penalty == 1);
  CHECK(score.ratio == 1);
}

TEST_CASE("n-grams count no more often than in the reference", "[bleu]") {
  auto const counts = bleu::count("the the the the the the the", "The cat sat, the dog and the bird");
  CHECK(counts.correct == std::array<std::int64_t, 4>{2, 0, 0, 0});
  CHECK(counts.total == std::array<std::int64_t, 4>{7, 6, 5, 4});
  CHECK(counts.hypothesis_length == 7);
  CHECK(counts.reference_length == 9);
}

TEST_CASE("the brevity penalty is exp(1 - r/h) where the hypothesis is short", "[bleu]") {
  auto const score = bleu::score(bleu::count("the cat sat on", "the cat sat on the mat"));
  CHECK_THAT(score.brevity_penalty, WithinAbs(std::exp(-0.5), tolerance));
  CHECK_THAT(score.bleu, WithinAbs(100 * std::exp(-0.5), tolerance));
  CHECK_THAT(bleu::score(bleu::count("the cat sat on the mat", "the cat sat on")).brevity_penalty, WithinAbs(1, 0));
}

TEST_CASE("orders without a match are smoothed by 1/2, 1/4, 1/8", "[bleu]") {
  SECTION("one order") {
    // 3/4, 1/3 (this is), 0/2, 0/1 become 3/4, 1/3, 1/4, 1/4.
    auto const score = bleu::score(bleu::count("this is some test", "this is a test"));
    CHECK_THAT(score.precisions[2], WithinAbs(25, tolerance));
    CHECK_THAT(score.precisions[3], WithinAbs(25, tolerance));
    CHECK_THAT(score.bleu, WithinAbs(100 * std::pow(1.0 / 64, 0.25), tolerance));
  }
  SECTION("three orders") {
    // 2/7, then 1/2 of 6, 1/4 of 5, 1/8 of 4; the hypothesis is the longer one.
    auto const score = bleu::score(bleu::count("the the the the the the the", "the cat is on the mat"));
    CHECK_THAT(score.bleu, WithinAbs(100 * std::pow(2.0 / 7 / 12 / 20 / 32, 0.25), tolerance));
  }
  SECTION("no order matches at all: 0") { CHECK(bleu::score(bleu::count("another test", "ref")).bleu == 0); }
}

TEST_CASE("corpus BLEU pools the counts of its sentences", "[bleu]") {
  // 5/6, 3/5, 1/4, 0/3 and 3/3, 2/2, 1/1, 0/0; 6 + 3 words against 6 + 4.
  std::vector<bleu::Counts> const sentences{bleu::count("the cat sat on the mat", "the cat is on the mat"),
                                            bleu::count("a dog ran", "a dog ran home")};
  auto const counts = bleu::sum(sentences);
  CHECK(counts.correct == std::array<std::int64_t, 4>{8, 5, 2, 0});
  CHECK(counts.total == std::array<std::int64_t, 4>{9, 7, 5, 3});
  auto const score = bleu::score(counts);
  CHECK_THAT(score.ratio, WithinAbs(0.9, tolerance));
  CHECK_THAT(score.bleu, WithinAbs(100 * std::exp(1 - 10.0 / 9) * std::pow(80.0 / 1890, 0.25), tolerance));
}

TEST_CASE("an empty hypothesis scores 0 and costs length", "[bleu]") {
  auto const empty = bleu::count("", "the cat sat on the mat");
  auto const score = bleu::score(empty);
  CHECK(score.bleu == 0);
  CHECK(score.brevity_penalty == 0);
  CHECK(score.ratio == 0);
  std::vector<bleu::Counts> const both{empty, bleu::count("four words are here", "four words are here")};
  CHECK_THAT(bleu::score(bleu::sum(both)).bleu, WithinAbs(100 * std::exp(1 - 10.0 / 4), tolerance));
  CHECK(bleu::score(bleu::count("", "")).bleu == 0);
}

TEST_CASE("a sentence is scored by the orders that it has", "[bleu]") {
  auto const counts = bleu::count("Thank you", "Thank you");
  CHECK(bleu::score(counts).bleu == 0);
  CHECK_THAT(bleu::score(counts, bleu::Orders::effective).bleu, WithinAbs(100, tolerance));
  // 1/2 and, smoothed, 1/2.
  CHECK_THAT(bleu::sentence_bleu(bleu::Ngrams("Thank him"), bleu::Ngrams("Thank you")), WithinAbs(50, tolerance));
}

TEST_CASE("the interval leaves out one in forty at each end", "[bleu]") {
  std::vector<double> values;
  for (int i = 999; i >= 0; --i) values.push_back(i);
  CHECK(bleu::interval_95(values).low == 25);
  CHECK(bleu::interval_95(values).high == 974);
  CHECK(bleu::interval_95({7}).low == 7);
}

TEST_CASE("resamples draw evenly and depend on seed and number alone", "[bleu]") {
  CHECK(bleu::resample(50, 1, 3) == bleu::resample(50, 1, 3));
  CHECK(bleu::resample(50, 1, 3) != bleu::resample(50, 2, 3));
  CHECK(bleu::resample(50, 1, 3) != bleu::resample(50, 1, 4));
  std::vector<int> drawn(10);
  for (std::uint64_t r = 0; r < 10000; ++r)
    for (auto const i : bleu::resample(10, 5, r)) ++drawn.at(i);
  // 10,000 each on average; the standard deviation is 95.
  for (auto const n : drawn) CHECK(std::abs(n - 10000) < 475);
}

TEST_CASE("the bootstrap surrounds the score", "[bleu]") {
  std::vector<bleu::Counts> sentences;
  for (int i = 0; i < 50; ++i)
    sentences.push_back(
        bleu::count(i % 2 == 0 ? "the cat sat on the mat" : "the cat is on the mat", "the cat is on the mat"));
  auto const interval = bleu::interval_95(bleu::bootstrap(sentences, 1000, 1));
  auto const score = bleu::score(bleu::sum(sentences)).bleu;
  CHECK(interval.low < score);
  CHECK(interval.high > score);
  CHECK(interval.high - interval.low < 30);
  CHECK(bleu::bootstrap(sentences, 3, 1) == bleu::bootstrap(sentences, 3, 1));
}

TEST_CASE("the paired bootstrap tells systems apart", "[bleu]") {
  std::vector<bleu::Counts> good, bad;
  for (int i = 0; i < 40; ++i) {
    good.push_back(bleu::count("the cat is on the mat", "the cat is on the mat"));
    bad.push_back(bleu::count(i % 2 == 0 ? "the cat sat on the mat" : "a cat is on the mat", "the cat is on the mat"));
  }
  auto const same = bleu::compare(good, good, 200, 1);
  CHECK(same.difference == 0);
  CHECK(same.p == 1);
  auto const better = bleu::compare(good, bad, 200, 1);
  CHECK(better.difference > 0);
  CHECK(better.interval.low > 0);
  CHECK(better.p < 0.05);
  CHECK(bleu::compare(bad, good, 200, 1).interval.high < 0);
}

TEST_CASE("valid_utf8 refuses what Unicode does", "[text]") {
  for (auto const* good : {"", "plain", "\u00E4\u00F6\u00FC\u00DF \u20AC \U0001F600", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xF4\x8F\xBF\xBF", "\xF0\x90\x80\x80", "\xE0\xA0\x80"})
    CHECK(text::valid_utf8(good));
  for (auto const* bad : {"\x80", "\xE4 ", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3("})
    CHECK_FALSE(text::valid_utf8(bad));
}

TEST_CASE("lines lose byte order mark and carriage return", "[text]") {
  std::istringstream stream("\xEF\xBB\xBFone\r\n\r\nthree");
  CHECK(text::read_lines(stream, "stream") == std::vector<std::string>{"one", "", "three"});
  std::istringstream broken("fine\n\xFFno\n");
  CHECK_THROWS_WITH(text::read_lines(broken, "stream"), Equals("stream:2: not valid UTF-8"));
}
