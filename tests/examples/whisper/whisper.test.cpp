// SPDX-License-Identifier: Apache-2.0
// What transcribe hears and writes, without its model.
#include <support/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>
#include <whisper/log_mel.hpp>
#include <whisper/transcript.hpp>
#include <whisper/wav_file.hpp>

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
}
