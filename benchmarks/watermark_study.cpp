// SPDX-License-Identifier: Apache-2.0
// watermark_study TEXTS KEYS [alarms|keys|power]: how often a detector of watermarks is wrong, and how much it sees. Tables in Markdown: false
// alarms of TEXTS texts without a mark; for KEYS keys, those of texts that share a template; then, of TEXTS / 500 marked
// texts, how many are found, over length and entropy, and after substitutions.

#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

using sluice::Candidate, sluice::Token, sluice::Watermark, sluice::WatermarkScheme;

constexpr std::int32_t ranks = 50;

/// A language: after each token, 50 others by Zipf's law, of this entropy.
class Language {
 public:
  Language(std::int32_t vocabulary, double bits) : vocabulary_(vocabulary), count_((std::min)(ranks, vocabulary)) {
    double low = 0, high = 20;
    for (int i = 0; i < 60; ++i) (entropy((low + high) / 2) > bits ? low : high) = (low + high) / 2;
    exponent_ = low;
  }
  void line(Token last, std::vector<Candidate>& list) const {
    list.clear();
    auto const first = sluice::derive(7, static_cast<std::uint64_t>(last) + 1);
    for (std::int32_t r = 0; r < count_; ++r)
      list.push_back(
          {static_cast<Token>((first + static_cast<std::uint64_t>(r) * 613) % static_cast<std::uint64_t>(vocabulary_)),
           static_cast<float>(-exponent_ * std::log(r + 1.0))});
  }
  /// A text, marked if the options say so.
  std::vector<Token> text(Watermark const& options, std::size_t length, std::uint64_t seed,
                          std::vector<Token> text = {}) const {
    sluice::detail::Marker const marker(options);
    sluice::detail::MarkScratch scratch;
    std::vector<Candidate> list;
    while (text.size() < length) {
      auto const noise = sluice::derive(seed, text.size());
      line(text.empty() ? -1 : text.back(), list);
      text.push_back(list[marker.draw(list, marker.mark(text, noise), noise, scratch)].token);
    }
    return text;
  }
  Token other(std::uint64_t noise) const { return static_cast<Token>(noise % static_cast<std::uint64_t>(vocabulary_)); }

 private:
  double entropy(double exponent) const {
    double sum = 0, weighted = 0;
    for (std::int32_t r = 0; r < count_; ++r) {
      auto const p = std::pow(r + 1.0, -exponent);
      sum += p, weighted += p * std::log2(p);
    }
    return std::log2(sum) - weighted / sum;
  }
  std::int32_t vocabulary_, count_;
  double exponent_ = 0;
};

struct Named {
  char const* name;
  Watermark options;
};
std::vector<Named> const all{
    {"gumbel", {.scheme = WatermarkScheme::gumbel}},
    {"gumbel, second 0.1", {.scheme = WatermarkScheme::gumbel, .second = 0.1f}},
    {"synthid", {.scheme = WatermarkScheme::synthid}},
    {"red_green", {.scheme = WatermarkScheme::red_green}},
    {"sbw", {.scheme = WatermarkScheme::sbw, .prf = sluice::WatermarkPrf::philox}},
};

Watermark keyed(Watermark options, std::uint64_t key) {
  options.key = sluice::WatermarkKey(key);
  return options;
}

void false_alarms(std::size_t texts) {
  Language const prose(1009, 3), form(8, 2);
  std::printf("False alarms of %zu texts of 100 tokens, each with a key of its own:\n\n", texts);
  std::printf("| scheme | text | p <= 0.01 | p <= 0.001 | p <= 0.0001 |\n| --- | --- | ---: | ---: | ---: |\n");
  for (auto const& [name, options] : all)
    for (auto const* language : {&prose, &form}) {
      std::size_t alarms[3] = {};
      for (std::size_t i = 0; i < texts; ++i) {
        auto const text = language->text({}, 100, sluice::derive(1, i));
        auto const p = sluice::detect_watermark(text, keyed(options, sluice::derive(2, i))).p_value;
        alarms[0] += p <= 1e-2, alarms[1] += p <= 1e-3, alarms[2] += p <= 1e-4;
      }
      auto const share = [&](std::size_t count) { return static_cast<double>(count) / static_cast<double>(texts); };
      std::printf("| %s | %s | %.4f | %.5f | %.6f |\n", name, language == &prose ? "1009 words" : "8 words, repetitive",
                  share(alarms[0]), share(alarms[1]), share(alarms[2]));
      std::fflush(stdout);
    }
}

void templated(std::size_t texts, std::size_t keys) {
  Language const prose(1009, 3);
  auto const half = prose.text({}, 50, 99);
  std::printf(
      "\nFalse alarms (p <= 0.01) of %zu texts of 100 tokens, the first 50 the same in all, for each of %zu keys:\n\n",
      texts, keys);
  std::printf("| scheme | least of a key | mean | most of a key | most, template masked |\n"
              "| --- | ---: | ---: | ---: | ---: |\n");
  std::vector<std::uint8_t> mask(100);
  std::fill(mask.begin(), mask.begin() + 50, std::uint8_t{1});
  for (auto const& [name, options] : all) {
    double least = 1, most = 0, sum = 0, masked_most = 0;
    for (std::size_t k = 0; k < keys; ++k) {
      std::size_t alarms = 0, masked = 0;
      auto const own = keyed(options, sluice::derive(3, k));
      for (std::size_t i = 0; i < texts; ++i) {
        auto const text = prose.text({}, 100, sluice::derive(4 + k, i), half);
        alarms += sluice::detect_watermark(text, own).p_value <= 1e-2;
        masked += sluice::detect_watermark(text, own, {.mask = mask}).p_value <= 1e-2;
      }
      auto const share = static_cast<double>(alarms) / static_cast<double>(texts);
      least = (std::min)(least, share), most = (std::max)(most, share), sum += share;
      masked_most = (std::max)(masked_most, static_cast<double>(masked) / static_cast<double>(texts));
    }
    std::printf("| %s | %.4f | %.4f | %.4f | %.4f |\n", name, least, sum / static_cast<double>(keys), most,
                masked_most);
    std::fflush(stdout);
  }
}

/// What a detector sees of marked texts.
struct Power {
  double at_hundredth = 0, at_thousandth = 0;  // the shares with p <= 0.01 and p <= 0.001
  double median = 0;                           // of -log10 p, at most 308
};
Power power_of(Language const& language, Watermark const& options, std::size_t length, int percent, std::size_t texts) {
  std::size_t found[2] = {};
  std::vector<double> logs;
  for (std::size_t i = 0; i < texts; ++i) {
    auto const own = keyed(options, sluice::derive(5, i));
    auto text = language.text(own, length, sluice::derive(6, i));
    for (std::size_t n = 0; n < text.size(); ++n) {
      auto const noise = sluice::derive(sluice::derive(8, i), n);
      if (static_cast<int>(noise % 100) < percent) text[n] = language.other(noise / 100);
    }
    auto const p = sluice::detect_watermark(text, own).p_value;
    found[0] += p <= 1e-2, found[1] += p <= 1e-3, logs.push_back((std::max)(0.0, -std::log10((std::max)(p, 1e-308))));
  }
  std::nth_element(logs.begin(), logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2), logs.end());
  auto const share = [&](std::size_t count) { return static_cast<double>(count) / static_cast<double>(texts); };
  return {share(found[0]), share(found[1]), logs[logs.size() / 2]};
}

/// A row of a table: for each point the shares at both levels, and the median.
void print_row(std::string const& head, std::vector<Power> const& row) {
  std::printf("| %s |", head.c_str());
  for (auto const& one : row) std::printf(" %.2f, %.2f (%.0f) |", one.at_hundredth, one.at_thousandth, one.median);
  std::printf("\n"), std::fflush(stdout);
}

void power(std::size_t texts) {
  std::printf("\nShares of %zu marked texts found at p <= 0.01, and at p <= 0.001 (median of -log10 p):\n\n", texts);
  std::printf("| scheme | bits per token | 25 tokens | 50 | 100 | 200 | 400 | 800 |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (auto const& [name, options] : all)
    for (auto const* const bits : {"0.5", "1.0", "2.0", "4.0"}) {
      Language const language(1009, std::stod(bits));
      std::vector<Power> row;
      for (auto const length : {25u, 50u, 100u, 200u, 400u, 800u})
        row.push_back(power_of(language, options, length, 0, texts));
      print_row(std::string(name) + " | " + bits, row);
    }
  std::printf("\nThe same for 200 tokens of 2 bits each, of which some were replaced at random:\n\n");
  std::printf(
      "| scheme | 0 %% | 5 %% | 10 %% | 20 %% | 30 %% | 50 %% |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (auto const& [name, options] : all) {
    Language const language(1009, 2);
    std::vector<Power> row;
    for (auto const percent : {0, 5, 10, 20, 30, 50}) row.push_back(power_of(language, options, 200, percent, texts));
    print_row(name, row);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string const part = argc == 4 ? argv[3] : "";
    if (argc < 3 || argc > 4 || (argc == 4 && part != "alarms" && part != "keys" && part != "power"))
      return std::fprintf(stderr, "usage: watermark_study TEXTS KEYS [alarms|keys|power]\n"), 2;
    auto const texts = static_cast<std::size_t>(std::stoul(argv[1])),
               keys = static_cast<std::size_t>(std::stoul(argv[2]));
    if (texts < 500 || keys == 0) return std::fprintf(stderr, "watermark_study: at least 500 texts and a key\n"), 2;
    if (part.empty() || part == "alarms") false_alarms(texts);
    if (part.empty() || part == "keys") templated(texts / 50, keys);
    if (part.empty() || part == "power") power(texts / 500);
    return 0;
  } catch (std::exception const& e) {
    return std::fprintf(stderr, "watermark_study: %s\n", e.what()), 1;
  }
}
