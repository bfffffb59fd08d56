// SPDX-License-Identifier: Apache-2.0
/// \file
/// The weights of a semantic parser, packed for products.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <semantic_parser/data.hpp>
#include <semantic_parser/lstm.hpp>
#include <string>

namespace semantic_parser {

inline constexpr Token start_token = 0, end_token = 1;  ///< <S>, <E>; in both vocabularies

inline namespace SLUICE_ISA {

/// Read only, shared by all models that use them.
struct Weights {
  sluice::Vocabulary vocabulary;   ///< of the output
  Lstm encoder, decoder;           ///< of one width
  sluice::PackedMatrix attention;  ///< [width, 2 width]: from context and h
  sluice::PackedMatrix output;     ///< [V, width]

  std::ptrdiff_t width() const { return decoder.width(); }

  /// \throws text::InputError  for tensors that are missing or of another shape
  static std::shared_ptr<Weights const> from(Data const& data) {
    auto const d = static_cast<std::int64_t>(data.hidden);
    auto const lstm = [&](std::string const& name, std::int64_t words) {
      LstmTensors const tensors{.embedding = data.tensor(name + ".embedding.weight", {words, d}),
                                .i2h_weight = data.tensor(name + ".lstm.i2h.weight", {4 * d, d}),
                                .i2h_bias = data.tensor(name + ".lstm.i2h.bias", {4 * d}),
                                .h2h_weight = data.tensor(name + ".lstm.h2h.weight", {4 * d, d}),
                                .h2h_bias = data.tensor(name + ".lstm.h2h.bias", {4 * d})};
      return Lstm(tensors, d);
    };
    auto const linear = [&](std::string const& name, Blocks rows, Blocks columns) {
      auto const weight = data.tensor(name + ".weight", {rows.from, columns.count * columns.from});
      return Lstm::layer(weight, data.tensor(name + ".bias", {rows.from}), rows, columns);
    };
    auto const size = std::ssize(data.target_words);
    Blocks const state{1, d, padded(d)}, two{2, d, padded(d)}, words{1, size, size};
    auto result = std::make_shared<Weights>();
    // Nothing is forbidden: <S> and the unknown word are left to the model, as in the authors' programs.
    result->vocabulary = {.size = static_cast<std::int32_t>(size), .bos = start_token, .eos = {end_token}};
    result->encoder = lstm("encoder", std::ssize(data.source_words));
    result->decoder = lstm("decoder", size);
    result->attention = linear("attention.linear_att", state, two);
    result->output = linear("attention.linear_out", words, state);
    return result;
  }
};

}  // namespace SLUICE_ISA
}  // namespace semantic_parser
