// SPDX-License-Identifier: Apache-2.0
/// \file
/// What was said, and when: segments and their formats.
#pragma once

#include <sluice/core/types.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

namespace whisper {

struct Word {
  std::string text{};  ///< with the space before it, and signs that belong to it
  double begin = 0, end = 0;
  double probability = 0;  ///< a token's mean
};

struct Segment {
  double begin = 0, end = 0;  ///< seconds
  std::string text{};
  std::vector<sluice::Token> tokens{};  ///< with timestamps
  double log_prob = 0;                  ///< a token's mean, of its window
  double no_speech = 0;                 ///< probability, of its window
  double temperature = 0;
  double compression = 0;     ///< of its window's text: bytes over bytes compressed
  std::vector<Word> words{};  ///< if they were asked for
};

struct Transcript {
  std::string file{}, language{};
  double seconds = 0;
  std::vector<Segment> segments{};
  std::string problem{};  ///< why it is not complete; empty: it is
};

/// 83.5 as 00:01:23,500.
inline std::string clock(double seconds, char point) {
  auto const all = std::llround(seconds * 1000);
  std::string text(32, '\0');
  auto const size = std::snprintf(text.data(), text.size(), "%02lld:%02lld:%02lld%c%03lld", all / 3600000,
                                  all / 60000 % 60, all / 1000 % 60, point, all % 1000);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

inline std::string trimmed(std::string const& text) {
  auto const begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
  return begin == std::string::npos ? std::string() : text.substr(begin, end + 1 - begin);
}

inline void write_txt(std::ostream& to, Transcript const& all) {
  for (auto const& one : all.segments)
    to << '[' << clock(one.begin, '.') << " --> " << clock(one.end, '.') << "] " << trimmed(one.text) << '\n';
}
inline void write_srt(std::ostream& to, Transcript const& all) {
  std::int32_t number = 0;
  for (auto const& one : all.segments)
    to << ++number << '\n'
       << clock(one.begin, ',') << " --> " << clock(one.end, ',') << '\n'
       << trimmed(one.text) << "\n\n";
}
inline void write_vtt(std::ostream& to, Transcript const& all) {
  to << "WEBVTT\n\n";
  for (auto const& one : all.segments) {
    auto const plain = [](std::string text) {
      for (std::size_t at = 0; (at = text.find("-->", at)) != std::string::npos; at += 2) text.replace(at, 3, "->");
      return text;
    };
    auto text = plain(trimmed(one.text));
    if (!one.words.empty()) {  // a player shows a word from its time on; times must rise, within the cue's
      text.clear();
      auto shown = clock(one.begin, '.');
      for (auto const& word : one.words) {
        auto const spoken = word.text.find_first_not_of(" \n");
        if (spoken == std::string::npos) continue;
        if (!text.empty()) text += word.text.substr(0, spoken);
        if (auto at = clock(word.begin, '.'); at > shown && at < clock(one.end, '.')) {
          text += '<' + at + '>';
          shown = std::move(at);
        }
        text += plain(word.text.substr(spoken));
      }
    }
    to << clock(one.begin, '.') << " --> " << clock(one.end, '.') << '\n' << text << "\n\n";
  }
}
/// One line.
inline void write_json(std::ostream& to, Transcript const& all) {
  auto const round = [](double x) { return std::round(x * 1e4) / 1e4; };
  nlohmann::ordered_json json{{"file", all.file}, {"language", all.language}, {"duration", round(all.seconds)}};
  std::string text;
  auto& segments = json["segments"] = nlohmann::ordered_json::array();
  for (auto const& one : all.segments) {
    text += one.text;
    segments.push_back({{"start", round(one.begin)},
                        {"end", round(one.end)},
                        {"text", one.text},
                        {"tokens", one.tokens},
                        {"avg_logprob", round(one.log_prob)},
                        {"no_speech_prob", round(one.no_speech)},
                        {"temperature", round(one.temperature)},
                        {"compression_ratio", round(one.compression)}});
    for (auto const& word : one.words)
      segments.back()["words"].push_back({{"start", round(word.begin)},
                                          {"end", round(word.end)},
                                          {"word", word.text},
                                          {"probability", round(word.probability)}});
  }
  json["text"] = trimmed(text);
  if (!all.problem.empty()) json["error"] = all.problem;
  to << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

}  // namespace whisper
