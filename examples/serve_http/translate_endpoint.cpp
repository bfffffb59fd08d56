// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <serve_http/answers.hpp>
#include <serve_http/event_stream.hpp>
#include <serve_http/translate_endpoint.hpp>
#include <string>
#include <vector>

namespace serve {

namespace {

/// A beginning that grows, or the result.
struct Writer {
  std::vector<std::string> shown;
  bool scores;

  std::string operator()(Flight& flight, Flight::Letter& letter) {
    auto& job = flight.job(letter.index);
    if (letter.result) return event("result", answer_json(letter.index, job.answer(*letter.result), scores));
    auto& text = shown[letter.index];
    auto const more = job.settle(letter.settled);
    if (more.empty()) return {};
    text += more;
    return event("settled", {{"index", letter.index}, {"text", text}});
  }
};

}  // namespace

void answer_translate(House const& house, httplib::Request const& request, httplib::Response& response) {
  Fields fields(request.body);
  auto const task = read_task(fields, house.bounds);
  auto const scores = task.settings.scores;
  if (wants_events(request, task.stream)) {
    auto flight = std::make_shared<Flight>(house, task, true);
    Writer writer{std::vector<std::string>(task.asks.size()), scores};
    stream(response, std::move(flight), std::move(writer), [] { return event("done", Json::object()); });
    return;
  }
  Flight flight(house, task, false);
  std::vector<Json> results(flight.size());
  auto failure = sluice::Failure::none;
  auto good = false;
  while (flight.open() > 0)
    for (auto& letter : flight.wait()) {
      auto const answer = flight.job(letter.index).answer(*letter.result);
      if (answer.failure == sluice::Failure::none) good = true;
      else if (failure == sluice::Failure::none) failure = answer.failure;
      results[letter.index] = answer_json(letter.index, answer, scores);
    }
  send(response, good ? 200 : status_of(failure), {{"model", house.backend.name()}, {"results", results}});
}

}  // namespace serve
