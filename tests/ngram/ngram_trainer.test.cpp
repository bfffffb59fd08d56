// SPDX-License-Identifier: Apache-2.0
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/naive_ngrams.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numbers>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Words cut(std::string const& sentence) {
  std::istringstream stream(sentence);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Chen and Goodman's interpolated modified Kneser-Ney as in their paper, by recursion over maps. Counts, discounts and vocabulary
/// as lmplz has them.
class Naive {
 public:
  Naive(std::vector<std::string> const& sentences, std::size_t order, std::set<std::string> const& more = {})
      : order_(order) {
    for (auto const& sentence : sentences) {
      Words words{"<s>"};
      for (auto const& word : cut(sentence)) words.push_back(word);
      words.push_back("</s>");
      vocabulary_.insert(words.begin() + 1, words.end());
      for (std::size_t i = 0; i < words.size(); ++i)
        for (std::size_t n = 1; n <= order && i + n <= words.size(); ++n) {
          auto const at = words.begin() + static_cast<std::ptrdiff_t>(i);
          Words const gram(at, at + static_cast<std::ptrdiff_t>(n));
          if (n == order || i == 0) ++raw_[gram];
          else left_[gram].insert(words[i - 1]);
        }
    }
    vocabulary_.insert("<unk>"), vocabulary_.insert(more.begin(), more.end());
    for (auto const& [gram, before] : left_) counts_[gram] = static_cast<double>(before.size());
    for (auto const& [gram, times] : raw_) counts_[gram] = gram == Words{"<s>"} ? 0 : static_cast<double>(times);
    for (auto const& [gram, count] : counts_) followers_[Words(gram.begin(), gram.end() - 1)].push_back(count);
    for (std::size_t n = 1; n <= order; ++n) {
      std::map<double, double> with;
      for (auto const& [gram, count] : counts_)
        if (gram.size() == n) ++with[count];
      auto const y = with[1] / (with[1] + 2 * with[2]);
      std::vector<double> d{0};
      bool good = true;
      for (int k = 1; k <= 3; ++k) {
        d.push_back(k - (k + 1) * y * with[k + 1] / with[k]);
        good = good && with[k] > 0 && d.back() >= 0 && d.back() <= k;
      }
      discounts_.push_back(good ? d : std::vector<double>{0, 0.5, 1, 1.5});
      fell_back = fell_back || !good;
    }
  }
  double probability(Words context, std::string const& word) const {
    if (context.size() >= order_)
      context.erase(context.begin(), context.end() - static_cast<std::ptrdiff_t>(order_ - 1));
    auto const lower = context.empty() ? 1.0 / static_cast<double>(vocabulary_.size())
                                       : probability(Words(context.begin() + 1, context.end()), word);
    auto const found = followers_.find(context);
    if (found == followers_.end()) return lower;
    auto const& d = discounts_[context.size()];
    auto const discount = [&](double count) { return d[static_cast<std::size_t>(std::min(count, 3.0))]; };
    double sum = 0, taken = 0;
    for (auto const count : found->second) sum += count, taken += discount(count);
    context.push_back(word);
    auto const own = counts_.find(context);
    auto const count = own == counts_.end() || word == "<s>" ? 0 : own->second;
    return (count - discount(count)) / sum + taken / sum * lower;
  }
  std::set<std::string> const& vocabulary() const { return vocabulary_; }
  bool fell_back = false;

 private:
  std::size_t order_;
  std::map<Words, std::size_t> raw_;
  std::map<Words, std::set<std::string>> left_;
  std::map<Words, double> counts_;
  std::map<Words, std::vector<double>> followers_;
  std::set<std::string> vocabulary_;
  std::vector<std::vector<double>> discounts_;
};

/// Sentences of words some of which are frequent.
std::vector<std::string> random_text(std::mt19937_64& random, std::size_t sentences, std::size_t words) {
  std::vector<std::string> text;
  for (std::size_t i = 0; i < sentences; ++i) {
    std::string sentence;
    for (auto n = random() % 12; n > 0; --n)
      sentence += (sentence.empty() ? "w" : "  w") + std::to_string((random() % words) * (random() % words) / words);
    text.push_back(sentence);
  }
  return text;
}

NGramTable trained(std::vector<std::string> const& text, NGramTraining const& options,
                   std::vector<std::string> const& words = {}) {
  NGramTrainer trainer(options, words);
  for (auto const& sentence : text) trainer.add(std::string_view(sentence));
  return trainer.build();
}

/// Compares all words after all kinds of contexts, and adds them up.
void compare(NGramTable const& table, Naive const& naive, std::vector<std::string> const& text,
             std::mt19937_64& random) {
  for (int round = 0; round < 30; ++round) {
    Words context{"<s>"};
    NGramState state = table.start();
    auto words = cut(text[random() % text.size()]);
    words.resize(std::min(words.size(), static_cast<std::size_t>(random() % 9)));
    if (random() % 4 == 0) words.push_back("w0"), words.push_back("<unk>"), words.push_back("w1");
    for (auto const& word : words) table.advance(state, table.word(word)), context.push_back(word);
    double sum = 0;
    for (auto const& word : naive.vocabulary()) {
      auto copy = state;
      auto const own = static_cast<double>(table.advance(copy, table.word(word)));
      sum += std::exp(own);
      auto const expected = std::log(naive.probability(context, word));
      if (!(std::abs(own - expected) <= 2e-6 * (1 + std::abs(expected)))) CHECK(own == expected);
    }
    CHECK_THAT(sum, WithinAbs(1, 1e-5));
  }
}

}  // namespace

TEST_CASE("trained n-grams are those of modified Kneser-Ney by maps", "[ngram]") {
  std::mt19937_64 random(12);
  std::size_t estimated = 0;
  for (std::size_t round = 0; round < times(24u); ++round) {
    auto const some = 5 + random() % 60, many = 30 + random() % 300;
    auto const text = random_text(random, many, some);
    auto const order = 1 + random() % 4;
    INFO("round " << round << ", order " << order);
    Naive const naive(text, order);
    estimated += naive.fell_back ? 0 : 1;
    auto const table = trained(text, {.order = static_cast<std::int32_t>(order), .fallback = true});
    compare(table, naive, text, random);
    if (naive.fell_back)
      CHECK(thrown([&] {
              trained(text, {.order = static_cast<std::int32_t>(order)});
            }).find("-grams give no discounts: ") != std::string::npos);
    std::ostringstream written;
    write_arpa(table, written);
    std::istringstream again(written.str());
    compare(read_arpa(again), naive, text, random);
  }
  CHECK(estimated >= times(4u));
}

TEST_CASE("words that are given are numbered first, and have a share if they do not occur", "[ngram]") {
  std::mt19937_64 random(13);
  auto const text = random_text(random, 200, 40);
  std::vector<std::string> const words{"<pad>", "w1", "<unk>", "w0", "never"};
  auto const table = trained(text, {.order = 3, .fallback = true}, words);
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(table.word(words[i]) == static_cast<Word>(i));
  CHECK(table.unknown() == 2);
  compare(table, Naive(text, 3, {"<pad>", "never"}), text, random);
}

TEST_CASE("a trainer refuses what it cannot use", "[ngram]") {
  CHECK(thrown([] { NGramTrainer({.order = 0}); }) == "sluice: order = 0: must be from 1 to 16");
  CHECK(thrown([] { NGramTrainer({.order = 17}); }) == "sluice: order = 17: must be from 1 to 16");
  std::vector<std::string> const twice{"a", "a"};
  CHECK(thrown([&] { NGramTrainer({}, twice); }) == "sluice: words = a: is there twice");
  NGramTrainer trainer;
  CHECK(thrown([&] { trainer.build(); }) == "sluice: text = empty: has no sentence");
  CHECK(thrown([&] { trainer.add("a </s>"); }) ==
        "sluice: sentence = </s>: stands at its ends only, and is added there");
  trainer.add("a b c");
  CHECK(
      thrown([&] { trainer.build(); }) ==
      "sluice: text = 5 words: its 1-grams give no discounts: there are too few that occur once, twice, three or four "
      "times (NGramTraining::fallback)");
}
