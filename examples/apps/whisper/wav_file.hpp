// SPDX-License-Identifier: Apache-2.0
/// \file
/// WAV files of 16-bit PCM, as samples at the rate that Whisper hears.
#pragma once

#include <text/lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace whisper {

inline constexpr std::int32_t sample_rate = 16000;

/// Samples in [-1, 1) at another rate, by lines between neighbours.
inline std::vector<float> resampled(std::vector<float> samples, std::int64_t from, std::int64_t to) {
  if (from == to || samples.empty()) return samples;
  auto const count = static_cast<std::size_t>((static_cast<std::int64_t>(samples.size()) * to + from - 1) / from);
  std::vector<float> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto const at = static_cast<std::int64_t>(i) * from;
    auto const whole = static_cast<std::size_t>(at / to);
    auto const part = static_cast<float>(at % to) / static_cast<float>(to);
    auto const next = (std::min)(whole + 1, samples.size() - 1);
    result.push_back(samples[whole] + part * (samples[next] - samples[whole]));
  }
  return result;
}

/// The mean of the channels of a WAV file's bytes, at `sample_rate`.
/// \param name  of the file, for messages
/// \throws text::InputError  for what is no WAV of 16-bit PCM
inline std::vector<float> wav_samples(std::string_view bytes, std::string const& name) {
  auto const refuse = [&](std::string const& why) { throw text::InputError(name + ": " + why); };
  auto const number = [&](std::size_t at, std::size_t size) {
    std::uint32_t value = 0;
    for (auto i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  if (bytes.size() < 12 || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE")
    refuse("is no WAV file (ffmpeg -i FILE -ar 16000 -ac 1 FILE.wav makes one)");
  std::uint32_t channels = 0, rate = 0;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    auto const kind = bytes.substr(at, 4);
    std::size_t const size = number(at + 4, 4), begin = at + 8;
    // What writes to a pipe does not know the size: the rest then.
    auto const end = begin + (std::min)(size, bytes.size() - begin);
    if (kind == "fmt ") {
      if (end - begin < 16) refuse("its format is cut off");
      auto coding = number(begin, 2);
      if (coding == 0xFFFE && end - begin >= 26) coding = number(begin + 24, 2);
      channels = number(begin + 2, 2), rate = number(begin + 4, 4);
      auto const bits = number(begin + 14, 2);
      if (coding != 1 || bits != 16)
        refuse("has samples of " + std::to_string(bits) + " bits in coding " + std::to_string(coding) +
               ": must be 16-bit PCM (ffmpeg -i FILE -ar 16000 -ac 1 FILE.wav makes it)");
      if (channels == 0) refuse("has no channel");
      if (rate < 1000 || rate > 1000000) refuse("has " + std::to_string(rate) + " samples a second");
    } else if (kind == "data") {
      if (channels == 0) refuse("has samples before their format");
      std::size_t const count = (end - begin) / (2 * channels);
      std::vector<float> samples(count);
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t sum = 0;
        for (std::size_t c = 0; c < channels; ++c)
          sum += static_cast<std::int16_t>(number(begin + 2 * (i * channels + c), 2));
        samples[i] = static_cast<float>(sum) / static_cast<float>(channels) / 32768.0f;
      }
      return resampled(std::move(samples), rate, sample_rate);
    }
    at = end + size % 2;
  }
  refuse("has no samples");
  return {};
}

inline std::vector<float> read_wav(std::filesystem::path const& file) {
  if (std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": is a directory");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw text::InputError(file.string() + ": cannot be opened");
  std::string const bytes{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) throw text::InputError(file.string() + ": cannot be read");
  return wav_samples(bytes, file.string());
}

}  // namespace whisper
