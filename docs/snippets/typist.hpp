// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model with hidden vectors and a state, used by the snippets.
#pragma once

#include <sluice/output/dense_projection.hpp>
#include <sluice/sluice.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// [typist]
/// Types the word that it is given. The hidden vector is the position of the finger, the output layer is the keyboard:
/// nearby keys are likely mistakes.
class Typist {
 public:
  using Source = std::string;  // a word of small letters
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  sluice::Vocabulary vocabulary() const { return {.size = 28, .bos = 0, .eos = {1}, .never = {0}}; }

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) word(slots[i]) = sources[i];
  }

  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        auto const* const parent = word(row.from);
        word(row.to) = parent;
      }
    fingers_.clear();
    for (auto const& row : rows)
      for (auto i = std::ssize(row.tokens) - row.lines; i < std::ssize(row.tokens); ++i) {
        // After the start symbol and n letters, the next is letter n.
        auto const n = static_cast<std::size_t>(row.length + i);
        auto const [x, y] = key(n < word(row.to)->size() ? (*word(row.to))[n] - 'a' + 2 : 1);
        fingers_.insert(fingers_.end(), {x, y});
      }
    return sluice::hidden(fingers_.data(), std::ssize(fingers_) / 2, 2);
  }
  // [/typist]

  /// The position of a token's key. Keys get wider to the right, so that no two mistakes are equally likely.
  struct Key {
    float x, y;
  };
  static Key key(sluice::Token token) {
    if (token == 0) return {-9, -9};  // no key types the start symbol
    if (token == 1) return {12.5f, 1};
    constexpr std::string_view line[] = {"qwertyuiop", "asdfghjkl", "zxcvbnm"};
    constexpr float shift[] = {0, 0.25f, 0.75f};
    for (int y = 0; y < 3; ++y)
      if (auto const n = line[y].find(static_cast<char>('a' + token - 2)); n != std::string_view::npos) {
        auto const x = static_cast<float>(n) + shift[y];
        return {x + 0.02f * x * x, static_cast<float>(y)};
      }
    return {};
  }

  // [layer]
  /// The output layer: logit = -2 |finger - key|^2 plus a term that is the same for all keys.
  static sluice::DenseProjection keyboard() {
    std::vector<float> weights, bias;  // [28, 2] and [28]
    for (sluice::Token token = 0; token < 28; ++token) {
      auto const [x, y] = key(token);
      weights.insert(weights.end(), {4 * x, 4 * y});
      bias.push_back(-2 * (x * x + y * y));
    }
    return sluice::DenseProjection({weights.data(), 28, 2, 2}, bias);
  }
  // [/layer]

  static std::string text(std::span<sluice::Token const> tokens) {
    std::string text;
    for (auto const token : tokens) text += token == 1 ? '.' : token == 0 ? '^' : static_cast<char>('a' + token - 2);
    return text;
  }
  static std::vector<sluice::Token> tokens(std::string_view text) {
    std::vector<sluice::Token> tokens;
    for (auto const c : text) tokens.push_back(c == '.' ? 1 : c == '^' ? 0 : c - 'a' + 2);
    return tokens;
  }

 private:
  Source const*& word(sluice::Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= words_.size()) words_.resize(i + 1);
    return words_[i];
  }

  std::vector<Source const*> words_;  // by slot
  std::vector<float> fingers_;        // [lines, 2]
};
