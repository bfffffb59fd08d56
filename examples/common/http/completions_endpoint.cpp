// SPDX-License-Identifier: Apache-2.0
#include <text/json.hpp>
#include <text/words.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <http/answers.hpp>
#include <http/completions_endpoint.hpp>
#include <http/event_stream.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace serve {

namespace {

/// What the answer needs from the request.
struct Shape {
  Json head;  // of the answer, and of every chunk
  std::size_t choices = 1;
  bool logprobs = false, top = false, usage = false;
};

struct Usage {
  std::size_t prompt = 0, completion = 0;
  Json json() const {
    return {{"prompt_tokens", prompt}, {"completion_tokens", completion}, {"total_tokens", prompt + completion}};
  }
};

/// Fields that are accepted with these values, which change nothing, and refused with others.
void read_unsupported(Fields& fields) {
  auto const only = [&](char const* name, Json const& harmless) {
    if (auto const* const value = fields.find(name); value != nullptr && *value != harmless)
      throw BadField(name, std::string(name) + " is not supported: " + text::shown(*value));
  };
  only("suffix", "");
  fields.text("user");
}

void read_stream_options(Fields& fields, bool streams, Shape& shape) {
  auto const* const options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!streams) throw BadField("stream_options", "stream_options has no effect without stream");
  if (!options->is_object()) Fields::refuse("stream_options", *options, "an object");
  for (auto const& [name, value] : options->items()) {
    if (name != "include_usage")
      throw BadField("stream_options", "stream_options: '" + name + "' is not a known field");
    if (!value.is_boolean()) Fields::refuse("stream_options.include_usage", value, "true or false");
    shape.usage = value.get<bool>();
  }
}

Completion read_completion(Fields& fields, Bounds const& bounds) {
  Completion c;
  c.temperature = fields.number(
      "temperature", [](double x) { return x >= 0 && x <= 2; }, "a number in [0, 2]");
  c.top_p = fields.number(
      "top_p", [](double x) { return x > 0 && x <= 1; }, "a number in (0, 1]");
  c.seed = fields.natural("seed");
  auto const integer = [&](char const* name, std::int64_t low, std::int64_t high) -> std::optional<std::int32_t> {
    auto const found = fields.integer(name, low, high);
    return found ? std::optional(static_cast<std::int32_t>(*found)) : std::nullopt;
  };
  c.choices = integer("n", 1, bounds.width).value_or(1);
  c.best_of = integer("best_of", c.choices, bounds.width);
  c.echo = fields.flag("echo").value_or(false);
  c.max_tokens = integer("max_tokens", c.echo ? 0 : 1, bounds.length);
  c.logprobs = integer("logprobs", 0, 5);
  c.stop = fields.texts("stop").value_or(std::vector<std::string>{});
  if (c.stop.size() > 4) throw BadField("stop", "stop has more than 4 strings");
  if (std::ranges::find(c.stop, std::string()) != c.stop.end()) throw BadField("stop", "stop contains an empty string");
  return c;
}

Task read(Fields& fields, House const& house, Shape& shape) {
  auto const& bounds = house.bounds;
  Task task;
  auto const prompts = fields.texts("prompt");
  if (!prompts || prompts->empty()) throw BadField("prompt", "prompt is missing: a string, or a list of strings");
  if (prompts->size() > bounds.sentences)
    throw BadField("prompt",
                   "prompt has " + std::to_string(prompts->size()) + " strings, more than " +
                       std::to_string(bounds.sentences),
                   413);
  if (auto const model = fields.text("model"); model && *model != house.backend.name())
    throw BadField("model", "model: no model of that name; GET /v1/models lists them", 404);
  auto const completion = read_completion(fields, bounds);
  shape.choices = static_cast<std::size_t>(completion.choices);
  shape.logprobs = completion.logprobs.has_value(), shape.top = completion.logprobs.value_or(0) > 0;
  task.stream = fields.flag("stream").value_or(false);
  if (task.stream && completion.best_of.value_or(1) > completion.choices)
    throw BadField("best_of", "best_of cannot be streamed: the best output is known only at the end");
  read_stream_options(fields, task.stream, shape);
  read_unsupported(fields);
  task.settings = house.backend.settings(completion, fields, bounds);
  fields.finish();
  task.time = bounds.time;
  for (auto const& prompt : *prompts) task.asks.push_back({.number = task.asks.size() + 1, .text = prompt});

  static std::atomic<std::uint64_t> count = 0;
  auto const now = std::chrono::system_clock::now().time_since_epoch();
  shape.head = {{"id", "cmpl-" + std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) +
                           "-" + std::to_string(++count)},
                {"object", "text_completion"},
                {"created", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                {"model", house.backend.name()}};
  return task;
}

Json logprobs_json(Candidate const& one, bool top) {
  Json json{{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", top ? Json::array() : Json()},
            {"text_offset", Json::array()}};
  std::size_t offset = 0;
  for (auto const& piece : one.pieces) {
    json["tokens"].push_back(piece.name), json["token_logprobs"].push_back(piece.log_prob);
    json["text_offset"].push_back(offset);
    offset +=
        static_cast<std::size_t>(std::ranges::count_if(piece.text, [](char c) { return !text::Utf8::continues(c); }));
    if (!top) continue;
    Json most = Json::object();
    for (auto const& [name, log_prob] : piece.best)
      if (!most.contains(name)) most[name] = log_prob;
    json["top_logprobs"].push_back(piece.best.empty() ? Json() : most);
  }
  return json;
}

/// An empty prompt gives an empty text.
Answer answer_of(Job& job, sluice::Result const& result) {
  auto answer = job.answer(result);
  if (result.ok() && answer.candidates.empty()) answer.candidates.push_back({.finished = true});
  return answer;
}

Json choice(std::size_t index, std::string const& text, Candidate const* ended, Shape const& shape) {
  return {{"index", index},
          {"text", text},
          {"logprobs", ended != nullptr && shape.logprobs ? logprobs_json(*ended, shape.top) : Json()},
          {"finish_reason", ended == nullptr ? Json() : Json(ended->finished ? "stop" : "length")}};
}

/// Chunks: settled text of the first choice; at the end all other choices.
struct Chunks {
  Shape shape;
  std::shared_ptr<Usage> usage = std::make_shared<Usage>();

  std::string chunk(Json choices) const {
    auto json = shape.head;
    json["choices"] = std::move(choices);
    return "data: " + dump(json) + "\n\n";
  }
  std::string operator()(Flight& flight, Flight::Letter& letter) const {
    auto& job = flight.job(letter.index);
    auto const first = letter.index * shape.choices;
    if (!letter.result) {
      auto const more = shape.choices == 1 ? job.settle(letter.settled) : std::string();
      return more.empty() ? more : chunk({choice(first, more, nullptr, shape)});
    }
    auto const answer = answer_of(job, *letter.result);
    if (answer.failure != sluice::Failure::none)
      return "data: " + dump(error_json(status_of(answer.failure), what_failed(answer))) + "\n\n";
    usage->prompt += answer.source_tokens, usage->completion += answer.tokens;
    std::string text;
    for (std::size_t i = 0; i < answer.candidates.size(); ++i) {
      auto const& one = answer.candidates[i];
      text += chunk({choice(first + i, i == 0 ? job.rest(answer) : one.text, &one, shape)});
    }
    return text;
  }
};

}  // namespace

void answer_completions(House const& house, httplib::Request const& request, httplib::Response& response) {
  Shape shape;
  Fields fields(request.body);
  auto const task = read(fields, house, shape);
  if (task.stream) {
    Chunks const chunks{shape};
    stream(response, std::make_shared<Flight>(house, task, true), chunks, [chunks] {
      std::string last;
      if (chunks.shape.usage) {
        auto json = chunks.shape.head;
        json["choices"] = Json::array(), json["usage"] = chunks.usage->json();
        last = "data: " + dump(json) + "\n\n";
      }
      return last + "data: [DONE]\n\n";
    });
    return;
  }
  Flight flight(house, task, false);
  std::vector<Answer> answers(flight.size());
  while (flight.open() > 0)
    for (auto& letter : flight.wait()) answers[letter.index] = answer_of(flight.job(letter.index), *letter.result);
  auto json = shape.head;
  json["choices"] = Json::array();
  Usage usage;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto const& answer = answers[i];
    if (answer.failure != sluice::Failure::none)
      return send_error(response, status_of(answer.failure), what_failed(answer));
    for (std::size_t j = 0; j < answer.candidates.size(); ++j)
      json["choices"].push_back(choice(i * shape.choices + j, answer.candidates[j].text, &answer.candidates[j], shape));
    usage.prompt += answer.source_tokens, usage.completion += answer.tokens;
  }
  json["usage"] = usage.json();
  send(response, 200, json);
}

void answer_models(House const& house, httplib::Response& response) {
  send(response, 200,
       {{"object", "list"},
        {"data", {{{"id", house.backend.name()}, {"object", "model"}, {"created", 0}, {"owned_by", "sluice"}}}}});
}

}  // namespace serve
