// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/how-it-works.md: the loop by hand, for one request, and one step of it printed.
#include <sluice/core/plan.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace {

using sluice::Slot, sluice::Token;

constexpr std::array words{".", "the", "a", "cat", "dog", "sat"};  // a full stop begins and ends a sentence

std::string text(std::span<Token const> tokens) {
  std::string all;
  for (auto const token : tokens)
    all += (all.empty() ? "" : " ") + std::string(words.at(static_cast<std::size_t>(token)));
  return all;
}

/// A language model of six words. It looks at the last word only, but keeps all tokens of every slot, as a KV cache does.
class SixWords {
 public:
  using Source = std::monostate;  // no input: it just generates text
  std::array<std::vector<Token>, 2> slots;

  sluice::Vocabulary vocabulary() const { return {.size = 6, .bos = 0, .eos = {0}}; }
  void start(std::span<Source const* const>, std::span<Slot const> started) {
    for (auto const slot : started) tokens(slot).clear();
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) tokens(row.to) = tokens(row.from);  // a fork: copy the state
    logits_.clear();
    for (auto const& row : rows) {
      tokens(row.to).push_back(row.tokens[0]);
      auto const& line = table.at(static_cast<std::size_t>(row.tokens[0]));
      logits_.insert(logits_.end(), line.begin(), line.end());
    }
    return sluice::scores(logits_.data(), std::ssize(rows), 6);
  }

 private:
  std::vector<Token>& tokens(Slot slot) { return slots.at(static_cast<std::size_t>(slot)); }
  std::vector<float> logits_;
  static constexpr std::array<std::array<float, 6>, 6> table{{
      // .   the    a  cat  dog  sat
      {{-2, 3, 2, 0, 0, -2}},       // after .
      {{-1, -2, -2, 3, 2.6f, -1}},  // after the
      {{-1, -2, -2, 3, 2, -1}},     // after a
      {{1, -2, -2, -1, -1, 3}},     // after cat
      {{3, -2, -2, -1, -1, 2.5f}},  // after dog
      {{4, -2, -2, -1, -1, -2}},    // after sat
  }};
};

void print_slots(char const* when, SixWords const& model) {
  std::printf("slots %s the step\n", when);
  for (std::size_t slot = 0; slot < model.slots.size(); ++slot)
    std::printf("  %zu: %s\n", slot, text(model.slots[slot]).c_str());
}

void print_rows(char const* title, sluice::StepPlan const& plan) {
  std::printf("%s\n", title);
  for (auto const& row : plan.rows)
    std::printf("  slot %d -> %d, after its first %d tokens, feed: %s\n", row.from, row.to, row.length,
                text(row.tokens).c_str());
}

void print_queries(sluice::StepPlan const& plan) {
  std::printf("queries; of all candidates the best %d matter\n", plan.groups[0].keep);
  for (std::size_t i = 0; i < plan.queries.size(); ++i)
    std::printf("  line %zu: the %d best; log_prob so far %.2f\n", i, plan.queries[i].best, plan.queries[i].base);
}

void print_scores(sluice::Scores<float> const& scores) {
  std::printf("scores of the model\n         ");
  for (auto const* word : words) std::printf("%6s", word);
  for (std::ptrdiff_t i = 0; i < scores.rows; ++i) {
    std::printf("\n  line %td:", i);
    for (auto const score : scores[i]) std::printf("%6.1f", static_cast<double>(score));
  }
  std::printf("\n");
}

void print_lists(sluice::Expansion const& lists) {
  std::printf("lists of the output layer\n");
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::printf("  line %zu:", i);
    for (auto const [token, log_prob] : lists[i].best)
      std::printf("  %s %.2f", words.at(static_cast<std::size_t>(token)), static_cast<double>(log_prob));
    std::printf("\n");
  }
}

/// What a beam search makes of the lists: every candidate is its hypothesis and a token, best sum first.
void print_candidates(SixWords const& model, sluice::StepPlan const& plan, sluice::Expansion const& lists) {
  struct Candidate {
    double sum, base, log_prob;
    std::string text;
  };
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (auto const [token, log_prob] : lists[i].best) {
      auto tokens = model.slots.at(static_cast<std::size_t>(plan.rows[i].to));
      tokens.push_back(token);
      auto const gain = static_cast<double>(log_prob);
      all.push_back({plan.queries[i].base + gain, plan.queries[i].base, gain, text(tokens)});
    }
  std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.sum > b.sum; });
  std::printf("candidates, best first\n");
  for (auto const& one : all)
    std::printf("  %.2f = %.2f - %.2f  %s\n", one.sum, one.base, -one.log_prob, one.text.c_str());
}

void print_result(char const* from, sluice::Result const& result) {
  std::printf("%s:\n", from);
  for (auto const& hypothesis : result.hypotheses)
    std::printf("  %.2f  %s\n", hypothesis.log_prob, text(hypothesis.tokens).c_str());
}

}  // namespace

int main() {
  SixWords model;
  sluice::BeamSearch const search{.width = 2, .n_best = 2};
  auto const print_plan = [&](int number, sluice::StepPlan const& step) {
    if (number == 3) print_slots("before", model), print_rows("rows", step), print_queries(step);
    if (number == 4) print_rows("rows of the next step", step);
  };
  auto const print_answer = [&](int number, sluice::StepPlan const& step, sluice::Scores<float> const& scores,
                                sluice::Expansion const& lists) {
    if (number != 3) return;
    print_slots("after", model), print_scores(scores), print_lists(lists), print_candidates(model, step, lists);
  };

  // [start]
  auto const vocabulary = model.vocabulary();
  std::array<Token, 1> const prompt{vocabulary.bos};
  std::monostate const source;
  model.start(std::array{&source}, std::array{Slot{0}});

  sluice::BeamSearch::State state;  // one for each request
  search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt, .last = prompt.back()});
  // [/start]

  // [loop]
  sluice::LogSoftmaxTopK output_layer;
  sluice::StepPlan step;  // rows and queries of all requests that take part
  auto over = false;
  for (auto number = 1; !over; ++number) {
    step.clear();
    sluice::Plan plan(step, 0);  // our slots begin at 0; a decoder lets other requests plan into the same step
    search.plan(state, plan);
    print_plan(number, step);

    auto const scores = model.step(step.rows);  // one call for all rows
    auto const lists = output_layer.expand(scores, step.queries, step.groups);
    print_answer(number, step, scores, lists);

    over = search.advance(state, lists);
  }
  sluice::Result result;
  search.finish(state, result);
  // [/loop]
  print_result("result", result);

  auto const expected = sluice::decode(model, std::vector{source}, search).front();
  return std::ranges::equal(result.hypotheses, expected.hypotheses, {}, &sluice::Hypothesis::tokens,
                            &sluice::Hypothesis::tokens)
             ? 0
             : 1;
}
