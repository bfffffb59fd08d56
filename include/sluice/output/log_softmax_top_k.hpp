// SPDX-License-Identifier: Apache-2.0
/// \file
/// LogSoftmaxTopK: the expander for models that give scores.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>

#ifdef SLUICE_COMPILED
#include <sluice/output/detail/compiled_log_softmax_top_k.hpp>
#else
#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/detail/line/line_pass.hpp>
#include <sluice/output/detail/line/line_selection.hpp>
#include <sluice/output/detail/line/load_scores.hpp>
#include <sluice/output/detail/simd/parallel.hpp>
#include <sluice/output/line_lists.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// Bias, log-softmax and top-k in one pass over each line (papers: Hoang et al. 2018, "Fast Neural Machine Translation
/// Implementation"; Milakov and Gimelshein 2018, "Online normalizer calculation for softmax").
///
/// log_prob(v) = x(v) - log sum_w exp x(w). Plain queries (best, probes, edits, temperature) read the line once; the
/// rarer fields of Query read it again. The error of a log-probability is at most 1e-5, even with a quarter of a
/// million scores. A line's answer depends only on that line (except for Group::keep). If the caller compiles with
/// OpenMP, threads share the lines; their number never changes a result. Allocates nothing once it has seen its largest
/// line and its longest lists.
class LogSoftmaxTopK {
 public:
  static constexpr bool takes_shared_edits = true;
  static constexpr bool processes_lines = true;

  LogSoftmaxTopK() = default;
  /// \param bias  added to every line, [V], copied; empty: none
  explicit LogSoftmaxTopK(std::span<float const> bias) : bias_(bias.begin(), bias.end()) {}

  /// \param scores   one line per query, [queries.size(), V]; T is float, a 16-bit float type (of Eigen, the compiler or
  ///                 CUDA), or anything else that converts to float
  /// \param queries  see Query
  /// \param groups   their `lines` add up to queries.size(); may be empty if Group::keep is not used
  /// \throws std::invalid_argument  if there is a bias and its size is not V
  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    require(bias_.empty() || queries.empty() || std::ssize(bias_) == scores.columns, "LogSoftmaxTopK: bias.size()",
            bias_.size(), "must be 0 or the number of columns");
    auto const work = static_cast<std::ptrdiff_t>(queries.size()) * scores.columns;
    auto const parts = detail::parallel_parts(std::ssize(queries), work);
    if (workers_.size() < parts) workers_.resize(parts);
    detail::parallel_for(parts, std::ssize(queries), [&](std::size_t part, std::ptrdiff_t first, std::ptrdiff_t last) {
      auto& worker = workers_[part];
      worker.lists.clear();
      for (auto i = first; i < last; ++i)
        worker.answer(scores[i], bias_, scores.kind, queries[static_cast<std::size_t>(i)]);
    });
    auto& lists = workers_.front().lists;
    for (std::size_t part = 1; part < parts; ++part) lists.append(workers_[part].lists);
    return lists.answer(queries, groups);
  }

 private:
  /// The state of one thread.
  struct Worker {
    template <class T>
    void answer(std::span<T const> line, std::span<float const> bias, Kind kind, Query const& query) {
      if (!detail::LinePass::suffices(query)) {
        if constexpr (std::is_same_v<T, float>)
          if (bias.empty() && !detail::LinePass::changes(query))
            return selection.answer_changed(line, kind, query, lists);
        whole.resize(line.size());
        detail::load_scores(line.data(), bias.empty() ? nullptr : bias.data(), line.size(), whole.data());
        return selection.answer(whole, kind, query, lists);
      }
      pass.begin(query, kind);
      auto const* const added = bias.empty() ? nullptr : bias.data();
      std::size_t first = 0;
      if constexpr (detail::has_vectors<T>) {
        if (!detail::LinePass::changes(query)) first = whole_chunks(line, added);
      }
      while (first < line.size()) {
        auto const count = (std::min)(line.size() - first, buffer.size());
        if constexpr (detail::has_vectors<T>) {
          if (count % detail::LineScan::chunk == 0 && detail::LinePass::only_masks(query, first, count)) {
            masked(line.data() + first, added == nullptr ? nullptr : added + first, first, count, *query.only);
            first += count;
            continue;
          }
        }
        detail::load_scores(line.data() + first, added == nullptr ? nullptr : added + first, count, buffer.data());
        pass.change(std::span(buffer).first(count), first);
        auto const padded = (count + detail::LineScan::chunk - 1) / detail::LineScan::chunk * detail::LineScan::chunk;
        std::fill(buffer.data() + count, buffer.data() + padded, detail::LineScan::lowest);
        pass.add(first, buffer.data(), padded);
        first += count;
      }
      if (pass.overflowed()) {
        whole.resize(line.size());
        detail::load_scores(line.data(), added, line.size(), whole.data());
        return selection.answer(whole, kind, query, lists);
      }
      pass.finish(lists);
    }

    /// Adds whole chunks that need no change; returns where they end.
    template <class T>
    std::size_t whole_chunks(std::span<T const> line, float const* bias) {
      auto const end = line.size() / detail::LineScan::chunk * detail::LineScan::chunk;
      for (std::size_t first = 0; first < end; first += detail::LineScan::block) {
        auto const count = (std::min)(detail::LineScan::block, end - first);
        auto const* const from = line.data() + first;
        if constexpr (std::is_same_v<T, float>) {
          if (bias == nullptr) {
            pass.add(first, from, count);
            continue;
          }
        }
        pass.add(first, buffer.data(), count,
                 [from, added = bias == nullptr ? nullptr : bias + first, to = buffer.data()](std::size_t i) {
                   __builtin_prefetch(from + i + detail::LineScan::ahead);
                   auto x = detail::load_vector(from + i);
                   if (added != nullptr) x += detail::simd::load(added + i);
                   detail::simd::store(to + i, x);
                   return x;
                 });
      }
      return end;
    }

    /// Adds a block of whole chunks; tokens not in `only` are -infinity.
    template <class T>
    void masked(T const* from, float const* bias, std::size_t first, std::size_t count, TokenSet const& only) {
      auto const words = only.words();
      pass.add(first, buffer.data(), count, [=, to = buffer.data()](std::size_t i) {
        __builtin_prefetch(from + i + detail::LineScan::ahead);
        auto x = detail::load_vector(from + i);
        if (bias != nullptr) x += detail::simd::load(bias + i);
        auto const word = (first + i) / 64;
        auto const held = word < words.size() ? words[word] >> (first + i) % 64 : 0;
        x = detail::simd::where(static_cast<std::uint32_t>(held), x, detail::LineScan::lowest);
        detail::simd::store(to + i, x);
        return x;
      });
    }

    detail::LinePass pass;
    detail::LineSelection selection;
    LineLists lists;
    AlignedVector<float> whole;
    AlignedVector<float> buffer = AlignedVector<float>(detail::LineScan::block);
  };

  std::vector<float> bias_;
  detail::Buffer<Worker> workers_ = detail::Buffer<Worker>(1);
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
#endif
