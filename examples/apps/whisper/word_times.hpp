// SPDX-License-Identifier: Apache-2.0
/// \file
/// When each word was said: a path through the decoder's attention to the sound (dynamic time warping), and words of tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <whisper/transcript.hpp>

namespace whisper {

/// [heads, lines, frames], head after head.
struct Attention {
  std::size_t heads = 0, lines = 0, frames = 0;
  std::vector<double> numbers{};
  double& at(std::size_t head, std::size_t line, std::size_t frame) {
    return numbers[(head * lines + line) * frames + frame];
  }
};

/// How much each line stands out at each frame, [lines, frames], of scores before the softmax: probabilities, by standard deviations from
/// their mean over lines, the median of seven frames, the mean of heads.
inline std::vector<double> prominence(Attention scores) {
  constexpr std::ptrdiff_t reach = 3;
  auto const frames = static_cast<std::ptrdiff_t>(scores.frames);
  std::vector<double> mean(scores.lines * scores.frames), line(scores.frames);
  for (std::size_t head = 0; head < scores.heads; ++head) {
    for (std::size_t i = 0; i < scores.lines; ++i) {
      auto const row = std::span(&scores.at(head, i, 0), scores.frames);
      auto const best = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (auto& x : row) x = std::exp(x - best), sum += x;
      for (auto& x : row) x /= sum;
    }
    for (std::size_t k = 0; k < scores.frames; ++k) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < scores.lines; ++i) sum += scores.at(head, i, k);
      auto const middle = sum / static_cast<double>(scores.lines);
      for (std::size_t i = 0; i < scores.lines; ++i) squares += std::pow(scores.at(head, i, k) - middle, 2);
      auto const deviation = std::sqrt(squares / static_cast<double>(scores.lines));
      for (std::size_t i = 0; i < scores.lines; ++i)
        scores.at(head, i, k) = deviation > 0 ? (scores.at(head, i, k) - middle) / deviation : 0;
    }
    for (std::size_t i = 0; i < scores.lines; ++i) {
      for (std::ptrdiff_t k = 0; k < frames; ++k) {
        std::array<double, 2 * reach + 1> around{};
        for (std::ptrdiff_t d = -reach; d <= reach; ++d) {
          auto from = k + d;  // mirrored at both ends, where there are enough
          if (frames > reach) from = from < 0 ? -from : from >= frames ? 2 * (frames - 1) - from : from;
          else from = k;
          around[static_cast<std::size_t>(d + reach)] = scores.at(head, i, static_cast<std::size_t>(from));
        }
        std::nth_element(around.begin(), around.begin() + reach, around.end());
        line[static_cast<std::size_t>(k)] = around[static_cast<std::size_t>(reach)];
      }
      for (std::size_t k = 0; k < scores.frames; ++k)
        mean[i * scores.frames + k] += line[k] / static_cast<double>(scores.heads);
    }
  }
  return mean;
}

/// Of the path of the greatest sum from the first line and frame to the last ones, which moves on by a line, a frame or both: the frame
/// at which it comes to each line.
inline std::vector<std::size_t> warp(std::span<double const> values, std::size_t lines, std::size_t frames) {
  enum class Step : std::uint8_t { both, line, frame };
  constexpr auto never = -std::numeric_limits<double>::infinity();
  std::vector<double> best((lines + 1) * (frames + 1), never);
  std::vector<Step> steps(lines * frames);
  auto const sum = [&](std::size_t i, std::size_t k) -> double& { return best[i * (frames + 1) + k]; };
  sum(0, 0) = 0;
  for (std::size_t i = 1; i <= lines; ++i)
    for (std::size_t k = 1; k <= frames; ++k) {
      auto from = sum(i, k - 1);
      auto step = Step::frame;
      if (sum(i - 1, k - 1) > from) from = sum(i - 1, k - 1), step = Step::both;
      if (sum(i - 1, k) > from) from = sum(i - 1, k), step = Step::line;
      sum(i, k) = from + values[(i - 1) * frames + k - 1];
      steps[(i - 1) * frames + k - 1] = step;
    }
  std::vector<std::size_t> begins(lines);
  for (auto i = lines, k = frames; i > 0 && k > 0;) {
    begins[i - 1] = k - 1;
    auto const step = i == 1 ? Step::frame : k == 1 ? Step::line : steps[(i - 1) * frames + k - 1];
    if (step != Step::frame) --i;
    if (step != Step::line) --k;
  }
  return begins;
}

/// Of a window's text, from its beginning on.
struct TokenTimes {
  std::vector<double> begins{};         ///< seconds; of each token, and of the end
  std::vector<double> probabilities{};  ///< of each token, among texts
};

/// A word being made: times count from the window's beginning.
struct TimedWord {
  std::string text{};
  std::size_t first = 0, tokens = 0;  ///< of the window's text
  double begin = 0, end = 0, probability = 0;
};

/// Whether bytes are whole characters.
inline bool is_whole_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    auto const lead = static_cast<unsigned char>(bytes[i]);
    std::size_t const size = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (size == 0 || i + size > bytes.size()) return false;
    for (std::size_t k = 1; k < size; ++k)
      if ((static_cast<unsigned char>(bytes[i + k]) & 0xC0) != 0x80) return false;
    i += size;
  }
  return true;
}

/// Words as openai/whisper cuts them: at spaces and at signs of ASCII; in languages that write no spaces, at every token that ends with a
/// whole character. No sign is joined to its word yet.
/// \param tokens  their texts
inline std::vector<TimedWord> cut_words(std::span<std::string const> tokens, std::string const& language) {
  static std::set<std::string_view> const unspaced{"zh", "ja", "th", "lo", "my", "yue"};
  auto const spaced = !unspaced.contains(language);
  auto const is_sign = [](std::string_view text) {  // as openai/whisper: "..." is none
    return text.empty() || (text.size() == 1 && std::ispunct(static_cast<unsigned char>(text[0])) != 0);
  };
  std::vector<TimedWord> words;
  TimedWord part;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    part.text += tokens[i], ++part.tokens;
    if (i + 1 < tokens.size() && !is_whole_utf8(part.text)) continue;
    auto const stripped = trimmed(part.text);
    if (words.empty() || !spaced || part.text.starts_with(' ') || is_sign(stripped)) words.push_back(part);
    else words.back().text += part.text, words.back().tokens += part.tokens;
    part = {.first = i + 1};
  }
  return words;
}

/// The usual length of a word, at most 0.7 s: their median without those of none.
inline double usual_length(std::vector<TimedWord> const& words) {
  std::vector<double> lengths;
  for (auto const& word : words)
    if (word.end > word.begin) lengths.push_back(word.end - word.begin);
  if (lengths.empty()) return 0;
  std::sort(lengths.begin(), lengths.end());
  auto const half = lengths.size() / 2;
  auto const median = lengths.size() % 2 == 1 ? lengths[half] : (lengths[half - 1] + lengths[half]) / 2;
  return (std::min)(median, 0.7);
}

/// Attention has nothing to hold to in a pause, and gives it to the full stop or to the word after it: neither is longer than twice the usual.
inline void shorten_at_stops(std::vector<TimedWord>& words, double usual) {
  static std::set<std::string_view> const stops{".", "。", "!", "！", "?", "？"};
  if (usual <= 0) return;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].end - words[i].begin <= 2 * usual) continue;
    if (stops.contains(words[i].text)) words[i].end = words[i].begin + 2 * usual;
    else if (stops.contains(words[i - 1].text)) words[i].begin = words[i].end - 2 * usual;
  }
}

/// Joins what opens to the word that follows, and what closes to the word before. A word's times and probability stay its own.
inline std::vector<TimedWord> join_signs(std::vector<TimedWord> words) {
  static std::set<std::string_view> const opening{"\"", "'", "“", "¿", "(", "[", "{", "-"};
  static std::set<std::string_view> const closing{"\"", "'", ".",  "。", ",", "，", "!", "！", "?",
                                                  "？", ":", "：", "”",  ")", "]",  "}", "、"};
  std::vector<TimedWord> joined;
  TimedWord before;  // what opens, not yet joined
  auto const join = [](TimedWord const& a, TimedWord b) {
    b.text = a.text + b.text, b.first = a.first, b.tokens += a.tokens;
    return b;
  };
  for (auto& word : words) {
    if (word.text.starts_with(' ') && opening.contains(trimmed(word.text))) {
      before = before.tokens > 0 ? join(before, std::move(word)) : std::move(word);
      continue;
    }
    if (before.tokens > 0) word = join(std::exchange(before, {}), std::move(word));
    if (!joined.empty() && !joined.back().text.ends_with(' ') && closing.contains(word.text)) {
      joined.back().text += word.text, joined.back().tokens += word.tokens;
    } else {
      joined.push_back(std::move(word));
    }
  }
  if (before.tokens > 0) joined.push_back(std::move(before));
  return joined;
}

/// The words of a window's segments, with times.
/// \param tokens  the texts of all tokens before `eot` in the segments
/// \param offset  seconds where the window begins
/// \param spoken  where the last word before the window ended; brought up to date
inline void time_words(std::span<Segment> segments, TokenTimes const& found, std::span<std::string const> tokens,
                       sluice::Token eot, std::string const& language, double offset, double& spoken) {
  auto words = cut_words(tokens, language);
  for (auto& word : words) {
    word.begin = found.begins[word.first], word.end = found.begins[word.first + word.tokens];
    for (std::size_t i = 0; i < word.tokens; ++i)
      word.probability += found.probabilities[word.first + i] / static_cast<double>(word.tokens);
  }
  auto const usual = usual_length(words), most = 2 * usual;
  shorten_at_stops(words, usual);
  words = join_signs(std::move(words));
  std::size_t next = 0, end = 0;  // a word, and the tokens of segments so far
  for (auto& segment : segments) {
    for (auto const token : segment.tokens)
      if (token < eot) ++end;
    for (; next < words.size() && words[next].first < end; ++next) {
      auto const& word = words[next];
      segment.words.push_back({word.text, offset + word.begin, offset + word.end, word.probability});
    }
    if (segment.words.empty()) continue;
    // After a pause the first word, or the first two, have been given some of it.
    auto &first = segment.words.front(), &last = segment.words.back();
    auto* const second = segment.words.size() > 1 ? &segment.words[1] : nullptr;
    if (first.end - spoken > 4 * usual &&
        (first.end - first.begin > most || (second != nullptr && second->end - first.begin > 2 * most))) {
      if (second != nullptr && second->end - second->begin > most)
        first.end = second->begin = (std::max)(second->end / 2, second->end - most);
      first.begin = (std::max)(0.0, first.end - most);
    }
    // The segment's own times count where a word is half a second outside, else the words'.
    if (segment.begin < first.end && segment.begin - 0.5 > first.begin)
      first.begin = (std::max)(0.0, (std::min)(first.end - usual, segment.begin));
    else segment.begin = first.begin;
    if (segment.end > last.begin && segment.end + 0.5 < last.end)
      last.end = (std::max)(last.begin + usual, segment.end);
    else segment.end = last.end;
    spoken = segment.end;
  }
}

}  // namespace whisper
