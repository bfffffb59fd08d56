// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/error.hpp>

#include <libtorch/attention.hpp>
#include <libtorch/torch_transformer.hpp>
#include <libtorch/upload.hpp>

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace sluice::example {

namespace {

/// Of every call: no gradients, and the model's stream.
class Scope {
 public:
  explicit Scope(std::optional<c10::Stream> const& stream) {
    if (stream) stream_.reset_stream(*stream);
  }

 private:
  c10::InferenceMode inference_;
  c10::OptionalStreamGuard stream_;
};

at::Tensor linear(TorchLayer const& layer, at::Tensor const& x) { return at::linear(x, layer.weight, layer.bias); }
at::Tensor norm(TorchLayer const& layer, at::Tensor const& x) {
  return at::layer_norm(x, {x.size(-1)}, layer.weight, layer.bias, 1e-5);
}

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// `old` [layers, 2, rows, heads, length, size] or undefined, in zeros of another size.
at::Tensor enlarged(at::Tensor const& old, std::vector<std::int64_t> const& shape, at::TensorOptions const& options) {
  auto result = at::zeros(shape, options);
  if (old.defined()) result.narrow(2, 0, old.size(2)).narrow(4, 0, old.size(4)).copy_(old);
  return result;
}

}  // namespace

TorchTransformer::TorchTransformer(std::shared_ptr<TorchWeights const> weights, TorchTransformerOptions const& options)
    : weights_(std::move(weights)), options_(options) {
  require(weights_ != nullptr, "TorchTransformer: weights", "nullptr", "must be given");
  require(options.length > 0, "TorchTransformer: length", options.length, "must be > 0");
  if (!device().is_cpu()) stream_ = c10::impl::VirtualGuardImpl(device().type()).getStream(device());
  Scope const scope(stream_);
  auto const d = weights_->d;
  auto const table = at::empty({options.length, d}, at::kFloat);
  auto* to = table.data_ptr<float>();
  for (std::int32_t p = 0; p < options.length; ++p)
    for (std::int64_t i = 0; i < d; ++i) {
      auto const exponent = static_cast<float>(i - i % 2) / static_cast<float>(d);
      auto const angle = static_cast<float>(p) / std::pow(10000.0f, exponent);
      *to++ = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  positions_ = table.to(weights_->options());
}

void TorchTransformer::require_token(Token token) const {
  require(weights_->vocabulary.contains(token), "TorchTransformer: token", token, "must be in [0, V)");
}

at::Tensor TorchTransformer::embed(at::Tensor const& tokens, at::Tensor const& positions) const {
  auto const x = positions_.index_select(0, positions);
  return x.add_(weights_->embedding.index_select(0, tokens), std::sqrt(static_cast<double>(weights_->d)));
}

at::Tensor TorchTransformer::feed_forward(TorchBlock const& block, at::Tensor const& x) const {
  return linear(block.fo, linear(block.fi, norm(block.nf, x)).relu_()).add_(x);
}

TorchTransformer::Encoded TorchTransformer::encode(std::span<Source const* const> sources) const {
  Encoded encoded;
  if (sources.empty()) return encoded;
  Scope const scope(stream_);
  auto const& w = *weights_;
  std::vector<std::int64_t> tokens, positions, sentence, limits;
  for (auto const* const source : sources) {
    require(std::ssize(*source) < options_.length, "TorchTransformer: source.size() + 1", source->size() + 1,
            "must not exceed the length limit");
    std::int64_t position = 0;
    auto const add = [&](Token token) {
      require_token(token);
      tokens.push_back(token), positions.push_back(position++);
      sentence.push_back(std::ssize(encoded.lengths)), limits.push_back(std::ssize(*source) + 1);
    };
    for (auto const token : *source) add(token);
    add(w.end());
    encoded.lengths.push_back(std::ssize(*source) + 1);
  }
  Upload upload;
  auto const token_part = upload.add(tokens), position_part = upload.add(positions);
  Layout layout(sentence, limits, upload);
  upload.send(device());
  layout.receive(upload);
  // [N, parts * d] as [parts, sources, heads, longest, size]
  auto const as_memory = [&](at::Tensor const& rows, std::int64_t parts) {
    return layout.spread(rows)
        .view({layout.slots(), layout.width(), parts, w.heads, head()})
        .permute({2, 0, 3, 1, 4})
        .contiguous();
  };
  auto x = embed(upload[token_part], upload[position_part]);
  for (auto const& block : w.encoder) {
    auto const qkv = linear(block.qkv, norm(block.n1, x));
    auto const memory = as_memory(qkv.narrow(1, w.d, 2 * w.d), 2);
    auto const attended = layout.attend(qkv.narrow(1, 0, w.d), memory[0], memory[1]);
    x = feed_forward(block, linear(block.o, attended).add_(x));
  }
  encoded.memory = as_memory(linear(w.source, norm(w.en, x)), 2 * layers())
                       .view({layers(), 2, layout.slots(), w.heads, layout.width(), head()});
  return encoded;
}

void TorchTransformer::start(std::span<Source const* const> sources, std::span<Slot const> slots) {
  auto encoded = encode(sources);
  std::vector<std::int32_t> items(sources.size());
  std::iota(items.begin(), items.end(), 0);
  start(encoded, items, slots);
}

void TorchTransformer::start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
  if (slots.empty()) return;
  Scope const scope(stream_);
  std::vector<std::int64_t> from, to;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    require(slots[i] >= 0, "TorchTransformer: slot", slots[i], "must be >= 0");
    auto const length = encoded.lengths.at(static_cast<std::size_t>(items[i]));
    if (slots[i] >= std::ssize(held_)) held_.resize(static_cast<std::size_t>(slots[i]) + 1);
    auto& held = held_[static_cast<std::size_t>(slots[i])];
    leave(held);
    held.memory = free_memory();
    memories_[static_cast<std::size_t>(held.memory)] = {length, 1};
    from.push_back(items[i]), to.push_back(held.memory);
  }
  auto const longest = encoded.memory.size(4);
  reserve_memory(std::ssize(memories_), longest);
  Upload upload;
  auto const from_part = upload.add(from), to_part = upload.add(to);
  upload.send(device());
  memory_.index_fill_(2, upload[to_part], 0);  // it may hold NaN, and zero times NaN is NaN
  memory_.narrow(4, 0, longest).index_copy_(2, upload[to_part], encoded.memory.index_select(2, upload[from_part]));
}

void TorchTransformer::release(std::span<Slot const> slots) {
  for (auto const slot : slots)
    if (slot >= 0 && slot < std::ssize(held_)) leave(held_[static_cast<std::size_t>(slot)]);
}

/// The slot looks at nothing any more.
void TorchTransformer::leave(Held& held) {
  if (held.memory >= 0) --memories_[static_cast<std::size_t>(held.memory)].users;
  held = {.stale = true};
}

/// The lowest free one, so that those in use stay close together.
std::int32_t TorchTransformer::free_memory() {
  auto const found = std::ranges::find(memories_, 0, &Memory::users);
  auto const index = found - memories_.begin();
  if (found == memories_.end()) memories_.emplace_back();
  return static_cast<std::int32_t>(index);
}

void TorchTransformer::reserve_memory(std::int64_t sources, std::int64_t length) {
  auto const now = memory_.defined() ? memory_.size(2) : 0, long_now = memory_.defined() ? memory_.size(4) : 0;
  if (sources <= now && length <= long_now) return;
  if (sources > now) sources = std::max(sources, 2 * now);
  length = std::max(rounded_up(length, 16), long_now);
  memory_ =
      enlarged(memory_, {layers(), 2, std::max(sources, now), weights_->heads, length, head()}, weights_->options());
}

void TorchTransformer::reserve_cache(std::int64_t slots, std::int64_t length) {
  auto const now = cache_.defined() ? cache_.size(2) : 0, long_now = cache_.defined() ? cache_.size(4) : 0;
  if (slots <= now && length <= long_now) return;
  if (slots > now) slots = std::max(slots, 2 * now);
  if (length > long_now) length = std::max(rounded_up(length, 16), 2 * long_now);
  cache_ = enlarged(cache_, {layers(), 2, std::max(slots, now), weights_->heads, std::max(length, long_now), head()},
                    weights_->options());
}

void TorchTransformer::check(std::span<Row const> rows) const {
  for (auto const& row : rows) {
    auto const started =
        row.from >= 0 && row.from < std::ssize(held_) && held_[static_cast<std::size_t>(row.from)].memory >= 0;
    require(started, "TorchTransformer: row.from", row.from, "must be a slot that was started");
    require(row.to >= 0, "TorchTransformer: row.to", row.to, "must be >= 0");
    require(row.length >= 0 && row.length <= held_[static_cast<std::size_t>(row.from)].length,
            "TorchTransformer: row.length", row.length, "must be in [0, tokens that row.from holds]");
    require(!row.tokens.empty(), "TorchTransformer: row.tokens.size()", row.tokens.size(), "must be > 0");
    require(std::ssize(row.tokens) <= options_.length - row.length, "TorchTransformer: row.length + row.tokens.size()",
            row.tokens.size() + static_cast<std::size_t>(row.length), "must not exceed the length limit");
    require(row.lines >= 1 && row.lines <= std::ssize(row.tokens), "TorchTransformer: row.lines", row.lines,
            "must be in [1, row.tokens.size()]");
    for (auto const token : row.tokens) require_token(token);
  }
}

at::Tensor TorchTransformer::logits(std::span<Row const> rows) {
  require(!rows.empty(), "TorchTransformer: rows.size()", rows.size(), "must be > 0");
  check(rows);
  Scope const scope(stream_);
  auto const& w = *weights_;

  // What is done, as numbers: forks, then one entry for each token.
  std::vector<std::int64_t> forks_from, forks_to, stale, tokens, positions, limits, slots, sources, source_limits,
      lines;
  std::int64_t forked = 0, longest = 0, most_slots = 0;
  for (auto const& row : rows) {
    most_slots = std::max<std::int64_t>(most_slots, row.to + 1);
    longest = std::max(longest, row.length + std::ssize(row.tokens));
  }
  if (most_slots > std::ssize(held_)) held_.resize(static_cast<std::size_t>(most_slots));
  for (auto const& row : rows) {
    auto const from = held_[static_cast<std::size_t>(row.from)];
    auto& held = held_[static_cast<std::size_t>(row.to)];
    if (std::exchange(held.stale, false)) stale.push_back(row.to);
    if (row.from != row.to) {
      if (row.length > 0) {
        forks_from.push_back(row.from), forks_to.push_back(row.to);
        forked = std::max<std::int64_t>(forked, row.length);
      }
      ++memories_[static_cast<std::size_t>(from.memory)].users;
      if (held.memory >= 0) --memories_[static_cast<std::size_t>(held.memory)].users;
      held.memory = from.memory;
    }
    held.length = row.length + static_cast<std::int32_t>(row.tokens.size());
    for (std::int32_t i = 0; i < std::ssize(row.tokens); ++i) {
      if (i >= std::ssize(row.tokens) - row.lines) lines.push_back(std::ssize(tokens));
      tokens.push_back(row.tokens[static_cast<std::size_t>(i)]);
      positions.push_back(row.length + i), limits.push_back(row.length + i + 1), slots.push_back(row.to);
      sources.push_back(held.memory);
      source_limits.push_back(memories_[static_cast<std::size_t>(held.memory)].length);
    }
  }
  Upload upload;
  auto const stale_part = upload.add(stale), from_part = upload.add(forks_from), to_part = upload.add(forks_to);
  auto const token_part = upload.add(tokens), position_part = upload.add(positions), slot_part = upload.add(slots);
  auto const line_part = upload.add(lines);
  Layout target(slots, limits, upload), source(sources, source_limits, upload);
  upload.send(device());
  target.receive(upload), source.receive(upload);

  reserve_cache(most_slots, longest);
  if (!stale.empty()) cache_.index_fill_(2, upload[stale_part], 0);
  // [fork]
  if (!forks_to.empty()) {
    auto const part = cache_.narrow(4, 0, forked);
    part.index_copy_(2, upload[to_part], part.index_select(2, upload[from_part]));
  }
  // [/fork]
  auto const in_slots = upload[slot_part], at_positions = upload[position_part];
  auto const all = at::indexing::Slice();
  auto const count = std::ssize(tokens);
  auto x = embed(upload[token_part], at_positions);
  for (std::int64_t l = 0; l < layers(); ++l) {
    auto const& block = w.decoder[static_cast<std::size_t>(l)];
    auto const qkv = linear(block.qkv, norm(block.n1, x));
    auto const memory = memory_[l];
    auto cache = cache_[l];
    // [append]
    cache.index_put_({all, in_slots, all, at_positions}, qkv.narrow(1, w.d, 2 * w.d).view({count, 2, w.heads, head()}));
    auto const looked_back = target.attend(qkv.narrow(1, 0, w.d), cache[0], cache[1]);
    // [/append]
    x = linear(block.o, looked_back).add_(x);
    auto const attended = source.attend(linear(block.cq, norm(block.n2, x)), memory[0], memory[1]);
    x = linear(block.co, attended).add_(x);
    x = feed_forward(block, x);
  }
  if (std::ssize(lines) < count) x = x.index_select(0, upload[line_part]);
  return at::addmm(w.bias, norm(w.dn, x), w.embedding.t());
}

}  // namespace sluice::example
