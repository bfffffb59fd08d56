// SPDX-License-Identifier: Apache-2.0
/// \file
/// The proposal heads of a file.
#pragma once

#include <sluice/output/packed_matrix.hpp>
#include <sluice/speculative/heads.hpp>

#include <transformer/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::example {
inline namespace SLUICE_ISA {

/// Heads 2, 3, ... of train_heads.py: `heads.<i>.up.weight` [inner, d], `.up.bias` [inner], `heads.<i>.down.weight` [d,
/// inner], `.down.bias` [d].
/// \param d  of the model's hidden vectors
/// \throws std::runtime_error  for a file that is not what it should be, naming tensor and value
inline ResidualHeads load_heads(Safetensors const& file, std::ptrdiff_t d, Precision precision = Precision::float32) {
  std::vector<ResidualHeads::Head> heads;
  auto const size = static_cast<std::int64_t>(d);
  auto const name = [&] { return "heads." + std::to_string(heads.size() + 2) + "."; };
  auto const linear = [&](std::string const& layer, std::int64_t out, std::int64_t in) {
    auto const weights = file.floats(layer + ".weight", {out, in});
    return PackedMatrix({weights.data(), out, in, in}, file.floats(layer + ".bias", {out}), precision);
  };
  for (;;) {
    auto const up = file.tensors().find(name() + "up.weight");
    if (up == file.tensors().end()) break;
    auto const inner = up->second.shape.empty() ? 0 : up->second.shape[0];
    if (inner < 1) throw std::runtime_error("heads: tensor '" + up->first + "' has no rows");
    auto first = linear(name() + "up", inner, size);
    heads.push_back({std::move(first), linear(name() + "down", size, inner)});
  }
  if (heads.empty()) throw std::runtime_error("heads: the file has no tensor 'heads.2.up.weight'");
  if (file.tensors().size() != 4 * heads.size())
    throw std::runtime_error("heads: the file holds " + std::to_string(file.tensors().size()) + " tensors, " +
                             std::to_string(heads.size()) + " heads have " + std::to_string(4 * heads.size()));
  return ResidualHeads(std::move(heads));
}

}  // namespace SLUICE_ISA
}  // namespace sluice::example
