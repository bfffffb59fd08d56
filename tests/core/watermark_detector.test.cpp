// SPDX-License-Identifier: Apache-2.0
#include <sluice/watermark/detail/tails.hpp>
#include <sluice/watermark/detect_watermark.hpp>
#include <sluice/watermark/key_file.hpp>
#include <sluice/watermark/watermark.hpp>

#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Scheme = WatermarkScheme;

std::vector<Token> random_text(std::mt19937_64& random, std::size_t length, std::int32_t vocabulary) {
  std::vector<Token> text(length);
  for (auto& token : text) token = static_cast<Token>(random() % static_cast<std::uint64_t>(vocabulary));
  return text;
}
/// Tokens that are the best of several by the key's numbers: as strongly marked as text of `choices` equal choices.
std::vector<Token> marked_text(std::mt19937_64& random, Watermark const& options, std::size_t length,
                               std::int32_t vocabulary, int choices) {
  detail::Marker const marker(options);
  std::vector<Token> text;
  detail::MarkScratch weights;
  while (text.size() < length) {
    std::vector<Candidate> list;
    for (int i = 0; i < choices; ++i) {
      auto const token = static_cast<Token>(random() % static_cast<std::uint64_t>(vocabulary));
      if (std::none_of(list.begin(), list.end(), [&](Candidate c) { return c.token == token; }))
        list.push_back({token, 0});
    }
    auto const noise = random();
    text.push_back(list[marker.draw(list, marker.mark(text, noise), noise, weights)].token);
  }
  return text;
}

}  // namespace

TEST_CASE("tails are those of sums of terms", "[watermark]") {
  for (int shape : {1, 2, 5, 40, 700})
    for (double x : {0.1, 1.0, 4.5, 30.0, 100.0, 640.0, 700.0, 900.0}) {
      long double sum = 0, term = 1;
      for (int k = 0; k < shape; ++k) {
        sum += term;
        term *= static_cast<long double>(x) / static_cast<long double>(k + 1);
      }
      auto const expected = static_cast<double>(sum * std::exp(-static_cast<long double>(x)));
      if (expected > 1e-3) CHECK_THAT(detail::gamma_tail(shape, x), WithinRel(expected, 1e-11));
      else CHECK_THAT(detail::gamma_tail(shape, x), WithinRel(expected, 1e-9));
    }
  for (int trials : {1, 10, 200})
    for (double p : {0.25, 0.5, 0.9})
      for (int successes = 0; successes <= trials + 1; ++successes) {
        long double sum = 0;
        for (int k = successes; k <= trials; ++k) {
          long double term = 1;
          for (int i = 0; i < k; ++i)
            term *=
                static_cast<long double>(p) * static_cast<long double>(trials - i) / static_cast<long double>(k - i);
          sum += term * std::pow(1 - static_cast<long double>(p), trials - k);
        }
        CHECK_THAT(detail::binomial_tail(successes, trials, p), WithinRel(static_cast<double>(sum), 1e-9));
      }
  CHECK(detail::gamma_tail(10, 0) == 1);
  CHECK(detail::gamma_tail(1000000, 1e6) > 0.49);
  CHECK(detail::gamma_tail(20, 5000) == 0);  // below the smallest double
}

TEST_CASE("the tail of a weighted sum of two Gamma variables is that of its integral", "[watermark]") {
  for (int shape : {1, 3, 20})
    for (double weight : {0.01, 0.1, 0.35, 0.5, 0.8})
      for (double at : {0.3, 1.0, 1.5, 3.0}) {
        auto const score = at * shape;
        // P(w X + (1 - w) Y >= s), integrated over the density of X by Simpson's rule.
        auto const end = score / weight;
        auto const density = [&](double x) {
          return x <= 0 ? (shape == 1 ? 1.0 : 0.0)
                        : std::exp((shape - 1) * std::log(x) - x - std::lgamma(static_cast<double>(shape)));
        };
        auto const value = [&](double x) {
          return density(x) * detail::gamma_tail(shape, (std::max)(0.0, (score - weight * x) / (1 - weight)));
        };
        auto const upper = (std::min)(end, 40.0 + 6 * shape);
        constexpr int steps = 20000;
        auto const h = upper / steps;
        double sum = value(0) + value(upper);
        for (int i = 1; i < steps; ++i) sum += value(i * h) * (i % 2 == 1 ? 4 : 2);
        auto const expected = sum * h / 3 + detail::gamma_tail(shape, upper);
        CHECK_THAT(detail::mixed_gamma_tail(shape, weight, score), WithinRel(expected, 1e-6));
      }
}

TEST_CASE("scores and p-values are those of vLLM's detectors", "[watermark]") {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/oracles/watermark.json");
  auto const cases = nlohmann::json::parse(file).at("detections");
  for (auto const& one : cases) {
    auto const text = one.at("tokens").get<std::vector<Token>>();
    Watermark options{.scheme = Scheme::gumbel,
                      .prf = WatermarkPrf::philox,
                      .key = WatermarkKey(std::stoull(one.at("key").get<std::string>())),
                      .width = one.at("width").get<std::int32_t>()};
    auto const check = [&](char const* of) {
      auto const found = detect_watermark(text, options);
      CHECK(found.scored == one.at("scored").get<std::int32_t>());
      CHECK(found.scored + found.repeated == found.tokens);
      CHECK_THAT(found.score, WithinRel(one.at(of)[0].get<double>(), 1e-12));
      CHECK_THAT(found.p_value, WithinRel(one.at(of)[1].get<double>(), 1e-6));
    };
    check("gumbel");
    options.scheme = Scheme::red_green, check("red_green");
    options.scheme = Scheme::synthid, check("synthid");
  }
}

TEST_CASE("false alarms are as rare as the p-value says, also in text that repeats itself", "[watermark]") {
  std::mt19937_64 random(4);
  constexpr int texts = 3000;
  for (auto scheme : {Scheme::gumbel, Scheme::synthid, Scheme::red_green, Scheme::sbw})
    for (auto const vocabulary : {3, 1000}) {
      int alarms[3] = {};
      for (int i = 0; i < texts; ++i) {
        Watermark options{.scheme = scheme,
                          .prf = scheme == Scheme::sbw ? WatermarkPrf::philox : WatermarkPrf::sluice,
                          .key = WatermarkKey(random()),
                          .width = static_cast<std::int32_t>(1 + random() % 4)};
        if (scheme == Scheme::gumbel && i % 2 == 0) options.second = 0.1f;
        auto const p = detect_watermark(random_text(random, 60, vocabulary), options).p_value;
        alarms[0] += p <= 0.5, alarms[1] += p <= 0.1, alarms[2] += p <= 0.01;
      }
      INFO(name(scheme) << " " << vocabulary);
      // At most as likely; discrete scores are less likely. Four standard deviations.
      CHECK(alarms[0] < texts * 0.5 + 4 * std::sqrt(texts * 0.25));
      CHECK(alarms[1] < texts * 0.1 + 4 * std::sqrt(texts * 0.09));
      CHECK(alarms[2] < texts * 0.01 + 4 * std::sqrt(texts * 0.0099));
      if (scheme == Scheme::gumbel) {
        CHECK(alarms[0] > texts * 0.5 - 4 * std::sqrt(texts * 0.25));
        CHECK(alarms[1] > texts * 0.1 - 4 * std::sqrt(texts * 0.09));
      }
    }
}

TEST_CASE("masked tokens do not count, and windows find a marked part", "[watermark]") {
  std::mt19937_64 random(5);
  Watermark const options{.scheme = Scheme::gumbel, .key = WatermarkKey(11)};
  auto text = random_text(random, 2000, 500);
  auto const part = marked_text(random, options, 200, 500, 20);
  auto const p_alone = detect_watermark(part, options).p_value;
  std::copy(part.begin(), part.end(), text.begin() + 700);
  auto const found = detect_watermark(text, options, {.window = 200});
  CHECK(found.windows.size() == 19);
  CHECK(found.windows_p_value < 1e-20);
  CHECK(found.windows_p_value < found.p_value);
  CHECK(p_alone < 1e-20);
  auto const best = std::min_element(found.windows.begin(), found.windows.end(),
                                     [](auto const& a, auto const& b) { return a.p_value < b.p_value; });
  CHECK(best->begin == 700);
  CHECK(best->end == 900);
  CHECK(found.windows_p_value == best->p_value * 19);
  CHECK(found.windows.back().end == 2000);

  std::vector<std::uint8_t> mask(text.size());
  std::fill(mask.begin() + 700, mask.begin() + 900, std::uint8_t{1});
  auto const rest = detect_watermark(text, options, {.mask = mask});
  CHECK(rest.masked == 200);
  CHECK(rest.scored + rest.repeated + rest.masked == 2000);
  CHECK(rest.p_value > 1e-3);

  CHECK_THROWS_AS(detect_watermark(text, options, {.mask = std::span(mask).first(3)}), std::invalid_argument);
  CHECK_THROWS_AS(detect_watermark(text, options, {.window = -1}), std::invalid_argument);
  CHECK_THROWS_AS(detect_watermark(text, {}), std::invalid_argument);
  CHECK_THROWS_AS(detect_watermark(std::vector<Token>{3, -1}, options), std::invalid_argument);
  CHECK(detect_watermark({}, options).p_value == 1);
}

TEST_CASE("a repeated context counts once, where it occurs first", "[watermark]") {
  Watermark const options{.scheme = Scheme::red_green, .key = WatermarkKey(3), .width = 1};
  std::vector<Token> const text{5, 6, 5, 7, 5, 6, 5, 5};
  auto const found = detect_watermark(text, options);
  CHECK(found.scored == 4);  // after nothing, 5, 6, 7
  CHECK(found.repeated == 4);
  std::vector<std::uint8_t> const mask{1, 1, 0, 0, 0, 0, 0, 0};  // 6 after 5: the context is used up
  CHECK(detect_watermark(text, options, {.mask = mask}).scored == 2);
}

TEST_CASE("marks survive substitutions, fewer the more tokens are others", "[watermark]") {
  std::mt19937_64 random(6);
  for (auto scheme : {Scheme::gumbel, Scheme::synthid, Scheme::red_green, Scheme::sbw}) {
    Watermark const options{.scheme = scheme,
                            .prf = scheme == Scheme::sbw ? WatermarkPrf::philox : WatermarkPrf::sluice,
                            .key = WatermarkKey(12),
                            .width = 2};
    double before = 0;
    for (int percent : {0, 10, 30}) {
      double logs = 0;
      for (int i = 0; i < 20; ++i) {
        auto text = marked_text(random, options, 200, 500, 20);
        for (auto& token : text)
          if (static_cast<int>(random() % 100) < percent) token = static_cast<Token>(random() % 500);
        logs += std::log(detect_watermark(text, options).p_value);
      }
      if (percent > 0) CHECK(logs > before);
      CHECK(logs / 20 < std::log(0.01));
      before = logs;
    }
  }
}

TEST_CASE("keys are read from files and written to new ones", "[watermark]") {
  auto const path = (std::filesystem::temp_directory_path() / "sluice_watermark_key_test").string();
  std::filesystem::remove(path);
  auto const write = [&](char const* text) { std::ofstream(path, std::ios::binary) << text; };
  CHECK_THROWS_AS(read_watermark_key(path), std::invalid_argument);
  auto const made = write_new_watermark_key(path, 4);
  CHECK(made.size() == 4);
  CHECK(read_watermark_key(path) == made);
#if !defined(_WIN32)  // whose files take permissions from their folder
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
#endif
  CHECK_THROWS_AS(write_new_watermark_key(path), std::invalid_argument);
  write("# ours: 7\n 18446744073709551615, 0xFF\r\n3 # end");
  std::vector<std::uint64_t> const words{18446744073709551615u, 255, 3};
  CHECK(read_watermark_key(path) == WatermarkKey(words));
  for (auto const* bad : {"", "# 3", "18446744073709551616", "12x", "0x", "-3", "0x10000000000000000"}) {
    write(bad);
    CHECK_THROWS_AS(read_watermark_key(path), std::invalid_argument);
  }
  write("secret987654321x");
  try {
    read_watermark_key(path);
    CHECK(false);
  } catch (std::invalid_argument const& e) {
    CHECK(std::string(e.what()).find("987654321") == std::string::npos);
  }
  std::filesystem::remove(path);
}
