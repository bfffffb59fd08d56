// SPDX-License-Identifier: Apache-2.0
/// \file
/// A product with packed weights as oneDNN does it, releases 2 and 3.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::bench::onednn {

using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;

inline dnnl::engine const& engine() {
  static dnnl::engine const cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

inline dnnl::stream& stream() {
  static dnnl::stream in_order(engine());
  return in_order;
}

/// `from` in another layout or type: floats become bfloat16 rounded to nearest even.
inline dnnl::memory converted(dnnl::memory from, dnnl::memory::desc const& description) {
  dnnl::memory to(description, engine());
  dnnl::reorder(from, to).execute(stream(), from, to);
  stream().wait();
  return to;
}

/// The caller's numbers, [rows, columns] row after row.
inline dnnl::memory view(void const* numbers, Type type, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return {{Dims{rows, columns}, type, Tag::ab}, engine(), const_cast<void*>(numbers)};
}

inline Type type_of(dnnl::memory const& memory) {
#if DNNL_VERSION_MAJOR >= 3
  return memory.get_desc().get_data_type();
#else
  return memory.get_desc().data_type();
#endif
}

/// The two operations that oneDNN has for y = x W^T.
enum class Operation { matmul, inner_product };

/// y = x W^T for x [rows, d] and W [n, d]. W is stored in the layout that oneDNN chooses for so many rows; x and y are
/// plain.
class Product {
 public:
  /// Empty if oneDNN has no such product for these types on this processor.
  ///
  /// \param scales  if not empty, output j is multiplied by scales[j] as it is written
  static std::optional<Product> make(Operation operation, dnnl::memory x, dnnl::memory const& weights, Type sums,
                                     std::ptrdiff_t rows, std::ptrdiff_t n, std::ptrdiff_t d,
                                     std::vector<float> const& scales = {}) {
    try {
      return Product(operation, std::move(x), weights, sums, rows, n, d, scales);
    } catch (dnnl::error const& error) {
      if (error.status == dnnl_unimplemented) return {};
      throw;
    }
  }

  void run() {
    primitive_.execute(stream(), arguments_);
    stream().wait();
  }

  /// y [rows, n], row after row: floats, or 32-bit integers of an integer product.
  void const* sums() const { return y_.get_data_handle(); }

  /// oneDNN's name of the code that runs, e.g. "brg:avx512_core_amx".
  std::string const& name() const { return name_; }

 private:
  Product(Operation operation, dnnl::memory x, dnnl::memory const& weights, Type sums, std::ptrdiff_t rows,
          std::ptrdiff_t n, std::ptrdiff_t d, std::vector<float> const& scales)
      : y_({Dims{rows, n}, sums, Tag::ab}, engine()) {
    auto const attributes = scaled(operation, scales);
    auto const kind = type_of(weights);
    auto const from = x.get_desc(), to = y_.get_desc();
    if (operation == Operation::matmul) {  // takes W^T [d, n]
      dnnl::memory::desc const any(Dims{d, n}, kind, Tag::any);
#if DNNL_VERSION_MAJOR >= 3
      dnnl::matmul::primitive_desc const chosen(engine(), from, any, to, attributes);
#else
      dnnl::matmul::primitive_desc const chosen({from, any, to}, attributes, engine());
#endif
      dnnl::memory const turned({Dims{d, n}, kind, Tag::ba}, engine(), weights.get_data_handle());
      take(dnnl::matmul(chosen), chosen.impl_info_str(), std::move(x), converted(turned, chosen.weights_desc()));
    } else {
      dnnl::memory::desc const any(Dims{n, d}, kind, Tag::any);
      using Layer = dnnl::inner_product_forward;
      constexpr auto use = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
      Layer::primitive_desc const chosen(engine(), use, from, any, to, attributes);
#else
      Layer::primitive_desc const chosen({use, from, any, to}, attributes, engine());
#endif
      take(Layer(chosen), chosen.impl_info_str(), std::move(x), converted(weights, chosen.weights_desc()));
    }
  }

  dnnl::primitive_attr scaled(Operation operation, std::vector<float> const& scales) {
    dnnl::primitive_attr attributes;
    if (scales.empty()) return attributes;
#if DNNL_VERSION_MAJOR >= 3  // a scale for each row of W, whose dimension has another place in W^T
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, operation == Operation::matmul ? 1 << 1 : 1 << 0);
    scales_ = dnnl::memory({Dims{std::ssize(scales)}, Type::f32, Tag::a}, engine());
    std::ranges::copy(scales, static_cast<float*>(scales_.get_data_handle()));
#else
    static_cast<void>(operation);
    attributes.set_output_scales(1 << 1, scales);
#endif
    return attributes;
  }

  void take(dnnl::primitive primitive, std::string name, dnnl::memory x, dnnl::memory weights) {
    primitive_ = std::move(primitive);
    name_ = std::move(name);
    arguments_ = {{DNNL_ARG_SRC, std::move(x)}, {DNNL_ARG_WEIGHTS, std::move(weights)}, {DNNL_ARG_DST, y_}};
#if DNNL_VERSION_MAJOR >= 3
    if (scales_) arguments_.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, scales_);
#endif
  }

  dnnl::memory y_;
#if DNNL_VERSION_MAJOR >= 3
  dnnl::memory scales_;
#endif
  dnnl::primitive primitive_;
  std::string name_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace sluice::bench::onednn
