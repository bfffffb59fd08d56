// SPDX-License-Identifier: Apache-2.0
// What transcribe hears and writes, without its model.
#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <sstream>
#include <string>
#include <vector>
#include <whisper/log_mel.hpp>
#include <whisper/transcript.hpp>
#include <whisper/wav_file.hpp>
#include <whisper/word_times.hpp>

using namespace whisper;

namespace {

std::string number(std::uint32_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  return bytes;
}
std::string wav(std::uint32_t channels, std::uint32_t rate, std::uint32_t bits,
                std::vector<std::int16_t> const& samples, std::uint32_t coding = 1) {
  std::string data;
  for (auto const x : samples) data += number(static_cast<std::uint16_t>(x), 2);
  auto const size = static_cast<std::uint32_t>(data.size());
  return "RIFF" + number(36 + size + 11, 4) + "WAVELIST" + number(3, 4) + std::string("abc\0fmt ", 8) + number(16, 4) +
         number(coding, 2) + number(channels, 2) + number(rate, 4) + number(rate * channels * 2, 4) +
         number(channels * 2, 2) + number(bits, 2) + "data" + number(size, 4) + data;
}

}  // namespace

TEST_CASE("log-mel features are those of openai/whisper", "[whisper]") {
  std::vector<float> samples;
  for (int i = 0; i < 8000; ++i)
    samples.push_back(static_cast<float>(0.4 * std::sin(2 * std::numbers::pi * 3e-5 * i * i)));
  auto const features = LogMelExtractor(80)(samples);
  CHECK(features.bands == 80);
  REQUIRE(features.frames == 51);
  // By faster-whisper 1.2.1, whose function is that of openai/whisper in NumPy.
  std::vector<std::size_t> const bands{0, 20, 40, 60, 79}, frames{0, 7, 25, 49, 50};
  std::vector<std::vector<float>> const expected{
      {1.1705f, -0.7018f, -0.7018f, -0.7018f, -0.3512f},  {-0.7018f, 0.3261f, -0.7018f, -0.7018f, -0.3460f},
      {-0.7018f, -0.5887f, -0.7018f, -0.7018f, -0.3182f}, {-0.7018f, -0.7018f, 1.1433f, -0.7018f, -0.2219f},
      {-0.7018f, -0.7018f, -0.7018f, 1.1298f, 1.1157f},
  };
  for (std::size_t i = 0; i < bands.size(); ++i)
    for (std::size_t k = 0; k < frames.size(); ++k)
      CHECK_THAT(features.at(bands[i], frames[k]), sluice::test::WithinAbs(expected[i][k], 2e-4));
  CHECK(LogMelExtractor(80)(std::vector<float>()).frames == 1);
}

TEST_CASE("samples of WAV files are the mean of their channels, at 16,000 a second", "[whisper]") {
  CHECK(wav_samples(wav(1, 16000, 16, {0, 16384, -32768}), "a") == std::vector<float>{0, 0.5f, -1});
  CHECK(wav_samples(wav(2, 16000, 16, {0, 16384, -16384, 0}), "a") == std::vector<float>{0.25f, -0.25f});
  CHECK(wav_samples(wav(1, 8000, 16, {0, 16384}), "a") == std::vector<float>{0, 0.25f, 0.5f, 0.5f});
  CHECK(wav_samples(wav(1, 32000, 16, {0, 1, 16384, 2, 32}), "a").size() == 3);
  auto const cut = wav(1, 16000, 16, {1, 2, 3});
  CHECK(wav_samples(cut.substr(0, cut.size() - 3), "a").size() == 1);
  auto const refused = [](std::string const& bytes, std::string const& why) {
    CHECK_THROWS_WITH(wav_samples(bytes, "a.wav"), Catch::Matchers::StartsWith("a.wav: " + why));
  };
  refused("", "is no WAV file");
  refused("RIFF1234WAVE", "has no samples");
  refused(wav(1, 16000, 8, {0}), "has samples of 8 bits in coding 1: must be 16-bit PCM");
  refused(wav(1, 16000, 32, {0}, 3), "has samples of 32 bits in coding 3");
  refused(wav(0, 16000, 16, {0}), "has no channel");
  refused(wav(1, 0, 16, {0}), "has 0 samples a second");
}

TEST_CASE("transcripts are written as text, SRT, VTT and JSON", "[whisper]") {
  Transcript all{.file = "a.wav", .language = "en", .seconds = 3700};
  all.segments.push_back({.begin = 0, .end = 1.5, .text = " One.", .tokens = {3}});
  all.segments.push_back({.begin = 3661.04, .end = 3662, .text = " Two --> three.", .tokens = {4}});
  auto const written = [&](auto write) {
    std::ostringstream to;
    write(to, all);
    return to.str();
  };
  CHECK(written(write_txt) == "[00:00:00.000 --> 00:00:01.500] One.\n[01:01:01.040 --> 01:01:02.000] Two --> three.\n");
  CHECK(written(write_srt) ==
        "1\n00:00:00,000 --> 00:00:01,500\nOne.\n\n2\n01:01:01,040 --> 01:01:02,000\nTwo --> three.\n\n");
  CHECK(written(write_vtt) == "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nOne.\n\n"
                              "01:01:01.040 --> 01:01:02.000\nTwo -> three.\n\n");
  auto const json = nlohmann::json::parse(written(write_json));
  CHECK(json.at("text") == "One. Two --> three.");
  CHECK(json.at("segments").at(1).at("start") == 3661.04);
  CHECK_FALSE(json.at("segments").at(1).contains("words"));
  all.segments = {{.begin = 1, .end = 2, .text = " So it -->"}};
  all.segments[0].words = {{" So", 1, 1.2, 0.5}, {" it", 1.2, 1.6, 1}, {" -->", 1.1, 2, 1}};
  CHECK(written(write_vtt) == "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nSo <00:00:01.200>it ->\n\n");
  auto const words = nlohmann::json::parse(written(write_json)).at("segments").at(0).at("words");
  CHECK(words.at(0) == nlohmann::json{{"start", 1}, {"end", 1.2}, {"word", " So"}, {"probability", 0.5}});
}

TEST_CASE("a path through attention has the greatest sum of all paths", "[whisper]") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> digit(-9, 9);
  for (int turn = 0; turn < 200; ++turn) {
    auto const lines = 1 + random() % 4, frames = 1 + random() % 5;
    std::vector<double> values(lines * frames);
    for (auto& x : values) x = digit(random);
    // All paths, each a set of places; the path of warp is one that comes to each line at the frame it says.
    auto best = -1e9, of_found = -1e9;
    auto const found = warp(values, lines, frames);
    std::vector<std::size_t> begins(lines);
    auto const walk = [&](auto const& self, std::size_t i, std::size_t k, double sum) -> void {
      sum += values[i * frames + k];
      if (i + 1 == lines && k + 1 == frames) {
        best = std::max(best, sum);
        if (begins == found) of_found = std::max(of_found, sum);
      }
      if (k + 1 < frames) self(self, i, k + 1, sum);
      if (i + 1 == lines) return;
      begins[i + 1] = k;
      self(self, i + 1, k, sum);
      if (k + 1 == frames) return;
      begins[i + 1] = k + 1;
      self(self, i + 1, k + 1, sum);
    };
    walk(walk, 0, 0, 0);
    CAPTURE(lines, frames, values, found);
    CHECK(of_found == best);
  }
}

TEST_CASE("what stands out in attention is counted in deviations over lines", "[whisper]") {
  // One head; two lines of three frames, too few for a median. Softmax of (0, 0, 0) is a third each; of (ln 2, 0, 0) 1/2, 1/4, 1/4:
  // of two numbers each is one deviation from their mean.
  auto const found = prominence({.heads = 1, .lines = 2, .frames = 3, .numbers = {0, 0, 0, std::log(2.0), 0, 0}});
  std::vector<double> const expected{-1, 1, 1, 1, -1, -1};
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK_THAT(found[i], sluice::test::WithinAbs(expected[i], 1e-9));
  // A single frame that stands out is lost in the median of seven.
  std::vector<double> lone(2 * 16);
  lone[8] = 3;
  for (std::size_t k = 0; k < 16; ++k) lone[16 + k] = k % 2 == 0 ? 0.1 : -0.1;
  auto const smooth = prominence({.heads = 1, .lines = 2, .frames = 16, .numbers = lone});
  CHECK(smooth[8] == smooth[10]);
}

TEST_CASE("words are cut and joined as by faster-whisper", "[whisper]") {
  auto const texts = [](std::vector<TimedWord> const& words) {
    std::vector<std::string> all;
    for (auto const& word : words) all.push_back(word.text);
    return all;
  };
  std::vector<std::string> const tokens{" He", " said", " \"", "Gr", "\xc3", "\xbc", "n", "\"",
                                        ",",   " (",    "yes", ")",  "...",  " no",  "."};
  auto const cut = cut_words(tokens, "en");
  CHECK(texts(cut) ==
        std::vector<std::string>{" He", " said", " \"Gr\xc3\xbcn", "\"", ",", " (yes", ")...", " no", "."});
  CHECK(texts(join_signs(cut)) ==
        std::vector<std::string>{" He", " said", " \"Gr\xc3\xbcn\",", " (yes", ")...", " no."});
  CHECK(texts(cut_words(tokens, "ja")).size() == tokens.size() - 1);
  CHECK(cut_words({}, "en").empty());

  // A pause of three seconds after a full stop belongs to neither side.
  std::vector<Segment> segments(1);
  segments[0].begin = 0, segments[0].end = 5, segments[0].tokens = {99, 1, 2, 3, 4, 100};
  std::vector<std::string> const said{" One", ".", " Two", " three"};
  TokenTimes const times{.begins = {0, 0.4, 3.4, 3.8, 4.2}, .probabilities = {0.5, 1, 0.25, 1}};
  double spoken = 0;
  time_words(segments, times, said, 50, "en", 0, spoken);
  auto const& words = segments[0].words;
  REQUIRE(words.size() == 3);
  CHECK(words[0].text == " One.");
  CHECK((words[0].begin == 0 && words[0].end == 0.4 && words[0].probability == 0.5));
  CHECK((words[1].begin == 3.4 && words[1].end == 3.8));
  CHECK((segments[0].begin == 0 && segments[0].end == 4.2 && spoken == 4.2));
}
