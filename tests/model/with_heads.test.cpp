// SPDX-License-Identifier: Apache-2.0
#include <sluice/model/residual_heads.hpp>
#include <sluice/model/slot_tokens.hpp>
#include <sluice/model/with_heads.hpp>
#include <sluice/output/projection/dense_projection.hpp>
#include <sluice/schedule/streaming.hpp>
#include <sluice/search/blockwise/blockwise.hpp>
#include <sluice/search/greedy/greedy.hpp>

#include <support/decoding.hpp>
#include <support/hidden_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::ptrdiff_t d = 12, inner = 20;
constexpr std::int32_t size = 30;
using Base = HiddenModel<everything>;

std::vector<float> numbers(std::mt19937_64& random, std::ptrdiff_t n, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (auto& x : out) x = normal(random);
  return out;
}

/// Heads and their plain weights.
struct Net {
  struct Plain {
    std::vector<float> up, up_bias, down, down_bias;
  };
  std::vector<Plain> plain;
  ResidualHeads heads;

  Net(std::mt19937_64& random, int count) {
    std::vector<ResidualHeads::Head> packed;
    for (int i = 0; i < count; ++i) {
      plain.push_back({numbers(random, inner * d, 0.4f), numbers(random, inner, 0.4f), numbers(random, d * inner, 0.4f),
                       numbers(random, d, 0.4f)});
      auto const& p = plain.back();
      packed.push_back({PackedMatrix({p.up.data(), inner, d, d}, p.up_bias),
                        PackedMatrix({p.down.data(), d, inner, inner}, p.down_bias)});
    }
    heads = ResidualHeads(std::move(packed));
  }
  std::vector<double> apply(std::size_t head, std::span<float const> h) const {
    auto const& p = plain[head];
    std::vector<double> middle(p.up_bias.begin(), p.up_bias.end()), z(p.down_bias.begin(), p.down_bias.end());
    for (std::size_t j = 0; j < middle.size(); ++j) {
      for (std::size_t k = 0; k < h.size(); ++k) middle[j] += static_cast<double>(p.up[j * h.size() + k]) * h[k];
      middle[j] = std::max(middle[j], 0.0);
    }
    for (std::size_t j = 0; j < z.size(); ++j) {
      for (std::size_t k = 0; k < middle.size(); ++k)
        z[j] += static_cast<double>(p.down[j * middle.size() + k]) * middle[k];
      z[j] += h[j];
    }
    return z;
  }
};

/// Compares every guess with what the heads say of a hidden vector computed afresh.
template <class M>
struct Watching : detail::Forwarding<M> {
  using Source = typename M::Source;
  Watching(M& model, Net const& n, std::vector<float> const& w, std::vector<float> const& b)
      : detail::Forwarding<M>(model), net(n), weights(w), bias(b) {}
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) held.clear(slots[i]), source[slots[i]] = *sources[i];
    this->model_.start(sources, slots);
  }
  void release(std::span<Slot const> slots) { this->model_.release(slots); }
  decltype(auto) step(std::span<Row const> rows) {
    held.apply(rows);
    return this->model_.step(rows);
  }
  void propose(std::span<Draft const> drafts) {
    this->model_.propose(drafts);
    for (auto const& draft : drafts) {
      Base fresh(size, d);
      auto const* const from = &source[draft.slot];
      Slot const slot = 0;
      fresh.start({&from, 1}, {&slot, 1});
      auto const text = held[draft.slot].first(static_cast<std::size_t>(draft.length));
      Row const row{0, 0, 0, text, 1};
      auto const h = fresh.step({&row, 1})[0];
      CHECK(static_cast<std::int32_t>(draft.tokens->size()) == std::min(draft.count, net.heads.size()));
      for (std::size_t i = 0; i < draft.tokens->size(); ++i) {
        auto const z = net.apply(i, h);
        std::vector<double> score(size, -1e30);
        for (Token v = eos; v < size; ++v) {
          auto& x = score[static_cast<std::size_t>(v)];
          x = bias[static_cast<std::size_t>(v)];
          for (std::size_t k = 0; k < z.size(); ++k)
            x += z[k] * static_cast<double>(weights[static_cast<std::size_t>(v) * z.size() + k]);
        }
        auto const guess = (*draft.tokens)[i];
        CHECK(score[static_cast<std::size_t>(guess)] >= *std::ranges::max_element(score) - 1e-4);
        ++guesses;
      }
    }
  }
  Net const& net;
  std::vector<float> const& weights;
  std::vector<float> const& bias;
  SlotTokens held;
  std::map<Slot, std::uint64_t> source;
  std::size_t guesses = 0;
};

}  // namespace

TEST_CASE("heads guess from the vector behind the last token that stays", "[with_heads]") {
  std::mt19937_64 random(1);
  auto const weights = numbers(random, size * d, 1), bias = numbers(random, size, 1);
  DenseProjection const projection({weights.data(), size, d, d}, bias);
  std::vector<std::uint64_t> const seeds{1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (int heads = 1; heads <= 4; ++heads) {
    Net net(random, heads);
    Base model(size, d);
    WithHeads with(model, net.heads, projection);
    Watching watching(with, net, weights, bias);
    auto const expected = decode(model, seeds, Greedy{.length = {.max = 25}}, Batched{}, projection);
    for (std::size_t batch : {1u, 4u, 9u}) {
      auto const found =
          decode(watching, seeds, Blockwise<>{.block = 4, .length = {.max = 25}}, Streaming{.size = batch}, projection);
      for (std::size_t i = 0; i < seeds.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
    }
    CHECK(watching.guesses > 100);
  }
}

TEST_CASE("heads of shapes that do not fit are refused", "[with_heads]") {
  std::mt19937_64 random(2);
  auto const up = numbers(random, inner * d, 1), down = numbers(random, d * inner, 1);
  PackedMatrix const good_up({up.data(), inner, d, d}), good_down({down.data(), d, inner, inner});
  PackedMatrix const bad({up.data(), 10, d, d});
  CHECK_THROWS_AS(ResidualHeads({{good_up, bad}}), std::invalid_argument);
  CHECK_THROWS_AS(ResidualHeads({{bad, good_down}}), std::invalid_argument);
  CHECK_NOTHROW(ResidualHeads({{good_up, good_down}}));
  Base model(size + 1, d);
  ResidualHeads heads({{good_up, good_down}});
  auto const weights = numbers(random, size * d, 1);
  CHECK_THROWS_AS((WithHeads(model, heads, DenseProjection({weights.data(), size, d, d}))), std::invalid_argument);
}
