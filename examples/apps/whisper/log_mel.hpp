// SPDX-License-Identifier: Apache-2.0
/// \file
/// Log-mel features as Whisper wants them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>
#include <whisper/wav_file.hpp>

namespace whisper {

/// Fourier transforms of one size: halves while it is even, the sum as it is written then. 400 = 16 * 25.
class Fourier {
 public:
  using Complex = std::complex<double>;
  explicit Fourier(std::size_t size) : roots_(size) {
    for (std::size_t i = 0; i < size; ++i)
      roots_[i] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size));
  }
  /// \param in, out  [size], not the same
  void transform(std::span<Complex const> in, std::span<Complex> out) const { part(in.data(), 1, out); }

 private:
  void part(Complex const* in, std::size_t stride, std::span<Complex> out) const {
    auto const size = out.size(), half = size / 2;
    if (size % 2 == 1) {
      for (std::size_t k = 0; k < size; ++k) {
        Complex sum = 0;
        for (std::size_t i = 0, turn = 0; i < size; ++i, turn = (turn + k) % size)
          sum += in[i * stride] * roots_[turn * stride];
        out[k] = sum;
      }
      return;
    }
    part(in, 2 * stride, out.first(half));
    part(in + stride, 2 * stride, out.subspan(half));
    for (std::size_t k = 0; k < half; ++k) {
      auto const even = out[k], odd = out[half + k] * roots_[k * stride];
      out[k] = even + odd, out[half + k] = even - odd;
    }
  }

  std::vector<Complex> roots_;
};

/// [bands, frames]: band after band.
struct LogMel {
  std::size_t bands = 0, frames = 0;
  std::vector<float> numbers{};
  float at(std::size_t band, std::size_t frame) const { return numbers[band * frames + frame]; }
};

/// Features of windows of 25 ms, every 10 ms, in bands of Slaney's mel scale, as openai/whisper's audio.py computes them
/// (librosa.filters.mel, and a Hann window).
class LogMelExtractor {
 public:
  static constexpr std::size_t window = 400, hop = 160, bins = window / 2 + 1;

  explicit LogMelExtractor(std::size_t bands) : fourier_(window) {
    for (std::size_t i = 0; i < window; ++i)
      hann_[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window));
    // Band i rises from edge i to i + 1 and falls to i + 2, with the area 1.
    auto const top = mel(sample_rate / 2.0);
    std::vector<double> edges(bands + 2);
    for (std::size_t i = 0; i < edges.size(); ++i)
      edges[i] = hertz(top * static_cast<double>(i) / static_cast<double>(bands + 1));
    for (std::size_t i = 0; i < bands; ++i) {
      auto& band = bands_.emplace_back();
      for (std::size_t bin = 0; bin < bins; ++bin) {
        auto const f = static_cast<double>(bin) * sample_rate / static_cast<double>(window);
        auto const height =
            (std::min)((f - edges[i]) / (edges[i + 1] - edges[i]), (edges[i + 2] - f) / (edges[i + 2] - edges[i + 1]));
        if (height <= 0) continue;
        if (band.weights.empty()) band.first = bin;
        band.weights.push_back(2 * height / (edges[i + 2] - edges[i]));
      }
    }
  }

  /// One frame for every 160 samples, and one more. Samples are mirrored before the first one; after the last come zeros.
  LogMel operator()(std::span<float const> samples) const {
    constexpr auto ahead = window / 2;
    std::vector<double> padded(ahead + samples.size() + hop + ahead);
    std::copy(samples.begin(), samples.end(), padded.begin() + ahead);
    auto const end = ahead + samples.size() + hop;  // mirrored there, too
    for (std::size_t i = 1; i <= ahead; ++i) {
      padded[ahead - i] = ahead + i < end ? padded[ahead + i] : 0;
      padded[end - 1 + i] = end >= ahead + 1 + i ? padded[end - 1 - i] : 0;
    }
    LogMel result{.bands = bands_.size(), .frames = (samples.size() + hop) / hop};
    result.numbers.resize(result.bands * result.frames);
    std::array<Fourier::Complex, window> in, out;
    std::array<double, bins> power{};
    auto best = -10.0f;
    for (std::size_t frame = 0; frame < result.frames; ++frame) {
      for (std::size_t i = 0; i < window; ++i) in[i] = hann_[i] * padded[frame * hop + i];
      fourier_.transform(in, out);
      for (std::size_t bin = 0; bin < bins; ++bin) power[bin] = std::norm(out[bin]);
      for (std::size_t i = 0; i < bands_.size(); ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < bands_[i].weights.size(); ++k)
          sum += bands_[i].weights[k] * power[bands_[i].first + k];
        auto const x = static_cast<float>(std::log10((std::max)(sum, 1e-10)));
        result.numbers[i * result.frames + frame] = x, best = (std::max)(best, x);
      }
    }
    for (auto& x : result.numbers) x = ((std::max)(x, best - 8) + 4) / 4;
    return result;
  }

 private:
  struct Band {
    std::size_t first = 0;
    std::vector<double> weights{};
  };
  // Slaney's scale: straight up to 1000 Hz, then by powers of 6.4.
  static double mel(double hertz) {
    return hertz < 1000 ? hertz * 3 / 200 : 15 + 27 * std::log(hertz / 1000) / std::log(6.4);
  }
  static double hertz(double mel) {
    return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
  }

  Fourier fourier_;
  std::array<double, window> hann_{};
  std::vector<Band> bands_;
};

}  // namespace whisper
