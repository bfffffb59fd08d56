// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <array>
#include <http/answers.hpp>
#include <http/connection.hpp>
#include <http/guard.hpp>
#include <netinet/in.h>
#include <string>

namespace serve {

namespace {

/// Without the port.
std::string_view host_of(std::string_view authority) {
  auto const end = authority.starts_with('[') ? authority.find(']') + 1 : authority.find(':');
  return authority.substr(0, end);
}

/// 127.0.0.1 and the like; not host names that begin so, which may resolve to any address.
bool is_loopback(std::string const& host) {
  in_addr address{};
  return host.starts_with("127.") && inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_local(std::string_view host) {
  return host == "localhost" || host == "[::1]" || is_loopback(std::string(host));
}

bool refuse(httplib::Response& response, int status, char const* why) {
  send_error(response, status, why);
  return true;
}

}  // namespace

bool same(std::string_view secret, std::string_view given) {
  unsigned different = secret.size() == given.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto const other = secret.empty() ? '\0' : secret[i % secret.size()];
    different |= static_cast<unsigned char>(given[i] ^ other);
  }
  return different == 0;
}

/// A client with a token of its own has its own share of the server, wherever it calls from.
bool Guard::knows(httplib::Request const& request) const {
  constexpr std::string_view bearer = "Bearer ";
  auto const given = request.get_header_value("Authorization");
  if (!given.starts_with(bearer)) return false;
  auto known = tokens_.size();
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    if (same(tokens_[i], std::string_view(given).substr(bearer.size()))) known = i;
  if (known == tokens_.size()) return false;
  if (tokens_.size() > 1) Connection::current()->set_client("token " + std::to_string(known));
  return true;
}

bool Guard::refuses(httplib::Request const& request, httplib::Response& response) const {
  auto const length = request.get_header_value("Content-Length");
  auto const chunked = request.has_header("Transfer-Encoding");
  auto const posts = request.method == "POST";
  if (!posts && !chunked && (length.empty() || length == "0")) Connection::current()->end_body();
  if (request.get_header_value_count("Content-Length") > 1 || (chunked && !length.empty()) ||
      length.find_first_not_of("0123456789") != length.npos || length.size() > 15)
    return refuse(response, 400, "Content-Length is not a valid number");
  // std::regex, which the route /v1/models/(.+) is, takes a piece of the stack for each character.
  if (request.path.size() > 512) return refuse(response, 414, "the path is too long");
  auto const host = request.get_header_value("Host");
  if (local_ && !is_local(host_of(host)))
    return refuse(response, 403, "Host: this server answers only requests to this machine");
  if (auto const origin = request.get_header_value("Origin");
      !origin.empty() && origin != "http://" + host && origin != "https://" + host)
    return refuse(response, 403, "Origin: requests from other sites are refused");
  auto const open = request.path == "/" || request.path == "/health";  // the page asks for the token
  if (!tokens_.empty() && !knows(request) && !open) {
    response.set_header("WWW-Authenticate", "Bearer");
    return refuse(response, 401, "Authorization: Bearer with the right token is required");
  }
  if (!posts) return false;
  if (admission_.closed()) return refuse(response, 503, "the server is shutting down");
  if (length.empty() && !chunked) return refuse(response, 411, "Content-Length is missing");
  if (!length.empty() && std::stoull(length) > Connection::current()->most_body())
    return refuse(response, 413, "the body is too large");
  if (request.has_header("Content-Encoding")) return refuse(response, 415, "Content-Encoding is not supported");
  // A page of another site may send forms and plain text without asking; JSON it may not.
  if (!request.get_header_value("Content-Type").starts_with("application/json"))
    return refuse(response, 415, "Content-Type must be application/json");
  return false;
}

void Guard::protect(httplib::Response& response) {
  for (auto const& [name, value] : {std::array{"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"},
                                    {"Referrer-Policy", "no-referrer"},
                                    {"Cross-Origin-Resource-Policy", "same-origin"},
                                    {"Cross-Origin-Opener-Policy", "same-origin"},
                                    {"Cache-Control", "no-store"}})
    response.set_header(name, value);
  if (!response.has_header("Content-Security-Policy"))
    response.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
}

void Guard::explain(httplib::Request const&, httplib::Response& response) {
  if (!response.body.empty()) return;
  auto const* const connection = Connection::current();
  switch (connection->trouble()) {
    case Connection::Trouble::body_too_large: return send_error(response, 413, "the body is too large");
    case Connection::Trouble::too_slow: return send_error(response, 408, "the request did not arrive in time");
    case Connection::Trouble::none: break;
  }
  switch (response.status) {
    case 404: return send_error(response, 404, "nothing at this path, or not for this method");
    case 413: return send_error(response, 413, "the body is too large");
    case 414: return send_error(response, 414, "the path is too long");
    default: return send_error(response, response.status, "invalid request");
  }
}

}  // namespace serve
