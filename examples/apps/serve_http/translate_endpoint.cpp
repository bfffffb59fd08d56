// SPDX-License-Identifier: Apache-2.0
#include <http/answers.hpp>
#include <http/event_stream.hpp>
#include <memory>
#include <serve_http/settings.hpp>
#include <serve_http/translate_endpoint.hpp>
#include <string>
#include <vector>

namespace serve {

namespace {

/// Of one sentence.
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

/// What is new of a beginning that grows, or the result.
struct Writer {
  bool scores;

  std::string operator()(Flight& flight, Flight::Letter& letter) {
    if (letter.result) return event("result", answer_json(letter.index, flight.answer(letter), scores));
    auto const more = flight.job(letter.index).append(letter.settled);
    return more.empty() ? more : event("delta", {{"index", letter.index}, {"text", more}});
  }
};

}  // namespace

void answer_translate(House const& house, Offer const& offer, httplib::Request const& request,
                      httplib::Response& response) {
  Fields fields(request.body);
  auto const task = read_task(fields, house.bounds, offer);
  auto const scores = dynamic_cast<TranslationSettings const&>(*task.settings).scores;
  if (wants_events(request, task.stream)) {
    auto flight = std::make_shared<Flight>(house, task, true);
    Writer writer{scores};
    stream(response, std::move(flight), std::move(writer), [] { return event("done", Json::object()); });
    return;
  }
  Flight flight(house, task, false);
  std::vector<Json> results(flight.size());
  auto failure = sluice::Failure::none;
  std::string message;
  auto good = false;
  while (flight.open() > 0)
    for (auto& letter : flight.wait()) {
      auto const answer = flight.answer(letter);
      if (answer.failure == sluice::Failure::none) good = true;
      else if (failure == sluice::Failure::none) failure = answer.failure, message = what_failed(answer);
      results[letter.index] = answer_json(letter.index, answer, scores);
    }
  Json json{{"model", house.backend.name()}, {"results", results}};
  auto const status = good ? 200 : status_of(failure);
  if (!good) json.update(error_json(status, message));
  send(response, status, json);
}

}  // namespace serve
