// SPDX-License-Identifier: Apache-2.0
/// \file
/// A reader of safetensors files that believes nothing it reads.
#pragma once

#include <nlohmann/json.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice::example {

/// The value of an IEEE half-precision number.
inline float half_to_float(std::uint16_t bits) {
  auto const sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  auto const magnitude = static_cast<std::uint32_t>(bits & 0x7FFFu) << 13;
  if (magnitude >= 0x7C00u << 13) return std::bit_cast<float>(sign | 0x7F800000u | magnitude);  // infinity, NaN
  // As a float with the exponent's bias of a half: the product makes good for the difference, of subnormals too.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f));
}

/// One tensor of a file: a view, valid as long as its Safetensors.
struct Tensor {
  std::string dtype;                ///< as in the file: "F32", "F16", ...
  std::vector<std::int64_t> shape;  ///< each >= 0; their product fits the data
  std::span<std::byte const> data;  ///< row-major, little endian
};

/// The tensors and metadata of a safetensors file, read into memory.
///
/// Every fault of the file is a std::runtime_error that names the file, the tensor and the value: a header that is
/// longer than the file or not the JSON it should be, names that come twice, unknown types, shapes that are negative or
/// overflow, data that lie outside the file, overlap, leave gaps or differ in size from shape and type.
class Safetensors {
 public:
  explicit Safetensors(std::filesystem::path const& path) : path_(path.string()), bytes_(read(path)) { parse(); }
  /// From memory; `name` stands in messages.
  Safetensors(std::string name, std::vector<std::byte> bytes) : path_(std::move(name)), bytes_(std::move(bytes)) {
    parse();
  }
  ~Safetensors() = default;
  Safetensors(Safetensors const&) = delete;  // views look at the bytes; moving keeps them where they are
  Safetensors& operator=(Safetensors const&) = delete;
  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

  std::map<std::string, Tensor> const& tensors() const { return tensors_; }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }

  /// The numbers of tensor `name`, whose shape must be `shape`; from F32, F16 or BF16.
  std::vector<float> floats(std::string const& name, std::vector<std::int64_t> const& shape) const {
    auto const found = tensors_.find(name);
    if (found == tensors_.end()) fail(name, "is missing");
    auto const& tensor = found->second;
    if (tensor.shape != shape) fail(name, "has shape " + text(tensor.shape) + ", expected " + text(shape));
    if (tensor.dtype == "F32")
      return convert<std::uint32_t>(tensor.data, [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
    if (tensor.dtype == "F16") return convert<std::uint16_t>(tensor.data, half_to_float);
    if (tensor.dtype == "BF16")
      return convert<std::uint16_t>(
          tensor.data, [](std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); });
    fail(name, "has dtype " + tensor.dtype + ", expected F32, F16 or BF16");
  }

 private:
  static_assert(std::endian::native == std::endian::little, "safetensors are little endian");
  using Json = nlohmann::json;

  [[noreturn]] void fail(std::string const& what) const { throw std::runtime_error(path_ + ": " + what); }
  [[noreturn]] void fail(std::string const& tensor, std::string const& what) const {
    fail("tensor '" + tensor + "' " + what);
  }
  static std::string text(std::vector<std::int64_t> const& shape) { return Json(shape).dump(); }
  /// A value of the header for a message; broken UTF-8 and great length are cut.
  static std::string text(Json const& value) {
    auto shown = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (shown.size() > 80) shown = shown.substr(0, 77) + "...";
    return shown;
  }

  static std::vector<std::byte> read(std::filesystem::path const& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path.string() + ": cannot be opened");
    std::error_code error;  // a folder can be opened, but has no size
    auto const size = std::filesystem::file_size(path, error);
    if (error) throw std::runtime_error(path.string() + ": " + error.message());
    std::vector<std::byte> bytes(size);
    if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
      throw std::runtime_error(path.string() + ": cannot be read");
    return bytes;
  }

  template <class Bits, class Convert>
  static std::vector<float> convert(std::span<std::byte const> data, Convert&& to_float) {
    std::vector<float> numbers(data.size() / sizeof(Bits));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      Bits bits;
      std::memcpy(&bits, data.data() + i * sizeof(Bits), sizeof(Bits));
      numbers[i] = to_float(bits);
    }
    return numbers;
  }

  static std::size_t bytes_of(std::string_view dtype) {
    static constexpr std::pair<std::string_view, std::size_t> sizes[] = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
        {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
    for (auto const& [name, size] : sizes)
      if (name == dtype) return size;
    return 0;
  }

  /// The header as JSON, in which no name may come twice in one object.
  Json header(std::string_view json) const {
    std::vector<std::set<std::string>> names;
    auto const watch = [&](int, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::object_start) names.emplace_back();
      if (event == Json::parse_event_t::object_end) names.pop_back();
      if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
        fail("the header names " + text(value) + " twice");
      return true;
    };
    // The parser recurses nowhere, but what it builds is destroyed level by level; a header has three levels.
    int depth = 0;
    for (bool quoted = false, escaped = false; auto const c : json) {
      if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      if (depth > 8) fail("the header is nested too deeply");
      if (c == '"' && !escaped) quoted = !quoted;
      escaped = c == '\\' && !escaped;
    }
    try {
      return Json::parse(json, watch);
    } catch (Json::exception const& e) {
      fail(std::string("the header is not JSON: ") + e.what());
    }
  }

  void parse() {
    std::uint64_t length = 0;
    if (bytes_.size() < sizeof(length))
      fail("has " + std::to_string(bytes_.size()) + " bytes, too few for a safetensors file");
    std::memcpy(&length, bytes_.data(), sizeof(length));
    if (length > bytes_.size() - sizeof(length))
      fail("the header's length " + std::to_string(length) + " exceeds the file's " + std::to_string(bytes_.size()) +
           " bytes");
    auto const size = static_cast<std::size_t>(length);
    auto const json = header({reinterpret_cast<char const*>(bytes_.data()) + sizeof(length), size});
    if (!json.is_object()) fail("the header is not an object but " + text(json));
    auto const data = std::span<std::byte const>(bytes_).subspan(sizeof(length) + size);
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> order;
    for (auto const& [name, entry] : json.items()) {
      if (name == "__metadata__") {
        add_metadata(entry);
        continue;
      }
      auto const range = add_tensor(name, entry, data);
      if (auto const [at, fresh] = order.emplace(range, name); !fresh && range.first != range.second)
        fail(name, "overlaps tensor '" + at->second + "'");
    }
    std::uint64_t end = 0;
    for (auto const& [range, name] : order) {
      if (range.first != end)
        fail(name,
             "begins at " + std::to_string(range.first) + ", but the data before it end at " + std::to_string(end));
      end = range.second;
    }
    if (end != data.size())
      fail("the tensors end at " + std::to_string(end) + ", but there are " + std::to_string(data.size()) +
           " bytes of data");
  }

  void add_metadata(Json const& entry) {
    if (!entry.is_object()) fail("__metadata__ is not an object but " + text(entry));
    for (auto const& [key, value] : entry.items()) {
      if (!value.is_string()) fail("__metadata__: '" + key + "' is not a string but " + text(value));
      metadata_[key] = value.get<std::string>();
    }
  }

  std::pair<std::uint64_t, std::uint64_t> add_tensor(std::string const& name, Json const& entry,
                                                     std::span<std::byte const> data) {
    if (!entry.is_object()) fail(name, "is not an object but " + text(entry));
    for (auto const& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets") fail(name, "has an unknown field '" + key + "'");
    for (auto const* const key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key)) fail(name, std::string("has no ") + key);

    auto const& dtype = entry["dtype"];
    auto const bytes = dtype.is_string() ? bytes_of(dtype.get_ref<std::string const&>()) : 0;
    if (bytes == 0) fail(name, "has an unknown dtype " + text(dtype));

    auto const& shape = entry["shape"];
    if (!shape.is_array()) fail(name, "has a shape that is no array: " + text(shape));
    Tensor tensor{dtype.get<std::string>(), {}, {}};
    for (auto const& extent : shape) {
      if (!extent.is_number_unsigned() ||
          extent.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail(name, "has an impossible shape " + text(shape));
      tensor.shape.push_back(extent.get<std::int64_t>());
    }
    std::uint64_t size = bytes;
    for (auto const extent : tensor.shape)
      if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size))
        fail(name, "has a shape that overflows: " + text(shape));

    auto const& offsets = entry["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail(name, "has data_offsets that are not two numbers: " + text(offsets));
    std::pair const range(offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>());
    if (range.first > range.second || range.second > data.size())
      fail(name,
           "has data_offsets " + text(offsets) + " outside the " + std::to_string(data.size()) + " bytes of data");
    if (range.second - range.first != size)
      fail(name, "has " + std::to_string(range.second - range.first) + " bytes, but dtype and shape " + text(shape) +
                     " need " + std::to_string(size));
    tensor.data = data.subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(size));
    tensors_.emplace(name, std::move(tensor));
    return range;
  }

  std::string path_;
  std::vector<std::byte> bytes_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace sluice::example
