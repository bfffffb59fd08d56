// SPDX-License-Identifier: Apache-2.0
/// \file
/// References between schemas.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// A URI reference without its fragment, resolved against a base (RFC 3986, 5.2).
inline std::string resolved_uri(std::string_view base, std::string_view ref) {
  auto const scheme = [](std::string_view uri) {
    auto const end = uri.find_first_of(":/?#");
    return end != std::string_view::npos && end > 0 && uri[end] == ':' ? end + 1 : std::size_t{0};
  };
  if (ref.empty()) return std::string(base);
  if (scheme(ref) > 0) return std::string(ref);
  auto const begin = scheme(base);
  if (ref.starts_with("//")) return std::string(base.substr(0, begin)).append(ref);
  auto host = begin;
  if (base.substr(begin).starts_with("//")) host = (std::min)(base.find_first_of("/?", begin + 2), base.size());
  std::string out(base.substr(0, host));
  auto path = base.substr(host);
  path = path.substr(0, path.find('?'));
  if (ref[0] == '?') return out.append(path).append(ref);
  auto const query = (std::min)(ref.find('?'), ref.size());
  std::string whole(ref[0] == '/' ? std::string_view() : path.substr(0, path.rfind('/') + 1));
  if (ref[0] != '/' && whole.empty() && host > begin) whole = "/";
  whole.append(ref.substr(0, query));
  std::vector<std::string> parts;
  std::string_view rest = whole;
  auto const rooted = rest.starts_with('/');
  if (rooted) rest.remove_prefix(1);
  for (auto more = true; more;) {
    auto const end = rest.find('/');
    auto const part = rest.substr(0, end);
    more = end != std::string_view::npos;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
      if (!more) parts.emplace_back();
    } else if (part != ".") parts.emplace_back(part);
    else if (!more) parts.emplace_back();
    if (more) rest.remove_prefix(end + 1);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) out.append(rooted || i > 0 ? "/" : "").append(parts[i]);
  return out.append(ref.substr(query));
}

/// With %XX replaced.
inline std::string uri_decoded(std::string_view text) {
  auto const hex = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0)
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])), i += 2;
    else out += text[i];
  return out;
}

}  // namespace sluice::inline v0::detail
