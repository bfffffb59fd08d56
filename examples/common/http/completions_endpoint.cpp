// SPDX-License-Identifier: Apache-2.0
#include <text/json.hpp>
#include <text/words.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <http/answers.hpp>
#include <http/chat.hpp>
#include <http/completions_endpoint.hpp>
#include <http/event_stream.hpp>
#include <http/reply.hpp>
#include <http/service.hpp>
#include <http/template_endpoint.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace serve {

namespace {

/// What the answer needs from the request.
struct Shape {
  Json head{};  // of the answer, and of every chunk
  std::size_t choices = 1;
  bool logprobs = false, top = false, usage = false, chat = false, stream = false, reasons = false;
  Tools tools{};
  std::string format{};  // of calls; empty: there are none

  bool plain() const { return format.empty() && !reasons; }
  /// The message of a choice that may have calls, or what was thought.
  Reply reply(std::size_t index) const {
    return {format.empty() ? std::nullopt : std::optional(sluice::tool_format(format)), tools.json, reasons,
            "call-" + head["id"].get<std::string>().substr(9) + "-" + std::to_string(index)};
  }
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
  fields.text("user"), fields.find("metadata");
}

void read_stream_options(Fields& fields, bool streams, Shape& shape) {
  auto const* const options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!streams) throw BadField("stream_options", "stream_options has no effect without stream");
  if (!options->is_object()) Fields::refuse("stream_options", *options, "an object");
  for (auto const& [name, value] : options->items()) {
    if (name != "include_usage" && name != "include_obfuscation")
      throw BadField("stream_options", "stream_options: '" + name + "' is not a known field");
    if (!value.is_boolean()) Fields::refuse("stream_options." + name, value, "true or false");
    if (name == "include_usage") shape.usage = value.get<bool>();
  }
}

Completion read_completion(Fields& fields, Bounds const& bounds, bool chat) {
  Completion c;
  c.chat = chat;
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
  if (!chat) c.best_of = integer("best_of", c.choices, bounds.width), c.echo = fields.flag("echo").value_or(false);
  c.max_tokens = integer("max_tokens", c.echo ? 0 : 1, bounds.length);
  if (chat) {
    if (auto const most = integer("max_completion_tokens", 1, bounds.length)) {
      if (c.max_tokens) throw BadField("max_tokens", "max_tokens and max_completion_tokens: give one of them");
      c.max_tokens = most;
    }
    auto const top = integer("top_logprobs", 0, 5);
    if (fields.flag("logprobs").value_or(false)) c.logprobs = top.value_or(0);
    else if (top) throw BadField("top_logprobs", "top_logprobs has no effect without logprobs");
  } else {
    c.logprobs = integer("logprobs", 0, 5);
  }
  c.stop = fields.texts("stop").value_or(std::vector<std::string>{});
  if (c.stop.size() > 4) throw BadField("stop", "stop has more than 4 strings");
  if (std::ranges::find(c.stop, std::string()) != c.stop.end()) throw BadField("stop", "stop contains an empty string");
  return c;
}

/// A list of tokens, below `count`.
std::vector<sluice::Token> read_tokens(std::string const& name, Json const& list, std::int32_t count) {
  std::vector<sluice::Token> tokens;
  for (auto const& one : list) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= static_cast<std::uint64_t>(count))
      Fields::refuse(name + "[" + std::to_string(tokens.size()) + "]", one,
                     "a token, a whole number below " + std::to_string(count));
    tokens.push_back(one.get<sluice::Token>());
  }
  if (tokens.empty()) throw BadField(name, name + " has no tokens");
  return tokens;
}

/// A text or a list of texts; where the model takes them, a list of tokens or a list of such lists.
std::vector<Ask> read_prompts(Fields& fields, House const& house) {
  std::vector<Ask> asks;
  auto const count = house.backend.token_count();
  auto const* const prompt = fields.find("prompt");
  auto const listed = count > 0 && prompt != nullptr && prompt->is_array() && !prompt->empty();
  if (listed && prompt->front().is_number()) {
    asks.push_back({.tokens = read_tokens("prompt", *prompt, count)});
  } else if (listed && prompt->front().is_array()) {
    for (auto const& one : *prompt) {
      auto const name = "prompt[" + std::to_string(asks.size()) + "]";
      if (!one.is_array()) Fields::refuse(name, one, "a list of tokens, as the others are");
      asks.push_back({.tokens = read_tokens(name, one, count)});
    }
  } else if (auto const texts = fields.texts("prompt")) {
    for (auto const& text : *texts) asks.push_back({.text = text});
  }
  if (asks.empty()) throw BadField("prompt", "prompt is missing: a string, or a list of strings");
  if (asks.size() > house.bounds.sentences)
    throw BadField("prompt",
                   "prompt has " + std::to_string(asks.size()) + " entries, more than " +
                       std::to_string(house.bounds.sentences),
                   413);
  for (std::size_t i = 0; i < asks.size(); ++i) asks[i].number = i + 1;
  return asks;
}

Task read(Fields& fields, House const& house, httplib::Request const& request, Shape& shape) {
  auto const& bounds = house.bounds;
  Task task;
  if (shape.chat) {
    auto const chat = read_chat(fields);
    auto prompt = prompt_of(chat, house, request);
    shape.tools = chat.tools, shape.reasons = house.backend.reasons(prompt);
    if (shape.tools.may_be_called()) shape.format = house.backend.tool_format();
    task.asks.push_back({.text = std::move(prompt), .special = true});
  } else {
    task.asks = read_prompts(fields, house);
  }
  if (auto const model = fields.text("model"); model && *model != house.backend.name())
    throw BadField("model", "model: no model of that name; GET /v1/models lists them", 404);
  auto completion = read_completion(fields, bounds, shape.chat);
  completion.tools = shape.tools, completion.reasons = shape.reasons;
  if (shape.chat && house.backend.reasons())
    if (auto const most = fields.integer("thinking_token_budget", 0, bounds.length))
      completion.thinking = static_cast<std::int32_t>(*most);
  shape.choices = static_cast<std::size_t>(completion.choices);
  shape.logprobs = completion.logprobs.has_value(), shape.top = completion.logprobs.value_or(0) > 0;
  task.stream = shape.stream = fields.flag("stream").value_or(false);
  if (task.stream && completion.best_of.value_or(1) > completion.choices)
    throw BadField("best_of", "best_of cannot be streamed: the best output is known only at the end");
  read_stream_options(fields, task.stream, shape);
  read_unsupported(fields);
  task.settings = house.backend.settings(completion, fields, bounds);
  fields.finish();
  task.time = bounds.time;

  static std::atomic<std::uint64_t> count = 0;
  auto const now = std::chrono::system_clock::now().time_since_epoch();
  shape.head = {{"id", (shape.chat ? "chatcmpl-" : "cmpl-") +
                           std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) + "-" +
                           std::to_string(++count)},
                {"object", !shape.chat   ? "text_completion"
                           : task.stream ? "chat.completion.chunk"
                                         : "chat.completion"},
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

/// As /v1/chat/completions has them.
Json chat_logprobs_json(Candidate const& one) {
  auto const entry = [](std::string const& name, float log_prob) {
    return Json{{"token", name}, {"logprob", log_prob}};
  };
  Json content = Json::array();
  for (auto const& piece : one.pieces) {
    auto json = entry(piece.name, piece.log_prob);
    json["bytes"] = Json::array(), json["top_logprobs"] = Json::array();
    for (auto const byte : piece.text) json["bytes"].push_back(static_cast<unsigned char>(byte));
    for (auto const& [name, log_prob] : piece.best) json["top_logprobs"].push_back(entry(name, log_prob));
    content.push_back(std::move(json));
  }
  return {{"content", std::move(content)}};
}

/// An empty prompt gives an empty text. What was written before the time was up is an answer, too, which is not finished.
Answer answer_of(Job& job, sluice::Result const& result) {
  auto answer = job.answer(result);
  auto const written = [](Candidate const& one) { return !one.text.empty(); };
  if (answer.failure == sluice::Failure::late && std::ranges::any_of(answer.candidates, written))
    answer.failure = sluice::Failure::none;
  if (result.ok() && answer.candidates.empty()) answer.candidates.push_back({.finished = true});
  return answer;
}

/// \param said   a text, or a message
/// \param calls  whether it has calls
Json choice(std::size_t index, Json said, Candidate const* ended, Shape const& shape, bool calls = false) {
  auto const* const why = calls ? "tool_calls" : "stop";
  Json json{{"index", index}, {"finish_reason", ended == nullptr ? Json() : Json(ended->finished ? why : "length")}};
  auto& logprobs = json["logprobs"];
  if (ended != nullptr && shape.logprobs)
    logprobs = shape.chat ? chat_logprobs_json(*ended) : logprobs_json(*ended, shape.top);
  if (shape.chat && said.is_string()) said = {{"role", "assistant"}, {"content", said}};
  json[!shape.chat ? "text" : shape.stream ? "delta" : "message"] = std::move(said);
  return json;
}

/// A whole one.
Json whole_choice(std::size_t index, Candidate const& one, Shape const& shape) {
  if (shape.plain()) return choice(index, one.text, &one, shape);
  auto reply = shape.reply(index);
  reply.append(one.text), reply.finish();
  return choice(index, reply.message(), &one, shape, reply.calls());
}

/// Chunks: settled text of the first choice; at the end all other choices.
struct Chunks {
  Shape shape;
  std::shared_ptr<Usage> usage = std::make_shared<Usage>();
  std::shared_ptr<std::map<std::size_t, Reply>> replies = std::make_shared<std::map<std::size_t, Reply>>();

  std::string chunk(Json choices) const {
    auto json = shape.head;
    json["choices"] = std::move(choices);
    return "data: " + dump(json) + "\n\n";
  }
  /// More of a choice.
  std::string more_of(std::size_t index, std::string const& text, Candidate const* ended) const {
    if (shape.plain()) return chunk(Json::array({choice(index, text, ended, shape)}));
    auto found = replies->find(index);
    if (found == replies->end()) found = replies->emplace(index, shape.reply(index)).first;
    auto& reply = found->second;
    auto deltas = reply.append(text);
    if (ended != nullptr)
      for (auto& delta : reply.finish()) deltas.push_back(std::move(delta));
    std::string all;
    for (auto& delta : deltas) all += chunk(Json::array({choice(index, std::move(delta), nullptr, shape)}));
    if (ended != nullptr) all += chunk(Json::array({choice(index, Json::object(), ended, shape, reply.calls())}));
    return all;
  }
  std::string operator()(Flight& flight, Flight::Letter& letter) const {
    auto& job = flight.job(letter.index);
    auto const first = letter.index * shape.choices;
    if (!letter.result) {
      auto const more = shape.choices == 1 ? job.append(letter.settled) : std::string();
      return more.empty() ? more : more_of(first, more, nullptr);
    }
    auto const answer = answer_of(job, *letter.result);
    if (answer.failure != sluice::Failure::none)
      return "data: " + dump(error_json(status_of(answer.failure), what_failed(answer), answer.field)) + "\n\n";
    usage->prompt += answer.source_tokens, usage->completion += answer.tokens;
    std::string text;
    for (std::size_t i = 0; i < answer.candidates.size(); ++i) {
      auto const& one = answer.candidates[i];
      text += more_of(first + i, i == 0 ? job.rest(answer) : one.text, &one);
    }
    return text;
  }
};

}  // namespace

namespace {

void answer_in(Shape shape, House const& house, httplib::Request const& request, httplib::Response& response) {
  Fields fields(request.body);
  auto const task = read(fields, house, request, shape);
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
      return send_error(response, status_of(answer.failure), what_failed(answer), answer.field);
    for (std::size_t j = 0; j < answer.candidates.size(); ++j)
      json["choices"].push_back(whole_choice(i * shape.choices + j, answer.candidates[j], shape));
    usage.prompt += answer.source_tokens, usage.completion += answer.tokens;
  }
  json["usage"] = usage.json();
  send(response, 200, json);
}

}  // namespace

void answer_completions(House const& house, httplib::Request const& request, httplib::Response& response) {
  answer_in({}, house, request, response);
}

Endpoint chatting() {
  return {"/v1/chat/completions", true,
          [](House const& house, httplib::Request const& request, httplib::Response& response) {
            answer_in({.chat = true}, house, request, response);
          }};
}

void answer_models(House const& house, std::string const& name, httplib::Response& response) {
  Json const model{{"id", house.backend.name()}, {"object", "model"}, {"created", 0}, {"owned_by", "sluice"}};
  if (name.empty()) return send(response, 200, {{"object", "list"}, {"data", Json::array({model})}});
  if (name == house.backend.name()) return send(response, 200, model);
  send_error(response, 404, "no model of that name; GET /v1/models lists them");
}

}  // namespace serve
