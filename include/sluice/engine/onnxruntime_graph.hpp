// SPDX-License-Identifier: Apache-2.0
/// \file
/// A graph that ONNX Runtime has loaded: what it takes and gives, and one run of it. Needs onnxruntime_cxx_api.h (component
/// `onnxruntime`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <onnxruntime_cxx_api.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A session, and what messages call it: its file. What computes it (threads, CUDA) is the session's own business.
struct OnnxGraph {
  std::shared_ptr<Ort::Session> session{};  ///< null: there is none
  std::string name{};
};

namespace detail {

/// Calls f(). An error of ONNX Runtime becomes a std::runtime_error that names the graph.
template <class F>
decltype(auto) onnx_call(std::string const& name, F&& f) {
  try {
    return f();
  } catch (Ort::Exception const& problem) {
    throw std::runtime_error("onnxruntime: " + name + ": " + problem.what());
  }
}

/// An input or output of a graph.
struct OnnxTensor {
  std::string name{};
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<std::int64_t> shape{};   ///< -1: known at run time only
  std::vector<std::string> symbols{};  ///< [rank]: what the graph calls an axis; empty: nothing

  std::size_t rank() const { return shape.size(); }
};

/// Bytes of a number. \throws std::invalid_argument  for what is no number
inline std::int64_t onnx_bytes(OnnxTensor const& tensor) {
  switch (tensor.type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32: return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16: return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: return 1;
    default: require(false, "onnxruntime: " + tensor.name, "its type", "is not one of numbers"); return 0;
  }
}

/// A tensor in the processor's memory, not filled.
inline Ort::Value onnx_value(std::vector<std::int64_t> const& shape, ONNXTensorElementDataType type) {
  Ort::AllocatorWithDefaultOptions allocator;
  return Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), type);
}

/// A tensor of int64 or int32, number i of which is `number(i)`.
template <class Number>
Ort::Value onnx_integers(OnnxTensor const& input, std::vector<std::int64_t> const& shape, Number&& number) {
  auto result = onnx_value(shape, input.type);
  std::int64_t count = 1;
  for (auto const size : shape) count *= size;
  auto const fill = [&](auto* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::remove_reference_t<decltype(*to)>>(number(i));
  };
  if (input.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) fill(result.GetTensorMutableData<std::int64_t>());
  else fill(result.GetTensorMutableData<std::int32_t>());
  return result;
}

/// A session with its inputs and outputs. run() is thread-safe, as ONNX Runtime's is.
class OnnxSession {
 public:
  using Feeds = std::vector<std::pair<OnnxTensor const*, Ort::Value const*>>;

  OnnxSession() = default;
  /// \param role  what the graph is for, if it has no name
  OnnxSession(OnnxGraph graph, std::string_view role)
      : session_(std::move(graph.session)), name_(std::move(graph.name)) {
    if (name_.empty()) name_ = role;
    if (!session_) return;
    onnx_call(name_, [&] {
      Ort::AllocatorWithDefaultOptions allocator;
      for (std::size_t i = 0; i < session_->GetInputCount(); ++i)
        inputs_.push_back(tensor(session_->GetInputNameAllocated(i, allocator).get(), session_->GetInputTypeInfo(i)));
      for (std::size_t i = 0; i < session_->GetOutputCount(); ++i)
        outputs_.push_back(
            tensor(session_->GetOutputNameAllocated(i, allocator).get(), session_->GetOutputTypeInfo(i)));
    });
  }
  explicit operator bool() const { return session_ != nullptr; }

  std::string const& name() const { return name_; }
  std::vector<OnnxTensor> const& inputs() const { return inputs_; }
  std::vector<OnnxTensor> const& outputs() const { return outputs_; }
  OnnxTensor const* input(std::string_view name) const { return find(inputs_, name); }
  OnnxTensor const* output(std::string_view name) const { return find(outputs_, name); }
  /// The first of these names that there is, or null.
  OnnxTensor const* first_input(std::vector<std::string> const& names) const { return first_of(inputs_, names); }
  OnnxTensor const* first_output(std::vector<std::string> const& names) const { return first_of(outputs_, names); }

  /// An input of integers. \throws std::invalid_argument  for one of another type
  OnnxTensor const* integers(std::vector<std::string> const& names) const {
    auto const* const found = first_input(names);
    if (found != nullptr)
      require(found->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 || found->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
              "onnxruntime: " + name_ + ": " + found->name, "its type", "must be int64 or int32");
    return found;
  }

  /// One run: inputs are bound where they lie, outputs where ONNX Runtime puts them in the processor's memory.
  std::vector<Ort::Value> run(Feeds const& feeds, std::vector<std::string> const& wanted) const {
    return onnx_call(name_, [&] {
      Ort::IoBinding binding(*session_);
      for (auto const& [tensor, value] : feeds) binding.BindInput(tensor->name.c_str(), *value);
      auto const memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
      for (auto const& output : wanted) binding.BindOutput(output.c_str(), memory);
      session_->Run(Ort::RunOptions{nullptr}, binding);
      binding.SynchronizeOutputs();
      return binding.GetOutputValues();
    });
  }

  /// \throws std::runtime_error  naming the output, unless it is a tensor of this type and shape
  void expect(std::string const& output, Ort::Value const& value, ONNXTensorElementDataType type,
              std::vector<std::int64_t> const& shape) const {
    auto const info = value.GetTensorTypeAndShapeInfo();
    auto const found = info.GetShape();
    if (found == shape && info.GetElementType() == type) return;
    auto const text = [](std::vector<std::int64_t> const& sizes) {
      std::string result;
      for (auto const size : sizes) result.append(result.empty() ? "[" : ", ").append(std::to_string(size));
      return result + "]";
    };
    throw std::runtime_error("onnxruntime: " + name_ + ": output " + output + " has the shape " + text(found) +
                             ", not " + text(shape) + ", or another type");
  }

 private:
  static OnnxTensor tensor(std::string name, Ort::TypeInfo const& info) {
    OnnxTensor result{.name = std::move(name)};
    if (info.GetONNXType() != ONNX_TYPE_TENSOR) return result;
    auto const tensor_info = info.GetTensorTypeAndShapeInfo();
    result.type = tensor_info.GetElementType();
    result.shape = tensor_info.GetShape();
    std::vector<char const*> symbols(result.shape.size());
    tensor_info.GetSymbolicDimensions(symbols.data(), symbols.size());
    for (auto const* const symbol : symbols) result.symbols.emplace_back(symbol == nullptr ? "" : symbol);
    return result;
  }
  static OnnxTensor const* find(std::vector<OnnxTensor> const& tensors, std::string_view name) {
    auto const found = std::ranges::find(tensors, name, &OnnxTensor::name);
    return found == tensors.end() ? nullptr : &*found;
  }
  static OnnxTensor const* first_of(std::vector<OnnxTensor> const& tensors, std::vector<std::string> const& names) {
    for (auto const& name : names)
      if (auto const* const found = find(tensors, name)) return found;
    return nullptr;
  }

  std::shared_ptr<Ort::Session> session_;
  std::string name_;
  std::vector<OnnxTensor> inputs_, outputs_;
};

/// Copies numbers of float, float16 or bfloat16 as float.
inline void onnx_floats(Ort::Value const& from, ONNXTensorElementDataType type, std::int64_t first, std::int64_t count,
                        float* to) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16)
    std::transform(from.GetTensorData<Ort::Float16_t>() + first, from.GetTensorData<Ort::Float16_t>() + first + count,
                   to, [](Ort::Float16_t x) { return x.ToFloat(); });
  else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16)
    std::transform(from.GetTensorData<Ort::BFloat16_t>() + first, from.GetTensorData<Ort::BFloat16_t>() + first + count,
                   to, [](Ort::BFloat16_t x) { return x.ToFloat(); });
  else std::copy_n(from.GetTensorData<float>() + first, count, to);
}

inline bool onnx_is_float(ONNXTensorElementDataType type) {
  return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 ||
         type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
}

}  // namespace detail

/// Loads a file. `env` must outlive the session. \throws std::runtime_error  "onnxruntime: FILE: ..."
inline OnnxGraph load_onnx(Ort::Env const& env, std::filesystem::path const& file,
                           Ort::SessionOptions const& options = Ort::SessionOptions()) {
  return detail::onnx_call(file.string(), [&] {
    return OnnxGraph{std::make_shared<Ort::Session>(env, file.c_str(), options), file.string()};
  });
}

/// The product that `tools/onnx-cut` has cut off the end of a graph: logits = weights h + bias.
struct OnnxOutput {
  std::vector<float> numbers{};  ///< [V, d]
  std::vector<float> bias{};     ///< [V], or empty
  std::ptrdiff_t size = 0;       ///< d

  MatrixView<float const> weights() const { return {numbers.data(), std::ssize(numbers) / size, size, size}; }
};

/// Reads it from the file that the script wrote beside the graph: a graph of the outputs `weights` [V, d] and perhaps
/// `bias` [V]. \throws std::invalid_argument  for a graph that has no such outputs
inline OnnxOutput onnx_output(OnnxGraph const& graph) {
  detail::OnnxSession const session(graph, "output layer");
  auto const rule = "must be a graph without inputs, with the outputs weights [V, d] and, perhaps, bias [V]";
  auto const* const weights = session ? session.output("weights") : nullptr;
  require(weights != nullptr && session.inputs().empty() && weights->rank() == 2 && weights->shape[1] > 0 &&
              detail::onnx_is_float(weights->type),
          "onnxruntime: output layer", session.name(), rule);
  auto const* const bias = session.output("bias");
  require(bias == nullptr || (bias->shape == std::vector{weights->shape[0]} && detail::onnx_is_float(bias->type)),
          "onnxruntime: output layer", session.name(), rule);
  std::vector<std::string> wanted{"weights"};
  if (bias != nullptr) wanted.emplace_back("bias");
  auto const values = session.run({}, wanted);
  OnnxOutput result{.size = static_cast<std::ptrdiff_t>(weights->shape[1])};
  auto const count = weights->shape[0] * weights->shape[1];
  result.numbers.resize(static_cast<std::size_t>(count));
  detail::onnx_floats(values[0], weights->type, 0, count, result.numbers.data());
  if (bias != nullptr) {
    result.bias.resize(static_cast<std::size_t>(bias->shape[0]));
    detail::onnx_floats(values[1], bias->type, 0, bias->shape[0], result.bias.data());
  }
  return result;
}

}  // namespace sluice::inline v0
