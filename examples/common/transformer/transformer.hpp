// SPDX-License-Identifier: Apache-2.0
/// \file
/// An encoder-decoder Transformer as a sluice Model.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/paged_cache.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <transformer/attention.hpp>
#include <transformer/weights.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace sluice::example {
inline namespace SLUICE_ISA {

/// Numbers that are written before they are read: resize() leaves new ones as they are.
class Buffer {
 public:
  /// At least so many numbers; what there was is lost where they are more than ever before.
  float* resize(std::ptrdiff_t size) {
    if (size > size_) {
      numbers_.reset();
      numbers_.reset(AlignedVector<float>::allocator_type().allocate(static_cast<std::size_t>(size)));
      size_ = size;
    }
    return numbers_.get();
  }
  float const* data() const { return numbers_.get(); }
  float* data() { return numbers_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { AlignedVector<float>::allocator_type().deallocate(p, 0); }
  };
  std::unique_ptr<float, Free> numbers_;
  std::ptrdiff_t size_ = 0;
};

/// Options of a Transformer.
struct TransformerOptions {
  std::int32_t length = 512;   ///< most tokens of a source, or in a slot
  std::int32_t max_pages = 0;  ///< of the cache, KeysValues::page positions each; 0 = as many as there is memory for
  /// of the decoder, whose attention to the source is attached to every line, the mean of its heads; -1: of none
  std::int32_t attached_layer = -1;
  /// bytes of the cache that are kept when no slot has a position
  std::size_t kept_bytes = (std::numeric_limits<std::size_t>::max)();
};

/// Pre-norm, ReLU, sinusoidal positions. A hidden vector depends only on its slot's source and tokens, bit for bit:
/// not on the other rows, nor on whether the tokens were fed one by one or in a block.
///
/// Weights are shared: several instances (one per thread) take one copy. No step allocates once its buffers have grown.
class Transformer {
 public:
  using Source = std::vector<Token>;  ///< pieces; the model adds Weights::end
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

  /// The source as the decoder sees it: pages laid out as those of the cache.
  struct Memory {
    std::int32_t length = 0;
    Buffer numbers;
  };
  /// A batch of encoded sources.
  struct Encoded {
    std::vector<std::shared_ptr<Memory const>> sources;
  };

  explicit Transformer(std::shared_ptr<Weights const> weights, TransformerOptions const& options = {})
      : weights_(std::move(weights)),
        options_(options),
        cache_({.elements_per_position = static_cast<std::size_t>(width()),
                .positions_per_page = KeysValues::page,
                .max_pages = options.max_pages}) {
    require(options.length > 0, "Transformer: length", options.length, "must be > 0");
    require(options.attached_layer >= -1 && options.attached_layer < std::ssize(weights_->decoder),
            "Transformer: attached_layer", options.attached_layer, "must be a layer of the decoder, or -1");
    fill_positions();
  }

  Vocabulary const& vocabulary() const { return weights_->vocabulary; }
  Limits limits() const { return {.length = options_.length}; }
  Weights const& weights() const { return *weights_; }
  PagedCacheUse const& cache_use() const { return cache_.use(); }

  /// Encodes sources, all rows in one product, without padding. Touches no slot; may run in another thread than step.
  /// \throws std::invalid_argument  for a token outside the vocabulary or a source that is too long
  Encoded encode(std::span<Source const* const> sources) const;

  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto& slot = at(slots[i]);
      cache_.release(slots[i]);
      slot = encoded.sources.at(static_cast<std::size_t>(items[i]));
    }
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    auto encoded = encode(sources);
    std::vector<std::int32_t> items(sources.size());
    std::iota(items.begin(), items.end(), 0);
    start(encoded, items, slots);
  }
  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) {
      at(slot).reset();
      cache_.release(slot);
    }
    if (cache_.use().pages == 0 && cache_.use().bytes > options_.kept_bytes) cache_.trim();
  }

  /// Runs the rows; the answer is the vector after the final norm.
  /// \throws std::invalid_argument  for a row that breaks the contract
  /// \throws std::length_error      if the cache's pages do not suffice
  Hidden<float> step(std::span<Row const> rows);

  /// Attention to the tokens of the source and its end, one line for each of the step's; see
  /// TransformerOptions::attached_layer.
  Attachments attachments() const {
    if (options_.attached_layer < 0 || widths_.empty()) return {};
    return {{attached_to_.data(), std::ssize(widths_), widest_, widest_}, widths_};
  }

 private:
  /// A row's part of a step.
  struct Part {
    std::int32_t first = 0;              // of its tokens among all
    std::int32_t length = 0;             // positions before them
    std::size_t pages = 0, sources = 0;  // where its pages, and those of its source, begin in pages_
    std::int32_t source_length = 0;
    std::size_t paths = 0;  // where those of its tokens begin in paths_, if they branch
  };

  /// Numbers per position of the cache. A page holds, for each layer, its keys [d], then its values [d].
  std::ptrdiff_t width() const { return std::ssize(weights_->decoder) * 2 * weights_->d; }
  KeysValues memory(std::size_t first_page, std::ptrdiff_t layer) const {
    auto const d = weights_->d;
    return {std::span(pages_).subspan(first_page), layer * 2 * KeysValues::page * d, d, KeysValues::page * d};
  }
  void copy_page(std::span<float const> from, std::span<float> to, std::int32_t filled) const;
  void write(float const* keys_values, float* page, std::int32_t position, std::ptrdiff_t layer) const;
  std::shared_ptr<Memory const>& at(Slot slot) {
    require(slot >= 0, "Transformer: slot", slot, "must be >= 0");
    auto const i = static_cast<std::size_t>(slot);
    if (i >= sources_.size()) sources_.resize(i + 1);
    return sources_[i];
  }
  /// `buffer` as [rows, columns], made larger where it is too small.
  static MatrixView<float> view(Buffer& buffer, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    return {buffer.resize(rows * columns), rows, columns, columns};
  }
  /// The same for rows that are written a few columns at a time: not whole pages (4 KB) apart, where they would push each
  /// other out of the nearest cache.
  static MatrixView<float> spread_view(Buffer& buffer, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    auto const stride = columns % 1024 == 0 ? columns + 16 : columns;
    return {buffer.resize(rows * stride), rows, columns, stride};
  }
  static MatrixView<float const> read(MatrixView<float> m) { return {m.data, m.rows, m.columns, m.stride}; }

  void fill_positions();
  void embed(Token token, std::int32_t position, float* to) const;
  static void normalise(Norm const& norm, MatrixView<float> x, MatrixView<float> to) {
    for (std::ptrdiff_t i = 0; i < x.rows; ++i)
      layer_norm(x.data + i * x.stride, norm.weight, norm.bias, to.data + i * to.stride);
  }
  /// y = the layer's product with x, which `rows` is for.
  static void apply(PackedMatrix const& layer, MatrixView<float> x, MatrixView<float> y, PackedRows& rows,
                    Epilogue epilogue = {}) {
    rows.assign(read(x), layer.precision());
    layer.multiply(rows, y, epilogue);
  }
  void prepare(std::span<Row const> rows);
  void prepare_attached(std::span<Row const> rows);
  std::size_t prepare_paths(Row const& row, std::span<float const* const> pages);
  void attend_paths(Row const& row, Part const& part, std::ptrdiff_t layer, MatrixView<float> queries, float* scores,
                    MatrixView<float> out) const;

  std::shared_ptr<Weights const> weights_;
  TransformerOptions options_;
  std::vector<float> positions_;  // [length, d]
  PagedCache<float> cache_;
  std::vector<std::shared_ptr<Memory const>> sources_;  // by slot

  // Of the step: reused, so that nothing is allocated.
  std::vector<Part> parts_;
  std::vector<PagedCache<float>::Place> places_;  // by token
  std::vector<float const*> pages_;
  std::vector<float const*> paths_, path_;  // of tokens that branch: where each position lies
  Buffer x_, normed_, qkv_, attended_, inner_, scores_, answer_, attached_to_;
  std::vector<std::int32_t> widths_;  // of what is attached, [lines]
  std::ptrdiff_t widest_ = 0;
  PackedRows rows_;
};

inline void Transformer::fill_positions() {
  auto const d = weights_->d;
  positions_.resize(static_cast<std::size_t>(options_.length * d));
  for (std::int32_t p = 0; p < options_.length; ++p)
    for (std::ptrdiff_t i = 0; i < d; ++i) {
      auto const exponent = static_cast<float>(i - i % 2) / static_cast<float>(d);
      auto const angle = static_cast<float>(p) / std::pow(10000.0f, exponent);
      positions_[static_cast<std::size_t>(p * d + i)] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
}

inline void Transformer::embed(Token token, std::int32_t position, float* to) const {
  auto const d = weights_->d;
  require(token >= 0 && token < weights_->vocabulary.size, "Transformer: token", token, "must be in [0, V)");
  auto const* const vector = weights_->embedding.data() + token * d;
  auto const* const shift = positions_.data() + position * d;
  auto const scale = std::sqrt(static_cast<float>(d));
  for (std::ptrdiff_t i = 0; i < d; ++i) to[i] = vector[i] * scale + shift[i];
}

/// Copies the first `filled` positions of a page.
inline void Transformer::copy_page(std::span<float const> from, std::span<float> to, std::int32_t filled) const {
  auto const part = static_cast<std::size_t>(KeysValues::page * weights_->d);  // the keys, or the values, of a layer
  for (std::size_t i = 0; i < from.size(); i += part) std::copy_n(from.data() + i, filled * weights_->d, to.data() + i);
}

/// Writes the key and the value of one position and layer, [2, d], where they belong.
inline void Transformer::write(float const* keys_values, float* page, std::int32_t position,
                               std::ptrdiff_t layer) const {
  auto const d = weights_->d;
  for (std::ptrdiff_t i = 0; i < 2; ++i)
    std::copy_n(keys_values + i * d, d, page + (layer * 2 + i) * KeysValues::page * d + position * d);
}

inline Transformer::Encoded Transformer::encode(std::span<Source const* const> sources) const {
  auto const& w = *weights_;
  std::vector<std::ptrdiff_t> begin{0};
  for (auto const* const source : sources) {
    require(std::ssize(*source) < options_.length, "Transformer: source.size() + 1", source->size() + 1,
            "must not exceed the length limit");
    begin.push_back(begin.back() + std::ssize(*source) + 1);
  }
  auto const total = begin.back();
  // Kept for the thread's next call: to ask the system for megabytes costs as much as to fill them.
  static thread_local Buffer x_memory, normed_memory, qkv_memory, inner_memory, scores;
  static thread_local PackedRows rows;
  auto const x = view(x_memory, total, w.d);
  auto const normed = view(normed_memory, total, w.d);
  auto const qkv = view(qkv_memory, total, 3 * w.d);
  auto const inner = spread_view(inner_memory, total, w.ff);
  view(scores, 1, attention_scratch(w.heads, options_.length));
  for (std::size_t s = 0; s < sources.size(); ++s) {
    auto* to = x.data + begin[s] * w.d;
    std::int32_t position = 0;
    for (auto const token : *sources[s]) embed(token, position++, to), to += w.d;
    embed(w.end(), position, to);
  }
  std::vector<float const*> pages;
  for (auto const& layer : w.encoder) {
    normalise(layer.n1, x, normed);
    apply(layer.qkv, normed, qkv, rows);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      pages.clear();
      for (auto i = begin[s]; i < begin[s + 1]; i += KeysValues::page) pages.push_back(qkv.data + i * qkv.stride);
      for (auto i = begin[s]; i < begin[s + 1]; ++i)
        attend(qkv.data + i * qkv.stride, w.d, w.heads, {pages, w.d, qkv.stride, w.d},
               static_cast<std::int32_t>(begin[s + 1] - begin[s]), scores.data(), normed.data + i * w.d);
    }
    apply(layer.o, normed, x, rows, {.add = true});
    normalise(layer.nf, x, normed);
    apply(layer.fi, normed, inner, rows, {.relu = true});
    apply(layer.fo, inner, x, rows, {.add = true});
  }
  normalise(w.en, x, normed);
  auto const keys_values = view(qkv_memory, total, width());
  apply(w.source, normed, keys_values, rows);
  Encoded encoded;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    auto result = std::make_shared<Memory>();
    result->length = static_cast<std::int32_t>(begin[s + 1] - begin[s]);
    result->numbers.resize((result->length + KeysValues::page - 1) / KeysValues::page * KeysValues::page * width());
    for (std::int32_t p = 0; p < result->length; ++p)
      for (std::ptrdiff_t l = 0; l < std::ssize(w.decoder); ++l)
        write(keys_values.data + (begin[s] + p) * width() + l * 2 * w.d,
              result->numbers.data() + p / KeysValues::page * KeysValues::page * width(), p % KeysValues::page, l);
    encoded.sources.push_back(std::move(result));
  }
  return encoded;
}

/// Forks, rolls back, appends; writes the embeddings to x_ and the plan of the step to parts_, places_ and pages_.
inline void Transformer::prepare(std::span<Row const> rows) {
  auto const d = weights_->d;
  for (auto const& row : rows) {
    require(at(row.from) != nullptr, "Transformer: row.from", row.from, "must be a slot that was started");
    require(row.length >= 0 && row.length <= cache_.length(row.from), "Transformer: row.length", row.length,
            "must be in [0, tokens that row.from holds]");
    require(!row.tokens.empty(), "Transformer: row.tokens.size()", row.tokens.size(), "must be > 0");
    require(row.lines >= 1 && row.lines <= std::ssize(row.tokens), "Transformer: row.lines", row.lines,
            "must be in [1, row.tokens.size()]");
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      auto const token = row.tokens[i], depth = row.depth(i);
      require(token >= 0 && token < weights_->vocabulary.size, "Transformer: token", token, "must be in [0, V)");
      require(depth >= 0 && depth <= (i == 0 ? 0 : row.depth(i - 1) + 1), "Transformer: row.depths", depth,
              "must be at most one more than the one before, and 0 first");
      require(depth < options_.length - row.length, "Transformer: row.length + depth", row.length + depth,
              "must not reach the length limit");
    }
  }
  for (auto const& row : rows)
    if (row.from != row.to) {
      auto& to = at(row.to);
      to = at(row.from);
      cache_.fork(row.from, row.to, row.length);
    }
  for (auto const& row : rows) cache_.truncate(row.to, row.length);

  std::ptrdiff_t total = 0;
  for (auto const& row : rows) total += std::ssize(row.tokens);
  auto const x = view(x_, total, d);
  parts_.clear(), places_.clear(), pages_.clear(), paths_.clear();
  auto const copy = [this](auto... arguments) { copy_page(arguments...); };
  for (auto const& row : rows) {
    auto const& source = *at(row.to);
    Part part{static_cast<std::int32_t>(places_.size()), row.length, 0, 0, source.length};
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      embed(row.tokens[i], row.length + row.depth(i), x.data + std::ssize(places_) * d);
      places_.push_back(cache_.append(row.to, copy));
    }
    part.pages = pages_.size();
    cache_.pages(row.to, pages_);
    if (row.depths != nullptr) part.paths = prepare_paths(row, std::span(pages_).subspan(part.pages));
    part.sources = pages_.size();
    for (std::int32_t p = 0; p < source.length; p += KeysValues::page)
      pages_.push_back(source.numbers.data() + p * width());
    parts_.push_back(part);
  }
}

/// Writes to paths_ where the positions lie that each token of a tree attends to: [tokens, row.length + its depth + 1].
inline std::size_t Transformer::prepare_paths(Row const& row, std::span<float const* const> pages) {
  auto const first = paths_.size();
  auto const lies = [&](std::int32_t i) {
    return pages[static_cast<std::size_t>(i / KeysValues::page)] + i % KeysValues::page * weights_->d;
  };
  path_.clear();
  for (std::int32_t p = 0; p < row.length; ++p) path_.push_back(lies(p));
  for (std::size_t i = 0; i < row.tokens.size(); ++i) {
    path_.resize(static_cast<std::size_t>(row.length) + static_cast<std::size_t>(row.depths[i]));
    path_.push_back(lies(row.length + static_cast<std::int32_t>(i)));
    paths_.insert(paths_.end(), path_.begin(), path_.end());
  }
  return first;
}

inline void Transformer::prepare_attached(std::span<Row const> rows) {
  widths_.clear(), widest_ = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    widths_.insert(widths_.end(), static_cast<std::size_t>(rows[r].lines), parts_[r].source_length);
    widest_ = std::max<std::ptrdiff_t>(widest_, parts_[r].source_length);
  }
  attached_to_.resize(std::ssize(widths_) * widest_);
}

/// Attention of a tree's tokens to what each follows.
inline void Transformer::attend_paths(Row const& row, Part const& part, std::ptrdiff_t layer, MatrixView<float> queries,
                                      float* scores, MatrixView<float> out) const {
  auto const d = weights_->d;
  auto const* path = paths_.data() + part.paths;
  for (std::size_t i = 0; i < row.tokens.size(); ++i) {
    auto const count = static_cast<std::size_t>(row.length) + static_cast<std::size_t>(row.depths[i]) + 1;
    auto const t = part.first + static_cast<std::ptrdiff_t>(i);
    attend(queries.data + t * queries.stride, d, weights_->heads,
           PathKeysValues{{path, count}, layer * 2 * KeysValues::page * d, KeysValues::page * d},
           static_cast<std::int32_t>(count), scores, out.data + t * d);
    path += count;
  }
}

inline Hidden<float> Transformer::step(std::span<Row const> rows) {
  auto const& w = *weights_;
  auto const d = w.d;
  prepare(rows);
  if (options_.attached_layer >= 0) prepare_attached(rows);
  auto const total = std::ssize(places_);
  auto const x = view(x_, total, d);
  auto const normed = view(normed_, total, d);
  auto const qkv = view(qkv_, total, 3 * d);
  auto const attended = view(attended_, total, d);
  auto const inner = spread_view(inner_, total, w.ff);
  auto const scores = view(scores_, 1, attention_scratch(w.heads, options_.length));

  for (std::ptrdiff_t l = 0; l < std::ssize(w.decoder); ++l) {
    auto const& layer = w.decoder[static_cast<std::size_t>(l)];
    normalise(layer.n1, x, normed);
    apply(layer.qkv, normed, qkv, rows_);
    for (std::ptrdiff_t t = 0; t < total; ++t) {
      auto const& place = places_[static_cast<std::size_t>(t)];
      write(qkv.data + t * qkv.stride + d, place.page.data(), place.position, l);
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      auto const& part = parts_[r];
      if (rows[r].depths != nullptr) {
        attend_paths(rows[r], part, l, qkv, scores.data, attended);
        continue;
      }
      auto const target = memory(part.pages, l);
      for (std::int32_t i = 0; i < std::ssize(rows[r].tokens); ++i)
        attend(qkv.data + (part.first + i) * qkv.stride, d, w.heads, target, part.length + i + 1, scores.data,
               attended.data + (part.first + i) * d);
    }
    apply(layer.o, attended, x, rows_, {.add = true});

    normalise(layer.n2, x, normed);
    auto const query = view(qkv_, total, d);
    apply(layer.cq, normed, query, rows_);
    auto* attached_to = l == options_.attached_layer ? attached_to_.data() : nullptr;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      auto const& part = parts_[r];
      auto const source = memory(part.sources, l);
      auto const count = std::ssize(rows[r].tokens);
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        attend(query.data + (part.first + i) * d, d, w.heads, source, part.source_length, scores.data,
               attended.data + (part.first + i) * d);
        if (attached_to == nullptr || i < count - rows[r].lines) continue;
        mean_attention(scores.data, w.heads, part.source_length, attached_to);
        attached_to += widest_;
      }
    }
    apply(layer.co, attended, x, rows_, {.add = true});

    normalise(layer.nf, x, normed);
    apply(layer.fi, normed, inner, rows_, {.relu = true});
    apply(layer.fo, inner, x, rows_, {.add = true});
  }

  for (auto const& row : rows)
    if (row.depths != nullptr) cache_.truncate(row.to, row.length + static_cast<std::int32_t>(row.kept()));
  std::ptrdiff_t lines = 0;
  for (auto const& row : rows) lines += row.lines;
  auto const answer = view(answer_, lines, d);
  auto* to = answer.data;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (auto i = std::ssize(rows[r].tokens) - rows[r].lines; i < std::ssize(rows[r].tokens); ++i, to += d)
      layer_norm(x.data + (parts_[r].first + i) * d, w.dn.weight, w.dn.bias, to);
  return hidden<float>(answer.data, lines, d);
}

}  // namespace SLUICE_ISA
}  // namespace sluice::example
