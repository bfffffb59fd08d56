// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <random>
#include <serve_http/page.hpp>
#include <serve_http/trace_endpoint.hpp>
#include <string>

namespace serve {

namespace {

/// An unpredictable number.
std::string nonce() {
  std::random_device random;
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text.data();
}

}  // namespace

void answer_page(House const&, httplib::Request const&, httplib::Response& response) {
  auto const once = nonce();
  std::string html(page);
  for (std::size_t at = 0; (at = html.find("NONCE", at)) != html.npos;) html.replace(at, 5, once);
  // The page of a trace is opened as a blob of this one, and inherits its policy in addition to its own.
  static auto const trace_script = trace_page_source("script-src"), trace_style = trace_page_source("style-src");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; script-src 'nonce-" + once + "' " + trace_script + "; style-src 'nonce-" +
                          once + "' " + trace_style +
                          "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                          "frame-ancestors 'none'");
  response.set_content(html, "text/html; charset=utf-8");
}

}  // namespace serve
