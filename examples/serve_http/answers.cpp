// SPDX-License-Identifier: Apache-2.0
#include <serve_http/answers.hpp>

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

Json answer_json(std::size_t index, Answer const& answer, bool scores) {
  Json json{{"index", index},
            {"text", answer.candidates.empty() ? "" : answer.candidates.front().text},
            {"hypotheses", Json::array()},
            {"source_tokens", answer.source_tokens},
            {"tokens", answer.tokens}};
  for (auto const& one : answer.candidates) {
    Json hypothesis{{"text", one.text}, {"finished", one.finished}};
    if (scores) hypothesis["score"] = one.score, hypothesis["log_prob"] = one.log_prob;
    json["hypotheses"].push_back(std::move(hypothesis));
  }
  if (answer.demanded > 0 || !answer.forbidden.empty())
    json["constraints"] = {{"demanded", answer.demanded},
                           {"met", answer.met},
                           {"missing", answer.missing},
                           {"forbidden", answer.forbidden}};
  if (answer.failure != sluice::Failure::none)
    json["error"] = {{"name", sluice::name(answer.failure)}, {"message", answer.message}};
  return json;
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
