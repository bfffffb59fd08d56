// SPDX-License-Identifier: Apache-2.0
// The snippet of docs/model.md about Eigen: a language model of one recurrent layer, held against plain loops in double precision.
#include <sluice/engine/eigen.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/sluice.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <span>
#include <variant>
#include <vector>

namespace {

using Matrix = sluice::RowMajorMatrix<float>;

/// The names and shapes of torch.nn.GRU, whose gates are r, z, n; the embedding is the output layer, too.
struct Weights {
  Matrix embedding;                  // [V, d]
  Matrix weight_ih, weight_hh;       // [3 d, d]
  Eigen::VectorXf bias_ih, bias_hh;  // [3 d]
};

// [gru]
/// A language model of one GRU layer. The state of slot s is row s of a matrix.
class Gru {
 public:
  using Source = std::monostate;
  static constexpr sluice::Abilities abilities{.ragged = true};  // a state has no position

  Gru(Weights const& weights, int slots)
      : embedding_(weights.embedding),
        input_(sluice::weights(weights.weight_ih), sluice::bias(weights.bias_ih)),
        recurrent_(sluice::weights(weights.weight_hh), sluice::bias(weights.bias_hh)),
        states_(slots, embedding_.cols()) {}

  sluice::Vocabulary vocabulary() const { return {.size = int(embedding_.rows()), .bos = 0, .eos = {1}, .never = {0}}; }
  sluice::Limits limits() const { return {.slot_count = int(states_.rows())}; }

  void start(std::span<Source const* const>, std::span<sluice::Slot const> slots) {
    for (auto const slot : slots) states_.row(slot).setZero();
  }

  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    auto const count = std::ssize(rows), d = states_.cols();
    Matrix x(count, d), a(count, 3 * d), b(count, 3 * d);
    hidden_.resize(count, d);
    for (auto i = count; i-- > 0;) {  // states in
      x.row(i) = embedding_.row(rows[std::size_t(i)].tokens[0]);
      hidden_.row(i) = states_.row(rows[std::size_t(i)].from);
    }
    input_.multiply(sluice::hidden(x), sluice::view(a));
    recurrent_.multiply(sluice::hidden(hidden_), sluice::view(b));
    Matrix const r = (a.leftCols(d) + b.leftCols(d)).array().logistic();
    Matrix const z = (a.middleCols(d, d) + b.middleCols(d, d)).array().logistic();
    Matrix const n = (a.rightCols(d) + r.cwiseProduct(b.rightCols(d))).array().tanh();
    hidden_ = n + z.cwiseProduct(hidden_ - n);
    for (auto i = count; i-- > 0;) states_.row(rows[std::size_t(i)].to) = hidden_.row(i);  // states out
    return sluice::hidden(hidden_);
  }

 private:
  Matrix embedding_;
  sluice::PackedMatrix input_, recurrent_;
  Matrix states_, hidden_;
};
// [/gru]

Matrix drawn(int rows, int columns, float seed) {
  return Matrix::NullaryExpr(rows, columns, [seed, columns](Eigen::Index i, Eigen::Index j) {
    return std::sin(seed * static_cast<float>(i * columns + j + 1));
  });
}

/// The log-probability of an output, by loops in double precision.
double log_prob(Weights const& w, sluice::Token prompt, std::vector<sluice::Token> const& tokens) {
  auto const d = w.embedding.cols();
  auto const at = [](auto const& matrix, Eigen::Index i, Eigen::Index j = 0) {
    return static_cast<double>(matrix(i, j));
  };
  auto const logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<double> h(static_cast<std::size_t>(d));
  std::vector<sluice::Token> fed{0, prompt};
  fed.insert(fed.end(), tokens.begin(), tokens.end());
  double sum = 0;
  for (std::size_t t = 0; t + 1 < fed.size(); ++t) {
    auto next = h;
    for (Eigen::Index k = 0; k < d; ++k) {
      std::vector<double> a, b;
      for (auto const j : {k, d + k, 2 * d + k}) {
        a.push_back(at(w.bias_ih, j)), b.push_back(at(w.bias_hh, j));
        for (Eigen::Index i = 0; i < d; ++i) {
          a.back() += at(w.weight_ih, j, i) * at(w.embedding, fed[t], i);
          b.back() += at(w.weight_hh, j, i) * h[static_cast<std::size_t>(i)];
        }
      }
      auto const r = logistic(a[0] + b[0]), z = logistic(a[1] + b[1]), n = std::tanh(a[2] + r * b[2]);
      next[static_cast<std::size_t>(k)] = (1 - z) * n + z * h[static_cast<std::size_t>(k)];
    }
    h = next;
    if (t == 0) continue;  // the prompt is given
    double all = 0, one = 0;
    for (Eigen::Index v = 0; v < w.embedding.rows(); ++v) {
      double logit = 0;
      for (Eigen::Index i = 0; i < d; ++i) logit += at(w.embedding, v, i) * h[static_cast<std::size_t>(i)];
      all += std::exp(logit);
      if (v == fed[t + 1]) one = logit;
    }
    sum += one - std::log(all);
  }
  return sum;
}

}  // namespace

int main() {
  constexpr int vocabulary = 100, d = 32, prompts = 50;
  Weights const weights{drawn(vocabulary, d, 1.7f), drawn(3 * d, d, 2.3f) / 4, drawn(3 * d, d, 3.1f) / 4,
                        drawn(3 * d, 1, 0.9f), drawn(3 * d, 1, 1.1f)};
  Gru model(weights, 64);
  // [output]
  sluice::DenseProjection const output(sluice::weights(weights.embedding));
  sluice::BeamSearch const search{.width = 4, .n_best = 4, .length = {.max = 20}};
  std::vector<sluice::Request<std::monostate, sluice::BeamSearch>> requests;
  for (sluice::Token token = 2; token < 2 + prompts; ++token) requests.push_back({.prompt = {0, token}});
  auto const alone = sluice::decode(model, requests, search, sluice::Batched{.size = 1}, output);
  auto const together =
      sluice::decode(model, requests, search, sluice::Streaming{.size = 16, .refill_below = 1}, output);
  // [/output]

  int same = 0, near = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto const& one = alone[i].hypotheses;
    same += std::ranges::equal(one, together[i].hypotheses, [](auto const& x, auto const& y) {
      return x.tokens == y.tokens && x.log_probs == y.log_probs;
    });
    near += std::ranges::all_of(one, [&](auto const& hypothesis) {
      return std::abs(static_cast<double>(hypothesis.log_prob) -
                      log_prob(weights, static_cast<sluice::Token>(i + 2), hypothesis.tokens)) < 1e-3;
    });
  }
  std::cout << prompts << " prompts: " << same << " have the same 4 best alone and 16 at a time, to the last bit; in "
            << near << " the log-probabilities are those of plain loops\n";
  return same == prompts && near == prompts ? 0 : 1;
}
