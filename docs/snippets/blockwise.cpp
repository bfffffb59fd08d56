// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/blockwise.md.
#include <sluice/sluice.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using sluice::Token;

/// Restores capitals: tokens are letters; the output is the source with a capital after every full stop.
class Capitals {
 public:
  using Source = std::vector<Token>;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  static constexpr Token end = 1;

  static sluice::Vocabulary vocabulary() { return {.size = 128, .bos = 0, .eos = {end}, .never = {0}}; }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) source(slots[i]) = *sources[i];
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    ++calls;
    answer_.clear();
    for (auto const& row : rows)  // besides tokens, a slot holds only its source
      if (auto const from = source(row.from); row.from != row.to) source(row.to) = from;
    for (auto const& row : rows)
      for (auto line = row.tokens.size() - static_cast<std::size_t>(row.lines); line < row.tokens.size(); ++line) {
        auto const at = static_cast<std::size_t>(row.length) + line;  // tokens of the output so far, without bos
        answer_.resize(answer_.size() + 128, 0.0f);
        answer_[answer_.size() - 128 + static_cast<std::size_t>(next(source(row.to), at))] = 9;
      }
    return sluice::scores(answer_.data(), std::ssize(answer_) / 128, 128);
  }

  std::size_t calls = 0;

 private:
  static Token next(Source const& source, std::size_t at) {
    if (at >= source.size()) return end;
    auto const capital = at == 0 || (at > 1 && source[at - 2] == '.');
    return capital ? std::toupper(source[at]) : source[at];
  }
  Source& source(sluice::Slot slot) {
    if (static_cast<std::size_t>(slot) >= sources_.size()) sources_.resize(static_cast<std::size_t>(slot) + 1);
    return sources_[static_cast<std::size_t>(slot)];
  }
  std::vector<Source> sources_;
  std::vector<float> answer_;
};

std::vector<Token> letters(std::string const& text) { return {text.begin(), text.end()}; }
std::string text(std::vector<Token> const& tokens) {
  std::string text;
  for (auto const token : tokens)
    if (token != Capitals::end) text += static_cast<char>(token);
  return text;
}

std::string only;  // the snippet to show; empty: all

void lookup() {
  Capitals model;
  std::vector const sources{letters("guesses come from the source. they are nearly always right. nearly."),
                            letters("short ones too.")};
  auto const greedy = sluice::decode(model, sources, sluice::Greedy{});
  auto const greedy_calls = std::exchange(model.calls, 0);
  // [lookup]
  sluice::Speculated guessing(model, sluice::PromptLookup());  // the model, with guesses by look-up
  sluice::Blockwise<> const search{.block = 8};
  auto const results = sluice::decode(guessing, sources, search);
  // [/lookup]
  if (!only.empty() && only != "lookup") return;
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& h = results[i].hypotheses.at(0);
    std::cout << text(h.tokens) << (h.tokens == greedy[i].hypotheses.at(0).tokens ? " as greedy;" : " not greedy;");
    for (auto const block : h.blocks) std::cout << ' ' << block;
    std::cout << '\n';
  }
  std::cout << greedy_calls << " calls greedily, " << model.calls << " in blocks\n";
}

void remember() {
  Capitals model;
  std::vector const sources{letters("dear sir, thank you for your letter of may 3. yours."),
                            letters("dear madam, thank you for your letter of june 21. yours.")};
  // [remember]
  sluice::SuffixCache cache;  // shared by any number of models and threads
  sluice::Speculated guessing(
      model, sluice::SuffixDecoding(cache, {.own = false}));  // the model, with guesses from earlier outputs
  sluice::Blockwise<> const search{.block = 8};
  auto const first = sluice::decode(guessing, std::span(sources).first(1), search);
  auto const second = sluice::decode(guessing, std::span(sources).last(1), search);  // much of it has been said before
  // [/remember]
  if (!only.empty() && only != "remember") return;
  for (auto const& results : {first, second}) {
    auto const& h = results[0].hypotheses.at(0);
    std::cout << text(h.tokens) << ' ' << h.tokens.size() << " tokens in " << h.blocks.size() << " rounds\n";
  }
}

void trees() {
  Capitals model;
  std::vector<std::vector<Token>> const sources(
      1, letters("a red hat, a red cap, a red hat, a red coat, a blue hat, a blue coat, a red cap, a blue hat."));
  sluice::Speculated guessing(model, sluice::PromptLookup({.source = false}));  // guesses from the output only
  auto const chain = sluice::decode(guessing, sources, sluice::Blockwise<>{.block = 6});
  auto const chain_calls = std::exchange(model.calls, 0);
  // [trees]
  sluice::Blockwise<> const search{.block = 6, .branches = 4, .nodes = 12};  // at most 4 paths and 12 guesses
  auto const results = sluice::decode(guessing, sources, search);
  // [/trees]
  if (!only.empty() && only != "trees") return;
  std::cout << text(results[0].hypotheses.at(0).tokens)
            << (results[0].hypotheses[0].tokens == chain[0].hypotheses.at(0).tokens ? "\nthe same; " : "\nanother; ")
            << chain_calls << " calls with chains, " << model.calls << " with trees\n";
}

// [own]
/// A proposer of your own: behind a blank it guesses "the".
class The {
 public:
  void propose(std::span<sluice::Draft const> drafts, sluice::SlotTexts const& texts) {
    for (auto const& draft : drafts) {  // one for each sentence of the step that wants guesses
      text_.clear();
      texts.append(draft, text_);         // the prompt, and what has been chosen so far
      if (text_.back() != ' ') continue;  // no guess: the next proposer is asked
      for (auto const letter : {'t', 'h', 'e', ' '})
        if (std::ssize(*draft.tokens) < draft.count) draft.tokens->push_back(letter);
    }
  }

 private:
  std::vector<Token> text_;
};
// [/own]

void own() {
  Capitals model;
  sluice::Speculated guessing(model, The(), sluice::PromptLookup());
  std::vector<std::vector<Token>> const sources(1, letters("in the house, on the roof, by the sea."));
  auto const results = sluice::decode(guessing, sources, sluice::Blockwise<>{.block = 5});
  if (!only.empty() && only != "own") return;
  std::cout << text(results[0].hypotheses.at(0).tokens) << ' ' << model.calls << " calls\n";
}

}  // namespace

/// blockwise [WHAT]
int main(int argc, char** argv) {
  if (argc > 1) only = argv[1];
  lookup(), remember(), trees(), own();
  return 0;
}
