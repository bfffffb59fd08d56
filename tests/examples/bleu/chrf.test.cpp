// SPDX-License-Identifier: Apache-2.0
#include <bleu/chrf.hpp>
#include <support/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace sluice::test;
using chrf::sentence_chrf;

TEST_CASE("chrF of short lines, by hand", "[chrf]") {
  CHECK_THAT(sentence_chrf("abc", "abd"), WithinAbs(100.0 * (2.0 / 3 + 1.0 / 2 + 0) / 3, 1e-12));  // precision = recall
  // n = 1: 2 of 4 and 2 of 2; n = 2: 1 of 3 and 1 of 1; the reference has no trigram
  double const precision = (2.0 / 4 + 1.0 / 3) / 2, recall = 1;
  CHECK_THAT(sentence_chrf("aaaa", "aa"), WithinAbs(100 * 5 * precision * recall / (4 * precision + recall), 1e-12));
  // only the orders that both have: 2 of 2, 2 of 8; 1 of 1, 1 of 7
  double const part = (2.0 / 8 + 1.0 / 7) / 2;
  CHECK_THAT(sentence_chrf("ab", "abcdefgh"), WithinAbs(100 * 5 * part / (4 + part), 1e-12));
  CHECK(sentence_chrf("xyz", "abc") == 0);
}

TEST_CASE("chrF of empty lines is 0", "[chrf]") {
  CHECK(sentence_chrf("", "") == 0);
  CHECK(sentence_chrf("", "a") == 0);
  CHECK(sentence_chrf("a", "") == 0);
  CHECK(sentence_chrf(" \t", "a b") == 0);
}

TEST_CASE("chrF does not see white space, of any alphabet", "[chrf]") {
  for (std::string_view const line : {"a b c", "abc ", "\ta\nbc",
                                      "a\xE3\x80\x80"
                                      "bc",
                                      "ab\xC2\xA0"
                                      "c"})
    CHECK_THAT(sentence_chrf(line, "abc"), WithinAbs(100, 1e-12));
}

TEST_CASE("chrF counts characters, not bytes", "[chrf]") {
  // two and three characters of three bytes each: 2 of 2, 2 of 3; 1 of 1, 1 of 2
  double const recall = (2.0 / 3 + 1.0 / 2) / 2;
  CHECK_THAT(sentence_chrf("\u65E5\u672C", "\u65E5\u672C\u8A9E"), WithinAbs(100 * 5 * recall / (4 + recall), 1e-12));
}

TEST_CASE("chrF equals sacreBLEU's", "[chrf]") {
  CHECK_THAT(sentence_chrf("The relationship between Obama and Netanyahu is not exactly friendly.",
                           "The ties between Obama and Netanyahu are not particularly friendly."),
             WithinAbs(61.576379378113785, 1e-10));
  chrf::Counts corpus;
  corpus += chrf::count(chrf::Ngrams("The relationship between cats and dogs is not exactly friendly."),
                        chrf::Ngrams("The relationship between dogs and cats is not exactly friendly."));
  corpus += chrf::count(chrf::Ngrams("a good bookshop is just a genteel black hole that knows how to read."),
                        chrf::Ngrams("A good bookshop is just a genteel Black Hole that knows how to read."));
  CHECK_THAT(chrf::score(corpus), WithinAbs(84.64214891738334, 1e-10));
}
