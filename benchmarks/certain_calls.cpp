// SPDX-License-Identifier: Apache-2.0
// The number of model calls for a form: one token after another, and with blocks that verify the tokens that a grammar
// forces. The model's scores are random numbers, with ends of strings more likely than other tokens.
//
//   sluice.bench.certain_calls [tokens] [outputs] [block] [file of a vocabulary: one token a line, in hexadecimal]
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>

#include "grammar_schemas.hpp"
#include "grammar_vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// Scores that depend on the source and on the number of tokens so far.
class Babbler {
 public:
  using Source = int;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  explicit Babbler(std::vector<std::string> const& tokens)
      : size_(static_cast<std::ptrdiff_t>(tokens.size())), table_(tokens.size() + shifts) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> draw(0, 2);
    for (auto& x : table_) x = draw(random);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      auto const& text = tokens[t];
      bias_.push_back(text.starts_with('"') ? 6.0f : text.starts_with(']') || text.starts_with('}') ? 8.0f : 0.0f);
    }
    bias_[0] = 12;
  }
  sluice::Vocabulary vocabulary() const { return {.size = static_cast<std::int32_t>(size_), .bos = 0, .eos = {0}}; }
  void start(std::span<int const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto const slot = static_cast<std::size_t>(slots[i]);
      if (sources_.size() <= slot) sources_.resize(slot + 1);
      sources_[slot] = *sources[i];
    }
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    std::size_t lines = 0;
    for (auto const& row : rows) lines += static_cast<std::size_t>(row.lines);
    scores_.resize(lines * bias_.size());
    auto* to = scores_.data();
    for (auto const& row : rows)
      for (auto i = static_cast<std::int32_t>(row.tokens.size()) - row.lines; i < std::ssize(row.tokens);
           ++i, to += size_) {
        auto const place = static_cast<std::uint64_t>(sources_[static_cast<std::size_t>(row.to)]) * 1000 +
                           static_cast<std::uint64_t>(row.length + i);
        auto const shift = place * 0x9E3779B97F4A7C15u >> 40;
        auto const* const from = table_.data() + shift % shifts;
        for (std::size_t t = 0; t < bias_.size(); ++t) to[t] = from[t] + bias_[t];
      }
    return sluice::scores<float>(scores_.data(), static_cast<std::ptrdiff_t>(lines), size_);
  }

 private:
  static constexpr std::size_t shifts = 9973;
  std::ptrdiff_t size_;
  std::vector<float> table_, bias_, scores_;
  std::vector<int> sources_;
};

struct Counted {
  std::uint64_t calls = 0;
  std::size_t tokens = 0;
  std::vector<std::vector<sluice::Token>> outputs{};
};

template <class S>
Counted count(Babbler& model, S const& search, int outputs) {
  Counted out;
  std::vector<int> sources;
  for (int i = 0; i < outputs; ++i) sources.push_back(i);
  out.calls = sluice::decode_each(
                  model, sources, search,
                  [&](sluice::Result&& result) {
                    if (result.hypotheses.empty()) throw std::runtime_error(result.message);
                    out.tokens += result.hypotheses[0].tokens.size();
                    out.outputs.push_back(result.hypotheses[0].tokens);
                  },
                  sluice::Batched{.size = 1})
                  .model_calls;
  return out;
}

char const* const form = R"({"type":"object","properties":{"document_type":{"const":"application_for_leave"},
  "form_version":{"const":"2026-03"},"employee_number":{"type":"integer","minimum":1,"maximum":99999},
  "first_day":{"type":"string","format":"date"},"last_day":{"type":"string","format":"date"},
  "reason":{"enum":["holiday","illness","parental","unpaid"]},"half_days_only":{"type":"boolean"},
  "replacement_employee_number":{"type":"integer","minimum":1,"maximum":99999},
  "consent_of_supervisor_required":{"const":true}},"required":["document_type","form_version","employee_number","first_day",
  "last_day","reason","half_days_only","replacement_employee_number","consent_of_supervisor_required"],
  "additionalProperties":false})";

}  // namespace

int main(int argc, char** argv) try {
  auto const size = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : std::size_t{32'000};
  auto const outputs = argc > 2 ? std::atoi(argv[2]) : 10;
  auto const block = argc > 3 ? std::atoi(argv[3]) : 16;
  auto const tokens = argc > 4 ? bench::read_tokens(argv[4]) : bench::merged_tokens(size);
  Babbler model(tokens);
  sluice::TokenTrie const trie(sluice::TokenBytes(tokens), model.vocabulary());
  std::printf("| | tokens | calls | any spelling: calls in blocks | longest: tokens | calls | calls in blocks |\n"
              "| --- | --- | --- | --- | --- | --- | --- |\n");
  auto schemas = bench::schemas();
  schemas.emplace_back("application for leave", form);
  for (auto const& [name, schema] : schemas) {
    auto const grammar = sluice::Grammar::from_json_schema(schema, {.order = sluice::JsonOrder::schema});
    sluice::LengthLimits const length{.max = 200};
    std::vector<Counted> all;
    for (auto const certain : {sluice::CertainText::any, sluice::CertainText::longest}) {
      sluice::Structure const structure(grammar, trie, {.certain = certain});
      all.push_back(
          count(model, sluice::Processed<sluice::Greedy>{sluice::Greedy{.length = length}, structure}, outputs));
      all.push_back(count(
          model,
          sluice::Processed<sluice::Blockwise<>>{sluice::Blockwise<>{.block = block, .length = length}, structure},
          outputs));
      if (all[all.size() - 2].outputs != all.back().outputs) throw std::logic_error(name + ": outputs differ");
    }
    auto const each = [&](auto n) { return static_cast<double>(n) / outputs; };
    std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name.c_str(), each(all[0].tokens),
                each(all[0].calls), each(all[1].calls), each(all[2].tokens), each(all[2].calls), each(all[3].calls));
    std::fflush(stdout);
  }
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
