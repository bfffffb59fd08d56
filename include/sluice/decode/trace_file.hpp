// SPDX-License-Identifier: Apache-2.0
/// \file
/// A trace that writes one line of JSON per event. docs/viewer.md describes the lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/trace_json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Writes what a decoder does while it works:
///
///     Decoder decoder(model, search, schedule, LogSoftmaxTopK(), TraceFile(lines, [&](Token t) { return text_of(t); }));
///
/// Works with every search, schedule and wrapper, since it sees rows, queries and answers. Its memory is a number for every
/// slot and a bit for every token that has a text. write_trace_page() makes a page of the lines; TracePage writes one as they
/// come. If lines cannot be written, nothing is thrown: decoding goes on, and the stream's state says so.
class TraceFile {
 public:
  using Texts =
      std::function<std::string(Token)>;  ///< returns the bytes of a token, as TokenBytes does; need not be UTF-8

  /// \param lines  must outlive this
  /// \param texts  is called once for every token that occurs; none: tokens are shown as numbers
  SLUICE_LAZY explicit TraceFile(std::ostream& lines, Texts texts = {}) : lines_(&lines), texts_(std::move(texts)) {
    line_.open('{').key("sluice_trace").number(1).close('}');
    write();
  }

  /// Describes a sentence to the reader, e.g. by its text. To be called at any time after it has been submitted.
  /// \param source  what lies at each position that the model attaches attention to, as texts; none: they are numbered
  SLUICE_LAZY void describe(std::uint64_t id, std::string_view about, std::span<std::string const> source = {}) {
    line_.open('{').key("sentence").number(id).key("about").string(about);
    if (!source.empty()) {
      line_.key("source").open('[');
      for (auto const& text : source) line_.string(text);
      line_.close(']');
    }
    line_.close('}');
    write();
  }

  /// \name What the decoder calls, see NoTrace
  /// @{
  static bool wants_entropy() { return true; }
  SLUICE_LAZY void began(std::uint64_t, Sentence const& sentence) {
    prompt_.assign(sentence.prompt.begin(), sentence.prompt.end());
    prefix_.assign(sentence.prefix.begin(), sentence.prefix.end());
    source_length_ = sentence.source_length;
    if (sentence.vocabulary != nullptr && !eos_told_) {
      line_.open('{').key("eos").numbers(sentence.vocabulary->eos).close('}');
      write();
      eos_told_ = true;
    }
  }

  SLUICE_LAZY void admitted(std::uint64_t id, Slot base, std::int32_t slot_count) {
    tell(prompt_), tell(prefix_);
    auto const end = static_cast<std::size_t>(base) + static_cast<std::size_t>(slot_count);
    if (ids_.size() < end) ids_.resize(end);
    std::fill(ids_.begin() + base, ids_.begin() + static_cast<std::ptrdiff_t>(end), id);
    line_.open('{').key("admit").number(id).key("step").number(step_).key("base").number(base);
    line_.key("slots").number(slot_count).key("prompt").numbers(prompt_);
    if (!prefix_.empty()) line_.key("prefix").numbers(prefix_);
    if (source_length_ >= 0) line_.key("source_length").number(source_length_);
    line_.close('}');
    write();
  }

  SLUICE_LAZY void planned(StepPlan const& step) {
    for (auto const& row : step.rows) tell(row.tokens);
    line_.open('{').key("step").number(step_++).key("rows").open('[');
    for (auto const& row : step.rows) {
      auto const to = static_cast<std::size_t>(row.to);
      line_.open('[').number(to < ids_.size() ? ids_[to] : 0).number(row.from).number(row.to).number(row.length);
      line_.numbers(row.tokens);
      if (row.lines != 1 || row.depths != nullptr) line_.number(row.lines);
      if (row.depths != nullptr) line_.numbers(std::span(row.depths, row.tokens.size()));
      line_.close(']');
    }
    line_.close(']');
    if (!step.released.empty()) line_.key("release").numbers(step.released);
    line_.close('}');
    write();
  }

  SLUICE_LAZY void answered(StepPlan const& step, Expansion const& answer) {
    for (std::size_t i = 0; i < answer.size(); ++i) {
      for (auto const& candidate : answer[i].best) tell({&candidate.token, 1});
      tell(step.queries[i].probes);
    }
    line_.open('{').key("answer").number(step_ - 1).key("lines").open('[');
    for (std::size_t i = 0; i < answer.size(); ++i) add(step.queries[i], answer[i]);
    line_.close(']').close('}');
    write();
  }

  SLUICE_LAZY void ended(Result const& result) {
    for (auto const& hypothesis : result.hypotheses) tell(hypothesis.tokens);
    line_.open('{').key("end").number(result.id).key("step").number(step_);
    if (!result.ok()) line_.key("failure").string(name(result.failure)).key("message").string(result.message);
    line_.key("hypotheses").open('[');
    for (auto const& hypothesis : result.hypotheses) add(hypothesis);
    line_.close(']').close('}');
    write();
  }
  /// @}

 private:
  SLUICE_LAZY void add(Query const& query, Line const& line) {
    line_.open('{');
    if (!line.best.empty()) {
      line_.key("best").open('[');
      for (auto const& [token, log_prob] : line.best) line_.number(token).number(log_prob + query.shift);
      line_.close(']');
    }
    if (!line.probes.empty()) {
      line_.key("probes").open('[');
      for (std::size_t i = 0; i < line.probes.size(); ++i)
        line_.number(query.probes[i]).number(line.probes[i] + query.shift);
      line_.close(']');
    }
    add_boosts(query, line);
    if (query.rank != 0) line_.key("rank").number(query.rank);
    if (query.label >= 0) line_.key("label").number(query.label);
    if (query.noise != 0) line_.key("noise").boolean(true);
    if (!query.normalise) line_.key("plain").boolean(true);
    if (query.entropy) line_.key("entropy").number(line.entropy);
    if (!line.valid) line_.key("invalid").boolean(true);
    if (line.impossible) line_.key("impossible").boolean(true);
    line_.close('}');
  }

  /// What rules added to the log-probabilities of listed tokens.
  SLUICE_LAZY void add_boosts(Query const& query, Line const& line) {
    if (query.stage != Stage::after_softmax) return;
    auto any = false;
    auto const add = [&](Token token) {
      auto sum = query.shift;
      auto const named = [&](Edit const& edit) { return edit.token == token; };
      if (query.shared != nullptr && std::none_of(query.edits.begin(), query.edits.end(), named))
        sum += (*query.shared)[token];
      for (auto const& edit : query.edits)
        if (edit.token == token && edit.add > -std::numeric_limits<float>::infinity()) sum += edit.add;
      if (sum == 0) return;
      if (!std::exchange(any, true)) line_.key("boosts").open('[');
      line_.number(token).number(sum);
    };
    for (auto const& candidate : line.best) add(candidate.token);
    for (auto const token : query.probes) add(token);
    if (any) line_.close(']');
  }

  SLUICE_LAZY void add(Hypothesis const& h) {
    line_.open('{').key("tokens").numbers(h.tokens).key("log_probs").numbers(h.log_probs);
    line_.key("log_prob").number(h.log_prob).key("score").number(h.score).key("finished").boolean(h.finished);
    if (h.constraints_total > 0)
      line_.key("constraints_met").number(h.constraints_met).key("constraints_total").number(h.constraints_total);
    if (!h.blocks.empty()) line_.key("blocks").numbers(h.blocks);
    if (h.stop >= 0) line_.key("stop").number(h.stop);
    if (!h.attached.empty()) {
      line_.key("attached").open('[');
      for (auto const& numbers : h.attached) line_.numbers(numbers);
      line_.close(']');
    }
    line_.close('}');
  }

  /// Writes the texts of tokens that occur for the first time.
  SLUICE_LAZY void tell(std::span<Token const> tokens) {
    if (!texts_) return;
    for (auto const token : tokens) {
      if (token < 0) continue;
      auto const at = static_cast<std::size_t>(token);
      if (told_.size() <= at) told_.resize(at + 1);
      if (told_[at]) continue;
      told_[at] = true;
      auto const text = text_of(token);
      line_.open('{').key("token").number(token);
      if (detail::is_utf8(text)) {
        line_.key("text").string(text);
      } else {
        line_.key("bytes").open('[');
        for (auto const c : text) line_.number(static_cast<int>(static_cast<unsigned char>(c)));
        line_.close(']');
      }
      line_.close('}');
      write();
    }
  }

  SLUICE_LAZY std::string text_of(Token token) const {
    try {
      return texts_(token);
    } catch (...) {  // must not end the decoding
      return {};
    }
  }

  SLUICE_LAZY void write() { *lines_ << line_.finish(); }

  std::ostream* lines_;
  Texts texts_;
  detail::JsonLine line_;
  std::vector<std::uint64_t> ids_;  // [slots]: the sentence that has, or last had, the slot
  std::vector<bool> told_;          // [tokens]: whether its text has been written
  std::vector<Token> prompt_, prefix_;
  std::int32_t source_length_ = -1;
  std::uint64_t step_ = 0;
  bool eos_told_ = false;
};

}  // namespace sluice::inline v0
