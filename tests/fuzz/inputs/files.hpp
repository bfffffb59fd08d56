// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files of numbers: safetensors, clusters, catalogues. Lengths and checksums are made right, else nothing behind them
/// would ever be read.
#pragma once

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/output/train_clusters.hpp>

#include <fuzz/demand.hpp>
#include <transformer/safetensors.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

inline std::vector<std::byte> as_bytes(std::string_view text) {
  auto const bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The first byte: 0: a whole file; else a header up to the first zero byte, and data.
inline void safetensors(std::string_view text) {
  if (text.empty()) return;
  auto const whole = text.front() == 0;
  text.remove_prefix(1);
  auto file = std::string(text);
  if (!whole) {
    auto const end = std::min(text.find('\0'), text.size());
    std::uint64_t const length = end;
    file.assign(reinterpret_cast<char const*>(&length), sizeof length);
    file.append(text.substr(0, end)).append(text.substr(std::min(end + 1, text.size())));
  }
  try {
    example::Safetensors const tensors("name", as_bytes(file));
    std::size_t bytes = 0;
    for (auto const& [name, tensor] : tensors.tensors()) {
      bytes += tensor.data.size();
      if (tensor.dtype != "F32" && tensor.dtype != "F16" && tensor.dtype != "BF16") continue;
      auto const count = tensors.floats(name, tensor.shape).size();
      demand(count * (tensor.dtype == "F32" ? 4 : 2) == tensor.data.size(), "another number of numbers", name);
    }
    demand(bytes <= file.size(), "tensors overlap", file);
  } catch (std::runtime_error const& e) {
    demand(std::string_view(e.what()).starts_with("name: "), "a message without the file's name", e.what());
  }
}

inline std::string written(ClustersByDirection const& clusters) {
  std::ostringstream stream;
  write_clusters(stream, clusters);
  return std::move(stream).str();
}

/// A file's content, between length and checksum.
inline void clusters(std::string_view content) {
  std::string file(sluice::detail::clusters_magic);
  sluice::detail::put(file, sluice::detail::clusters_version);
  sluice::detail::put(file, static_cast<std::uint64_t>(content.size()));
  file += content;
  sluice::detail::put(file, sluice::detail::fnv1a(file));
  try {
    std::istringstream stream(file);
    auto const once = written(read_clusters(stream));
    std::istringstream again(once);
    demand(written(read_clusters(again)) == once, "clusters that are read are not those that were written");
  } catch (std::runtime_error const& e) {
    demand(std::string_view(e.what()).starts_with("clusters: "), "a message that does not say of what", e.what());
  }
}

/// Whatever the file says, all of it is within its bytes.
inline void walk(Catalogue const& catalogue) {
  std::vector<Catalogue::Node> nodes{catalogue.root()};
  std::vector<Token> tokens;
  std::vector<Item> first, last;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() < 200; ++i) {
    tokens.clear(), first.clear(), last.clear();
    catalogue.list_children(nodes[i], tokens, first, last);
    demand(tokens.size() == first.size() && first.size() == last.size(), "children without tokens, or without items");
    static_cast<void>(catalogue.is_item(nodes[i]));
    catalogue.for_each_child(nodes[i], [&](Token token, Item begin, Item end) {
      nodes.push_back({nodes[i].depth + 1, begin, end});
      static_cast<void>(catalogue.child(nodes[i], token));
    });
  }
  for (Item item = 0; item < std::min(catalogue.size(), 50); ++item)
    static_cast<void>(catalogue.find(catalogue.tokens(item)));
}

/// A whole file, but for magic, version, size and checksums.
inline void catalogue(std::string_view text) {
  auto file = as_bytes(text);
  file.resize(std::max<std::size_t>((file.size() + 63) / 64 * 64, 128));
  auto const put = [&](std::size_t at, auto number) { std::memcpy(file.data() + at, &number, sizeof number); };
  std::memcpy(file.data(), sluice::detail::catalogue_magic, 8);
  put(8, sluice::detail::catalogue_version), put(16, static_cast<std::uint64_t>(file.size()));
  sluice::detail::seal(file);
  for (auto const check : {CatalogueCheck::head, CatalogueCheck::all}) try {
      auto const catalogue = Catalogue::from_bytes(file, check);
      walk(catalogue);
      if (check == CatalogueCheck::head) continue;
      std::vector<Token> last;
      for (Item item = 0; item < std::min(catalogue.size(), 50); ++item) {
        auto const tokens = catalogue.tokens(item);
        demand(catalogue.find(tokens) == item, "an item is not found by its tokens");
        demand(item == 0 || last < tokens, "items are not in their order");
        last = tokens;
      }
    } catch (std::runtime_error const& e) {
      demand(std::string_view(e.what()).starts_with("catalogue: "), "a message that does not say of what", e.what());
    }
}

}  // namespace sluice::test
