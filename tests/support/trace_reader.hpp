// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the lines of a TraceFile using only the documented format.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <support/catch.hpp>
#include <support/table_model.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// The totals of a trace.
struct Replay {
  using Tokens = std::vector<Token>;
  struct Admission {
    std::uint64_t id = 0;
    Tokens prompt{}, prefix{};
  };

  std::map<Slot, Admission> owners{};
  std::map<Slot, Tokens> contents{};                                         ///< for every slot
  std::map<std::uint64_t, std::map<Tokens, std::map<Token, float>>> told{};  ///< the answers, by all tokens fed before
                                                                             ///< them
  std::map<std::uint64_t, Tokens> prompts{}, prefixes{};
  std::map<std::uint64_t, Result> results{};
  std::map<Token, std::string> texts{};
  std::map<std::uint64_t, std::string> about{};
  std::map<std::uint64_t, std::size_t> admitted{};
  std::set<std::int32_t> banks{};
  std::vector<Token> eos{};
  std::size_t steps = 0, answers = 0, rows = 0, fed = 0, forks = 0, lines = 0, kept_guesses = 0, boosted = 0,
              taken_back = 0;

  /// Called for every line with its id, the tokens of its slot, and the listed candidates.
  using Judge = std::function<void(std::uint64_t id, Tokens const& fed, std::map<Token, float> const& listed)>;
  explicit Replay(std::string const& text, Judge const& judge = {}) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) read(nlohmann::json::parse(line), judge);
  }

 private:
  using Json = nlohmann::json;

  void read(Json const& event, Judge const& judge) {
    if (event.contains("sluice_trace")) CHECK(event.at("sluice_trace") == 1);
    else if (event.contains("eos")) eos = event.at("eos").get<Tokens>();
    else if (event.contains("token")) read_token(event);
    else if (event.contains("sentence")) about[event.at("sentence")] = event.at("about");
    else if (event.contains("admit")) admit(event);
    else if (event.contains("rows")) plan(event);
    else if (event.contains("answer")) answer(event, judge);
    else if (event.contains("end")) end(event);
    else FAIL("what is this? " << event.dump());
  }

  void read_token(Json const& event) {
    auto& text = texts[event.at("token")];
    CHECK(text.empty());
    if (event.contains("text")) text = event.at("text").get<std::string>();
    else
      for (int const byte : event.at("bytes")) text += static_cast<char>(byte);
  }

  void admit(Json const& event) {
    CHECK(event.at("step") == steps);
    Admission const one{event.at("admit"), event.at("prompt"), event.value("prefix", Tokens{})};
    prompts[one.id] = one.prompt, prefixes[one.id] = one.prefix;
    ++admitted[one.id];
    Slot const base = event.at("base"), slots = event.at("slots");
    for (auto slot = base; slot < base + slots; ++slot) owners[slot] = one;
  }

  void plan(Json const& event) {
    CHECK(event.at("step") == steps++);
    asked.clear();
    auto const before = contents;
    for (auto const& row : event.at("rows")) {
      Slot const from = row.at(1), to = row.at(2);
      auto const length = row.at(3).get<std::size_t>();
      Tokens const tokens = row.at(4);
      auto const count = row.size() > 5 ? row.at(5).get<std::size_t>() : 1;
      REQUIRE(owners.contains(to));
      std::uint64_t const id = row.at(0);
      CHECK(id == owners.at(to).id);
      ++rows, fed += tokens.size(), forks += from != to;
      auto const held = before.contains(from) ? before.at(from) : Tokens{};
      REQUIRE(held.size() >= length);
      auto now = Tokens(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(length));
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        now.push_back(tokens[i]);
        if (i + count >= tokens.size()) asked.emplace_back(id, now);
      }
      contents[to] = now;
    }
  }

  void answer(Json const& event, Judge const& judge) {
    CHECK(event.at("answer") == steps - 1);
    ++answers;
    REQUIRE(event.at("lines").size() == asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i, ++lines) {
      auto const& line = event.at("lines").at(i);
      std::map<Token, float> listed;
      for (auto const* name : {"best", "probes"})
        if (line.contains(name))
          for (std::size_t j = 0; j < line.at(name).size(); j += 2)
            listed[line.at(name).at(j)] = number<float>(line.at(name).at(j + 1));
      if (line.contains("label")) banks.insert(line.at("label").get<std::int32_t>());
      auto unbiased = listed;  // what the model said
      if (line.contains("boosts"))
        for (std::size_t j = 0; j < line.at("boosts").size(); j += 2) {
          auto const boost = line.at("boosts").at(j + 1).get<float>();
          unbiased.at(line.at("boosts").at(j)) -= boost;
          ++(boost > 0 ? boosted : taken_back);
        }
      if (judge) judge(asked[i].first, asked[i].second, unbiased);
      auto& all = told[asked[i].first][asked[i].second];
      for (auto const& [token, log_prob] : listed) all[token] = log_prob;
    }
  }

  void end(Json const& event) {
    auto& result = results[event.at("end")];
    CHECK(result.hypotheses.empty());
    CHECK(event.at("step") == steps);
    result.id = event.at("end");
    result.message = event.value("message", "");
    for (auto const& json : event.at("hypotheses")) {
      auto& h = result.hypotheses.emplace_back();
      h.tokens = json.at("tokens").get<Tokens>();
      for (auto const& x : json.at("log_probs")) h.log_probs.push_back(number<float>(x));
      h.log_prob = number<double>(json.at("log_prob")), h.score = number<double>(json.at("score"));
      h.finished = json.at("finished");
      h.constraints_met = json.value("constraints_met", 0), h.constraints_total = json.value("constraints_total", 0);
      h.blocks = json.value("blocks", std::vector<std::int32_t>{});
      h.stop = json.value("stop", -1);
    }
  }

  template <class Number>
  static Number number(Json const& json) {
    return json.is_null() ? std::numeric_limits<Number>::quiet_NaN() : json.get<Number>();
  }

  std::vector<std::pair<std::uint64_t, Tokens>> asked;  // the step's lines
};

}  // namespace sluice::test
