// SPDX-License-Identifier: Apache-2.0
/// \file
/// Serialised clusters: write_clusters() and read_clusters().
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/output/clusters/clusters.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

// The format, version 1. All numbers are little-endian.
//
//   8 bytes   "SLUICECL"
//   uint32    version
//   uint64    length of the content in bytes
//   content   uint32 number of directions; for each, in ascending order of names:
//               uint32 length of the name, the name
//               uint32 d, uint32 V, uint32 number of clusters
//               uint8  centroids are 0 = float32, 1 = bfloat16; then [clusters, d] of them
//               for each cluster: number of tokens, then each token minus the one before (at first -1), minus 1.
//               These are varints: 7 bits a byte, low ones first, the high bit says that more follow.
//   uint64    FNV-1a of all before

namespace detail {

constexpr std::string_view clusters_magic = "SLUICECL";
constexpr std::uint32_t clusters_version = 1;

/// FNV-1a, 64 bits (Fowler, Noll and Vo). Every single changed byte changes it.
constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (auto const byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return hash;
}

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) to.push_back(static_cast<char>((number >> (8 * i)) & 0xFF));
}

inline void put_varint(std::string& to, std::uint32_t number) {
  for (; number >= 0x80; number >>= 7) to.push_back(static_cast<char>((number & 0x7F) | 0x80));
  to.push_back(static_cast<char>(number));
}

template <class = void>
void put_clusters(std::string& to, Clusters const& clusters) {
  put(to, static_cast<std::uint32_t>(clusters.hidden_size));
  put(to, static_cast<std::uint32_t>(clusters.vocabulary_size));
  put(to, static_cast<std::uint32_t>(clusters.size()));
  // Half the size if that loses nothing.
  auto const half = std::all_of(clusters.centroids.begin(), clusters.centroids.end(),
                                [](float x) { return (std::bit_cast<std::uint32_t>(x) & 0xFFFF) == 0; });
  put(to, std::uint8_t{half});
  for (auto const x : clusters.centroids) {
    auto const bits = std::bit_cast<std::uint32_t>(x);
    if (half) put(to, static_cast<std::uint16_t>(bits >> 16));
    else put(to, bits);
  }
  for (std::ptrdiff_t c = 0; c < clusters.size(); ++c) {
    put_varint(to, static_cast<std::uint32_t>(clusters[c].size()));
    Token last = -1;
    for (auto const token : clusters[c]) put_varint(to, static_cast<std::uint32_t>(token - last - 1)), last = token;
  }
}

/// Reads numbers from the front of a file's content. The checksum was right, so errors are the writer's.
class ClustersReader {
 public:
  explicit ClustersReader(std::string_view bytes) : bytes_(bytes) {}

  template <class = void>
  [[noreturn]] static void fail(std::string const& what) {
    throw std::runtime_error("clusters: " + what);
  }

  template <class Number>
  Number number(char const* what) {
    auto const bytes = take(sizeof(Number), what);
    Number number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      number = static_cast<Number>(number | static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i));
    return number;
  }

  template <class = void>
  std::uint32_t varint(char const* what) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      auto const byte = number<std::uint8_t>(what);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte >= 0x80) continue;
      if (value > (std::numeric_limits<std::uint32_t>::max)()) break;
      return static_cast<std::uint32_t>(value);
    }
    fail(std::string(what) + " is more than 32 bits");
  }

  template <class = void>
  std::string_view take(std::size_t count, char const* what) {
    if (count > bytes_.size())
      fail(std::string(what) + ": " + std::to_string(count) + " bytes announced, " + std::to_string(bytes_.size()) +
           " left");
    auto const taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  template <class = void>
  Clusters clusters() {
    constexpr std::uint32_t largest = (std::numeric_limits<std::int32_t>::max)();
    auto const d = number<std::uint32_t>("hidden size");
    auto const v = number<std::uint32_t>("vocabulary size");
    auto const count = number<std::uint32_t>("number of clusters");
    auto const half = number<std::uint8_t>("type of centroids");
    for (auto const& [value, what] :
         {std::pair(d, "hidden size"), {v, "vocabulary size"}, {count, "number of clusters"}})
      if (value == 0 || value > largest) fail(std::string(what) + " is " + std::to_string(value));
    if (half > 1) fail("type of centroids is " + std::to_string(half) + ", neither 0 nor 1");

    Clusters clusters{.hidden_size = static_cast<std::ptrdiff_t>(d), .vocabulary_size = static_cast<std::int32_t>(v)};
    auto const numbers = std::size_t{d} * count;  // < 2^62, so that bytes fit too
    std::size_t const width = half != 0 ? 2 : 4;
    ClustersReader centroids(take(numbers * width, "centroids"));
    clusters.centroids.resize(numbers);
    for (auto& x : clusters.centroids)
      x = std::bit_cast<float>(half != 0 ? std::uint32_t{centroids.number<std::uint16_t>("centroid")} << 16
                                         : centroids.number<std::uint32_t>("centroid"));
    for (std::uint32_t c = 0; c < count; ++c) {
      std::int64_t token = -1;
      for (auto left = varint("number of tokens"); left > 0; --left) {
        token += std::int64_t{varint("token")} + 1;
        if (token >= std::int64_t{v}) fail("token " + std::to_string(token) + " is outside the vocabulary");
        clusters.tokens.push_back(static_cast<Token>(token));
      }
      clusters.begin.push_back(std::ssize(clusters.tokens));
    }
    return clusters;
  }

  bool done() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

/// Appends up to `count` bytes of a stream to `to`, in pieces, so that a wrong count does not allocate much memory.
template <class = void>
void get_bytes(std::istream& from, std::uint64_t count, std::string& to) {
  constexpr std::size_t at_once = std::size_t{1} << 20;
  while (count > 0 && from) {
    auto const before = to.size();
    to.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(count, at_once)));
    from.read(to.data() + before, static_cast<std::streamsize>(to.size() - before));
    count -= static_cast<std::uint64_t>(from.gcount());
    to.erase(before + static_cast<std::size_t>(from.gcount()));
  }
}

}  // namespace detail

/// Writes the clusters of one or several directions. A centroid number takes two bytes if all are exact in bfloat16,
/// else four; reading gives back what was written, bit for bit. Write to a binary stream.
/// \throws std::invalid_argument  for invalid clusters, see check(): nothing is written
/// \throws std::runtime_error     if writing to the stream fails
template <class = void>
void write_clusters(std::ostream& stream, ClustersByDirection const& directions) {
  std::string content;
  detail::put(content, static_cast<std::uint32_t>(directions.size()));
  for (auto const& [name, clusters] : directions) {
    check(clusters);
    detail::put(content, static_cast<std::uint32_t>(name.size()));
    content += name;
    detail::put_clusters(content, clusters);
  }
  std::string file(detail::clusters_magic);
  detail::put(file, detail::clusters_version);
  detail::put(file, std::uint64_t{content.size()});
  file += content;
  detail::put(file, detail::fnv1a(file));
  stream.write(file.data(), static_cast<std::streamsize>(file.size()));
  stream.flush();
  if (!stream) throw std::runtime_error("clusters: cannot be written");
}

/// Reads what write_clusters() wrote, from a binary stream, to its end.
/// \throws std::runtime_error  for anything else, saying what is wrong: not a file of clusters, a newer version,
///                             truncated, or corrupt
template <class = void>
ClustersByDirection read_clusters(std::istream& stream) {
  using Reader = detail::ClustersReader;
  constexpr auto head = detail::clusters_magic.size() + 12;
  std::string file;
  detail::get_bytes(stream, head, file);
  auto const magic = std::string_view(file).substr(0, detail::clusters_magic.size());
  if (file.empty()) Reader::fail("there is nothing to read");
  if (magic != detail::clusters_magic.substr(0, magic.size())) Reader::fail("this is not a file of clusters");
  auto const cut = [&] { Reader::fail("cut off after " + std::to_string(file.size()) + " bytes"); };
  if (file.size() < head) cut();
  Reader reader(std::string_view(file).substr(magic.size()));
  if (auto const written = reader.number<std::uint32_t>("version"); written != detail::clusters_version)
    Reader::fail("version " + std::to_string(written) + " of the format is unknown; only 1 is known");
  auto const length = reader.number<std::uint64_t>("length");
  detail::get_bytes(stream, length, file);
  auto const end = file.size();
  detail::get_bytes(stream, 8, file);
  if (end - head < length || file.size() - end < 8) cut();
  if (stream.peek() != std::istream::traits_type::eof()) Reader::fail("something follows the end");

  std::string_view const bytes(file);
  if (Reader(bytes.substr(end)).number<std::uint64_t>("checksum") != detail::fnv1a(bytes.substr(0, end)))
    Reader::fail("damaged: the checksum is wrong");
  Reader content(bytes.substr(head, end - head));
  ClustersByDirection directions;
  for (auto left = content.number<std::uint32_t>("number of directions"); left > 0; --left) {
    auto name = std::string(content.take(content.number<std::uint32_t>("length of a name"), "name"));
    auto const [place, fresh] = directions.try_emplace(std::move(name), content.clusters());
    if (!fresh) Reader::fail("direction '" + place->first + "' comes twice");
    try {
      check(place->second);
    } catch (std::invalid_argument const& problem) {
      Reader::fail("direction '" + place->first + "': " + problem.what());
    }
  }
  if (!content.done()) Reader::fail("something follows the last direction");
  return directions;
}

}  // namespace sluice::inline v0
