// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <serve_http/answers.hpp>
#include <serve_http/completions_endpoint.hpp>
#include <serve_http/event_stream.hpp>
#include <string>
#include <utility>
#include <vector>

namespace serve {

namespace {

using translate::SearchName;

/// What the answer needs to know of the request.
struct Shape {
  Json head;  // of the answer, and of every chunk
  std::size_t choices = 1;
  bool logprobs = false, usage = false;
};

struct Usage {
  std::size_t prompt = 0, completion = 0;
  Json json() const {
    return {{"prompt_tokens", prompt}, {"completion_tokens", completion}, {"total_tokens", prompt + completion}};
  }
};

/// Fields that change nothing at these values, and are refused at others.
void read_unsupported(Fields& fields, std::size_t choices) {
  auto const only = [&](char const* name, Json const& harmless) {
    if (auto const* const value = fields.find(name); value != nullptr && *value != harmless)
      throw BadField(name, std::string(name) + " is not supported: " + translate::detail::shown(*value));
  };
  only("echo", false), only("presence_penalty", 0), only("frequency_penalty", 0), only("logit_bias", Json::object());
  only("suffix", ""), only("best_of", choices);
  fields.text("user");
}

void read_stream_options(Fields& fields, bool streams, Shape& shape) {
  auto const* const options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!streams) throw BadField("stream_options", "stream_options has no effect without stream");
  if (!options->is_object()) Fields::refuse("stream_options", *options, "an object");
  for (auto const& [name, value] : options->items()) {
    if (name != "include_usage") throw BadField("stream_options", "stream_options: '" + name + "' is no field");
    if (!value.is_boolean()) Fields::refuse("stream_options.include_usage", value, "true or false");
    shape.usage = value.get<bool>();
  }
}

/// Sampling where it is asked for, the most probable otherwise.
void read_search(Fields& fields, Settings& settings, std::size_t choices, Bounds const& bounds) {
  auto& o = settings.search;
  auto const temperature = fields.number(
      "temperature", [](double x) { return x >= 0 && x <= 2; }, "a number in [0, 2]");
  auto const top_p = fields.number(
      "top_p", [](double x) { return x > 0 && x <= 1; }, "a number in (0, 1]");
  auto const seed = fields.natural("seed");
  o.candidates = static_cast<std::int32_t>(choices);
  if (temperature ? *temperature > 0 : top_p || seed) {
    o.search = SearchName::sample;
    o.temperature = static_cast<float>(temperature.value_or(1)), o.top_p = static_cast<float>(top_p.value_or(1));
    o.seed = seed.value_or(1);
  } else if (temperature && choices == 1) {
    o.search = SearchName::greedy;
  } else {
    o.search = SearchName::beam, o.width = std::min(std::max(5, o.candidates), bounds.width);
  }
}

Task read(Fields& fields, House const& house, Shape& shape) {
  auto const& bounds = house.bounds;
  Task task;
  auto const prompts = fields.texts("prompt");
  if (!prompts || prompts->empty()) throw BadField("prompt", "prompt is missing: a text, or a list of them");
  if (prompts->size() > bounds.sentences)
    throw BadField(
        "prompt",
        "prompt has " + std::to_string(prompts->size()) + " texts, more than " + std::to_string(bounds.sentences), 413);
  if (auto const model = fields.text("model"); model && *model != house.backend.name())
    throw BadField("model", "model: there is none of that name; GET /v1/models lists them", 404);
  shape.choices = static_cast<std::size_t>(fields.integer("n", 1, bounds.width).value_or(1));
  read_search(fields, task.settings, shape.choices, bounds);
  auto& o = task.settings.search;
  o.max_length = static_cast<std::int32_t>(
      fields.integer("max_tokens", 1, bounds.length).value_or(std::min(o.max_length, bounds.length)));
  task.settings.stop = fields.texts("stop").value_or(std::vector<std::string>{});
  if (task.settings.stop.size() > 4) throw BadField("stop", "stop has more than 4 texts");
  if (std::ranges::find(task.settings.stop, std::string()) != task.settings.stop.end())
    throw BadField("stop", "stop holds an empty text");
  if (auto const n = fields.integer("logprobs", 0, 5)) {
    if (*n > 0) throw BadField("logprobs", "logprobs: those of the chosen tokens only, which is 0");
    shape.logprobs = true;
  }
  task.settings.scores = shape.logprobs;
  task.stream = fields.flag("stream").value_or(false);
  read_stream_options(fields, task.stream, shape);
  read_unsupported(fields, shape.choices);
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

Json logprobs_json(Candidate const& one) {
  Json json{{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", nullptr},
            {"text_offset", Json::array()}};
  std::size_t offset = 0;
  for (auto const& piece : one.pieces) {
    json["tokens"].push_back(piece.text), json["token_logprobs"].push_back(piece.log_prob);
    json["text_offset"].push_back(offset);
    offset += piece.text.size();
  }
  return json;
}

Json choice(std::size_t index, std::string const& text, Candidate const* ended, bool logprobs) {
  return {{"index", index},
          {"text", text},
          {"logprobs", ended != nullptr && logprobs ? logprobs_json(*ended) : Json()},
          {"finish_reason", ended == nullptr ? Json() : Json(ended->finished ? "stop" : "length")}};
}

/// Chunks: what is settled of the first choice, and at the end all the others.
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
      return more.empty() ? more : chunk({choice(first, more, nullptr, false)});
    }
    auto const answer = job.answer(*letter.result);
    if (answer.failure != sluice::Failure::none)
      return "data: " +
             dump(error_json(status_of(answer.failure),
                             std::string(sluice::name(answer.failure)) + ": " + answer.message)) +
             "\n\n";
    usage->prompt += answer.source_tokens, usage->completion += answer.tokens;
    std::string text;
    for (std::size_t i = 0; i < answer.candidates.size(); ++i) {
      auto const& one = answer.candidates[i];
      text += chunk({choice(first + i, i == 0 ? job.rest(answer) : one.text, &one, shape.logprobs)});
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
    for (auto& letter : flight.wait()) answers[letter.index] = flight.job(letter.index).answer(*letter.result);
  auto json = shape.head;
  json["choices"] = Json::array();
  Usage usage;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto const& answer = answers[i];
    if (answer.failure != sluice::Failure::none)
      return send_error(response, status_of(answer.failure),
                        std::string(sluice::name(answer.failure)) + ": " + answer.message);
    for (std::size_t j = 0; j < answer.candidates.size(); ++j)
      json["choices"].push_back(
          choice(i * shape.choices + j, answer.candidates[j].text, &answer.candidates[j], shape.logprobs));
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
