// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>

#include <http/answers.hpp>
#include <string_view>

namespace serve {

std::string dump(Json const& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void send(httplib::Response& response, int status, Json const& json) {
  response.status = status;
  response.set_content(dump(json) + '\n', "application/json");
}

Json error_json(int status, std::string const& message, std::string const& field) {
  auto const* const type = status == 401   ? "authentication_error"
                           : status == 429 ? "rate_limit_error"
                           : status >= 500 ? "server_error"
                                           : "invalid_request_error";
  return {{"error",
           {{"message", message}, {"type", type}, {"param", field.empty() ? Json() : Json(field)}, {"code", status}}}};
}

void send_error(httplib::Response& response, int status, std::string const& message, std::string const& field) {
  if (status == 429 || status == 503) response.set_header("Retry-After", "1");
  send(response, status, error_json(status, message, field));
}

std::string token_name(std::string const& bytes) {
  if (text::valid_utf8(bytes)) return bytes;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name = "bytes:";
  for (auto const c : bytes) {
    auto const byte = static_cast<unsigned char>(c);
    name += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
  }
  return name;
}

std::string what_failed(Answer const& answer) {
  return std::string(sluice::name(answer.failure)) + ": " + answer.message;
}

int status_of(sluice::Failure failure) {
  switch (failure) {
    case sluice::Failure::none: return 200;
    case sluice::Failure::bad_request:
    case sluice::Failure::source:
    case sluice::Failure::no_token_left: return 400;
    case sluice::Failure::no_room: return 413;
    case sluice::Failure::late: return 504;
    case sluice::Failure::refused:
    case sluice::Failure::cancelled: return 503;
    default: return 500;
  }
}

}  // namespace serve
