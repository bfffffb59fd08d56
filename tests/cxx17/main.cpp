// SPDX-License-Identifier: Apache-2.0
// C++17: a model that spells its source, and a check that it comes out.
#include "translator.hpp"

#include <cstdio>
#include <map>

static_assert(__cplusplus < 202002L, "this file is here to prove that C++17 code can use sluice");

namespace {

class Speller : public app::Model {
 public:
  int vocabulary_size() const override { return 28; }
  int end_token() const override { return 1; }
  void begin(int state, std::string const& source) override { states_[state] = {source, 0}; }
  void copy(int from, int to) override { states_[to] = states_[from]; }
  std::vector<float> next(int state, int) override {
    auto& s = states_[state];
    std::vector<float> logits(28, 1.0f);
    logits[1] = -3.0f;  // it hardly ever ends too early
    logits[s.at < s.source.size() ? static_cast<std::size_t>(s.source[s.at] - 'a' + 2) : 1] = 5.0f;
    ++s.at;
    return logits;
  }

 private:
  struct State {
    std::string source;
    std::size_t at;
  };
  std::map<int, State> states_;
};

}  // namespace

int main() {
  Speller model;
  std::vector<std::string> const words{"sluice", "beam", "a"};
  auto const out = app::translate(model, words, 3);
  int wrong = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string text;
    for (auto const token : out[i].tokens) text += token == 1 ? '.' : static_cast<char>('a' + token - 2);
    std::printf("%s -> %s (%.3f)\n", words[i].c_str(), text.c_str(), out[i].score);
    wrong += text != words[i] + ".";
  }
  return wrong;
}
