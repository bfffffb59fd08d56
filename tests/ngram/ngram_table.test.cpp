// SPDX-License-Identifier: Apache-2.0
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/naive_ngrams.hpp>
#include <support/times.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

NGramTable table_of(std::string const& arpa, ArpaOptions const& options = {}) {
  std::istringstream stream(arpa);
  return read_arpa(stream, options);
}

std::string const small = R"(made by hand

\data\
ngram 1=6
ngram 2=4
ngram 3=2

\1-grams:
-1.2	<unk>	-0.1
-99	<s>	-0.3
-0.9	</s>
-0.5	a	-0.25
-0.7	b	-0.125
-1.1	c

\2-grams:
-0.2	<s> a	-0.4
-0.3	a b
-0.6	b </s>
-0.8	b c	-0.2

\3-grams:
-0.05	<s> a b
-0.15	a c </s>

\end\
)";

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  auto const at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string problem(std::string const& arpa) {
  return thrown([&] { table_of(arpa); });
}

using Bytes = std::vector<std::byte>;
Bytes bytes_of(NGramTable const& table) { return {table.bytes().begin(), table.bytes().end()}; }
std::string problem(Bytes const& bytes) {
  return thrown([&] { NGramTable::from_bytes(bytes); });
}

double base_10(double natural) { return natural / std::numbers::ln10; }

/// Compares every word after random sentences, and whole lines with single words bit for bit.
void compare(NGramTable const& table, NaiveNGrams const& naive, std::mt19937_64& random, double tolerance) {
  for (int round = 0; round < 6; ++round) {
    NGramState state;
    Words context;
    if (random() % 3 != 0) state = table.start(), context.push_back("<s>");
    for (auto n = random() % 9; n > 0; --n) {
      auto const word =
          static_cast<Word>(random() % (static_cast<std::size_t>(table.size()) + 1));  // or one that it has not
      auto const spelling = word < table.size() ? std::string(table.spelling(word)) : "none of them";
      auto const before = state;
      CHECK_THAT(base_10(static_cast<double>(table.advance(state, word))),
                 WithinAbs(naive.log_prob(context, spelling), tolerance));
      context.push_back(spelling);
      auto again = before;
      table.advance(again, table.word(spelling));
      CHECK(again == state);
    }
    std::vector<float> line(static_cast<std::size_t>(table.size()));
    table.line(
        state,
        [&](float back_off) {
          for (Word w = 0; w < table.size(); ++w) line[static_cast<std::size_t>(w)] = table.unigram(w) + back_off;
        },
        [&](Word word, float value) { line[static_cast<std::size_t>(word)] = value; });
    for (Word w = 0; w < table.size(); ++w) {
      auto copy = state;
      CHECK(table.advance(copy, w) == line[static_cast<std::size_t>(w)]);
    }
  }
}

}  // namespace

TEST_CASE("the n-grams of a small file score as by hand", "[ngram]") {
  auto const table = table_of(small);
  CHECK(table.order() == 3);
  CHECK(table.size() == 6);
  CHECK(table.count(1) == 6);
  CHECK(table.count(2) == 5);  // "a c" is implied
  CHECK(table.count(3) == 2);
  CHECK(table.spelling(table.begin()) == "<s>");
  CHECK(table.find("c") == Word{5});
  CHECK_FALSE(table.find("d"));
  auto const score = [&](std::vector<std::string> const& words) {
    std::vector<Word> numbers;
    for (auto const& word : words) numbers.push_back(table.word(word));
    return base_10(table.log_prob(numbers));
  };
  CHECK_THAT(score({"a", "b"}), WithinAbs(-0.2 - 0.05 - 0.6, 1e-6));
  CHECK_THAT(score({"a", "c"}), WithinAbs(-0.2 + (-0.4 - 0.25 - 1.1) - 0.15, 1e-6));
  CHECK_THAT(score({"d"}), WithinAbs((-0.3 - 1.2) + (-0.1 - 0.9), 1e-6));
  CHECK_THAT(score({}), WithinAbs(-0.3 - 0.9, 1e-6));
  CHECK(table.start() != NGramState());
}

TEST_CASE("tables agree with n-grams in maps, also with beginnings and ends that are not there", "[ngram]") {
  std::mt19937_64 random(3);
  for (std::size_t round = 0; round < times(60u); ++round) {
    INFO("round " << round);
    auto const order = 1 + random() % 5, words = 1 + random() % 12;
    auto const naive = random_ngrams(random, order, words, random() % 60);
    auto const table = table_of(naive.arpa());
    REQUIRE(table.order() == static_cast<std::int32_t>(order));
    compare(table, naive, random, 2e-6);
    compare(NGramTable::from_bytes(table.bytes()), naive, random, 2e-6);
    compare(quantise(table), naive, random, 2e-6);  // few values: all have codes of their own
    std::ostringstream written;
    write_arpa(table, written);
    compare(table_of(written.str()), naive, random, 2e-5);
  }
}

TEST_CASE("quantised tables are near the others, and smaller", "[ngram]") {
  std::mt19937_64 random(4);
  auto const naive = random_ngrams(random, 3, 200, 4000);
  auto const table = table_of(naive.arpa()), coded = quantise(table);
  CHECK(coded.quantised());
  CHECK_FALSE(table.quantised());
  CHECK(coded.bytes().size() < table.bytes().size() * 4 / 5);
  CHECK(bytes_of(quantise(coded)) == bytes_of(coded));
  compare(coded, naive, random, 0.1);
}

TEST_CASE("more than 65536 words have wider numbers", "[ngram]") {
  std::string arpa = "\\data\\\nngram 1=70003\nngram 2=2\n\n\\1-grams:\n-1 <unk>\n-1 <s> -0.5\n-2 </s>\n";
  for (int i = 0; i < 70000; ++i) arpa += "-3 w" + std::to_string(i) + " -0.25\n";
  arpa += "\n\\2-grams:\n-0.5 w1 w69999\n-0.75 w69999 w3\n\n\\end\\\n";
  for (auto const& table : {table_of(arpa), quantise(table_of(arpa))}) {
    NGramState state;
    table.advance(state, table.word("w1"));
    CHECK_THAT(base_10(static_cast<double>(table.advance(state, table.word("w69999")))), WithinAbs(-0.5, 1e-6));
    CHECK_THAT(base_10(static_cast<double>(table.advance(state, table.word("w3")))), WithinAbs(-0.75, 1e-6));
    CHECK_THAT(base_10(static_cast<double>(table.advance(state, table.word("w3")))), WithinAbs(-3.25, 1e-6));
  }
}

TEST_CASE("what is wrong with an ARPA file is named, with its line", "[ngram]") {
  auto const with = [&](std::string const& from, std::string const& to) { return problem(replaced(small, from, to)); };
  CHECK(problem(std::string()) == "arpa: line 0: the file ends before \\data\\: it is cut off");
  CHECK(with("\\data\\", "\\dato\\").find("the file ends before \\data\\") != std::string::npos);
  CHECK(with("ngram 2=4", "ngram 2=5") == "arpa: line 21: \\2-grams: has 4 n-grams, 5 were announced");
  CHECK(with("ngram 2=4", "ngram 2=3") == "arpa: line 20: \\2-grams: has more than the 3 n-grams that were announced");
  CHECK(with("ngram 2=4", "ngram 2=many") == "arpa: line 5: 'ngram 2=many' is not 'ngram N=COUNT'");
  CHECK(with("ngram 2=4", "ngram 3=4") == "arpa: line 5: counts n-grams of 3 words where those of 2 were to be");
  CHECK(with("ngram 2=4\nngram 3=2\n", "") == "arpa: line 7: the longest n-grams have no back-off weight");
  CHECK(with("ngram 3=2", "ngram 3=2\nngram 4=1") == "arpa: line 27: '\\end\\' where \\4-grams: was to be");
  CHECK(with("\\end\\\n", "") == "arpa: line 25: the file ends before \\end\\: it is cut off");
  CHECK(with("-1.2	<unk>	-0.1\n", "-1.2	d\n").find("arpa: \\1-grams: has no <unk>") == 0);
  CHECK(with("-0.9	</s>", "-0.9	d") == "arpa: line 8: \\1-grams: lacks </s>");
  CHECK(with("b c	-0.2", "b d	-0.2") == "arpa: line 20: the word 'd' is not among the 1-grams");
  CHECK(with("c\n\n", "b\n\n") == "arpa: line 14: the word 'b' is there already");
  CHECK(with("b c	-0.2", "a b	-0.2") == "arpa: line 20: this n-gram is there already, in line 18");
  CHECK(with("-0.6	b </s>", "0.6	b </s>") == "arpa: line 19: '0.6' is no logarithm of a probability");
  CHECK(with("-0.6	b </s>", "nan	b </s>") == "arpa: line 19: 'nan' is no logarithm of a probability");
  CHECK(with("-0.6	b </s>", "-0.6	b") ==
        "arpa: line 19: 2 fields, where a probability, 2 words and perhaps a back-off weight were to be");
  CHECK(with("b c	-0.2", "b c	x") == "arpa: line 20: 'x' is no back-off weight");
  CHECK(with("<s> a b", "<s> a b	-1") == "arpa: line 23: the longest n-grams have no back-off weight");
  for (std::size_t size = 0; size + 5 < small.size(); size += 3) {  // cut anywhere
    INFO("cut after " << size);
    CHECK(problem(small.substr(0, size)).find("arpa: ") == 0);
  }
}

TEST_CASE("a file may lack <unk> if its probability is given, and may have other line ends", "[ngram]") {
  auto const without = replaced(replaced(small, "-1.2	<unk>	-0.1\n", ""), "ngram 1=6", "ngram 1=5");
  auto const table = table_of(without, {.unknown = -7});
  NGramState state;
  CHECK_THAT(base_10(static_cast<double>(table.advance(state, table.word("d")))), WithinAbs(-7, 1e-5));
  CHECK(thrown([&] { table_of(without, {.unknown = 1}); }) == "sluice: unknown = 1.000000: must be a number <= 0");
  std::string other;
  for (auto const c : replaced(small, "<unk>", "<UNK>")) other += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(bytes_of(table_of(other)) == bytes_of(table_of(small)));
}

TEST_CASE("a file may be written as other toolkits do", "[ngram]") {
  // irstlm-team/irstlm#17: a tab before the count, <unk> after a blank, no empty line before a section; no back-off weights
  auto const irstlm = table_of(
      "\\data\\\nngram 1=\t4\nngram 2=\t2\n\\1-grams:\n-1.0\t<s>\t-0.3\n-0.7\t</s>\n-0.5\ta\t-0.2\n-1.2 <unk>\n"
      "\\2-grams:\n-0.1\t<s> a\n-0.2\ta </s>\n\\end\\\n");
  std::vector<Word> const words{irstlm.word("a")};
  CHECK_THAT(base_10(irstlm.log_prob(words)), WithinAbs(-0.3, 1e-6));
  auto const same = [](std::string const& text) { return bytes_of(table_of(text)) == bytes_of(table_of(small)); };
  auto const with = [&](std::string const& from, std::string const& to) { return same(replaced(small, from, to)); };
  CHECK(with("ngram 2=4", "ngram\t2 =        4"));  // kaldi-asr/kaldi#643
  CHECK(with("made by hand\n\n", "\xEF\xBB\xBF"));
  CHECK(with("ngram 2=4\n", "\n\r\nngram 2=4\n \t\n"));
  CHECK(with("-0.3	a b\n", "\n  -0.3\ta   b  \n\n\n"));
  CHECK(with("-0.3	a b\n", "-0.3 a b 0\n"));
  CHECK(with("\n\n\\3-grams", "\n\\3-grams"));
  CHECK(with("-0.6	b", "-6e-1	b"));
  CHECK(with("\\end\\\n", "\\end\\"));
  auto const empty =
      table_of(replaced(replaced(small, "ngram 3=2", "ngram 3=0"), "-0.05	<s> a b\n-0.15	a c </s>\n", ""));
  CHECK(empty.order() == 3);
  CHECK(empty.count(3) == 0);
}

TEST_CASE("what ARPA cannot say is refused when it is read, with its line", "[ngram]") {
  auto const with = [&](std::string const& from, std::string const& to) { return problem(replaced(small, from, to)); };
  CHECK(with("-0.6	b </s>", "-1e37	b </s>") ==
        "arpa: line 19: '-1e37' is no logarithm of a probability: below -1e36");
  CHECK(with("-0.6	b </s>", "-1e999	b </s>") == "arpa: line 19: '-1e999' is no logarithm of a probability");
  CHECK(with("-0.6	b </s>", "-inf	b </s>") == "arpa: line 19: '-inf' is no logarithm of a probability");
  CHECK(with("b c	-0.2", "b c	1e38") ==
        "arpa: line 20: '1e38' is no back-off weight: must be from -1e36 to 1e36");
  CHECK(with("b c	-0.2", "b c	1e999") == "arpa: line 20: '1e999' is no back-off weight");
  CHECK(problem(replaced(replaced(small, "-0.6	b </s>", "-1e-999	b </s>"), "b c	-0.2", "b c	-1e36")) == "");
  CHECK(with("-0.6	b </s>\n-0.8	b c	-0.2", "\n-0.6	b </s>\n\n\n-0.6	b </s>") ==
        "arpa: line 23: this n-gram is there already, in line 20");
  CHECK(with("made by hand", "iARPA").find("arpa: line 1: the file is of IRSTLM's intermediate format") == 0);
  CHECK(problem("\x1F\x8B\x08").find("arpa: line 1: the file is compressed by gzip") == 0);
  CHECK(thrown([&] { table_of(small, {.unknown = -1e37}); }).find("sluice: unknown = ") == 0);
}

TEST_CASE("what is written as ARPA is read as the same table, or refused before", "[ngram]") {
  auto const again = [](NGramTable const& table) {
    std::stringstream text;
    write_arpa(table, text);
    return bytes_of(read_arpa(text)) == bytes_of(table);
  };
  auto const refusal = [](NGramTable const& table) {
    std::ostringstream text;
    auto const problem = thrown([&] { write_arpa(table, text); });
    CHECK(text.str().empty());
    return problem;
  };
  CHECK(again(table_of(small)));
  std::mt19937_64 random(8);
  for (std::size_t round = 0; round < times(60u); ++round)
    CHECK(again(table_of(random_ngrams(random, 1 + random() % 5, 1 + random() % 12, random() % 60).arpa())));
  // What longer n-grams imply may have a probability above 1, here 10^0.3 for "a b", and 10^0.8 for "a b c".
  auto const above =
      table_of("\\data\\\nngram 1=6\nngram 2=2\nngram 3=0\nngram 4=1\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 <unk>\n-0.3 a "
               "0.5\n-0.2 b 1\n"
               "-0.2 c\n\n\\2-grams:\n-0.5 <s> a\n-0.1 c a\n\n\\3-grams:\n\n\\4-grams:\n-0.2 a b c a\n\n\\end\\\n");
  CHECK(above.count(2) == 3);
  CHECK(above.count(3) == 1);
  CHECK(again(above));
  std::ostringstream coded;
  write_arpa(quantise(above), coded);  // few values: codes of their own
  CHECK(coded.str().find("a b\t") == std::string::npos);
  auto const trained = [](std::string const& word) {
    NGramTrainer trainer({.order = 2, .fallback = true});
    trainer.add(std::vector<std::string_view>{word, "b", word, "b", "b"});
    return trainer.build();
  };
  CHECK(again(trained("new-york")));
  for (std::string const word : {"new york", "", "tab\there", "line\n", "\r"})
    CHECK(refusal(trained(word)).find("sluice: write_arpa: word = " + word + ": ") == 0);
  CHECK(refusal(trained(std::string("a\0b", 3))) ==
        "sluice: write_arpa: word = a?b: has white space or a zero byte in it, which would end it");
  CHECK(refusal(trained("<UNK>")) == "sluice: write_arpa: word = <UNK>: would be read as <unk>");
}

TEST_CASE("a table is read from a mapped file, and refused if that was cut or changed", "[ngram]") {
  std::mt19937_64 random(5);
  auto const naive = random_ngrams(random, 4, 5, 12);
  auto const path = (std::filesystem::temp_directory_path() / "sluice_ngram_table.bin").string();
  for (auto const& table : {table_of(naive.arpa()), quantise(table_of(naive.arpa()))}) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(table.bytes().data()), static_cast<std::streamsize>(table.bytes().size()));
    compare(NGramTable::open(path), naive, random, 2e-6);
    auto const whole = bytes_of(table);
    for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 13) {
      auto const message = problem(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      CHECK((size == 0 ? message == "n-grams: there is nothing to read"
                       : message == "n-grams: cut off after " + std::to_string(size) + " bytes"));
    }
    auto longer = whole;
    longer.resize(longer.size() + 64);
    CHECK(problem(longer) == "n-grams: something follows the end");
    for (std::size_t i = 0; i < whole.size(); ++i) {
      auto changed = whole;
      changed[i] ^= static_cast<std::byte>(1 + random() % 255);
      REQUIRE(problem(changed) != "");
    }
    std::filesystem::resize_file(path, whole.size() / 2);
    CHECK(thrown([&] { NGramTable::open(path); }) ==
          path + ": n-grams: cut off after " + std::to_string(whole.size() / 2) + " bytes");
    std::filesystem::remove(path);
    CHECK(thrown([&] { NGramTable::open(path); }).find(path + ": cannot be opened") == 0);
  }
  CHECK(problem(Bytes(64, std::byte{'x'})) == "n-grams: this is no table of n-grams");
}

TEST_CASE("a table made to harm is refused, or is one", "[ngram]") {
  std::mt19937_64 random(6);
  auto const naive = random_ngrams(random, 3, 4, 8);
  std::size_t refused = 0, taken = 0;
  for (auto const& table : {table_of(naive.arpa()), quantise(table_of(naive.arpa()))}) {
    auto const whole = bytes_of(table);
    for (std::size_t round = 0; round < times(4000u); ++round) {
      auto changed = whole;
      for (auto n = 1 + random() % 3; n > 0; --n) {
        auto const at = 8 + random() % (random() % 4 == 0 ? 120 : whole.size() - 8);
        if (random() % 2 == 0) changed[at] = static_cast<std::byte>(random());
        else
          detail::store_little(changed.data() + at / 4 * 4,
                               static_cast<std::uint32_t>(random() >> (32 + random() % 32)));
      }
      detail::seal_ngrams(changed);
      if (!problem(changed).empty()) {
        ++refused;
        continue;
      }
      ++taken;
      auto const made = NGramTable::from_bytes(changed);
      double sum = 0;
      auto state = made.start();
      for (int i = 0; i < 50; ++i) {
        sum += static_cast<double>(made.advance(state, static_cast<Word>(random() % 9)));
        made.line(
            state, [&](float x) { sum += static_cast<double>(x); },
            [&](Word word, float x) { sum += made.spelling(word).size() > 1000 ? 0 : static_cast<double>(x); });
      }
      CHECK_FALSE(std::isnan(sum));
    }
  }
  CAPTURE(refused, taken);
  CHECK(refused > 500);
  CHECK(taken > 500);
}
