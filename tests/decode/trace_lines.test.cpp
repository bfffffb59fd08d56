// SPDX-License-Identifier: Apache-2.0
// Each line of a trace against what docs/viewer.md says stands in it, put together by somebody else.
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Json = nlohmann::json;

/// Random events, told to a trace, and what it has to write.
struct Told {
  explicit Told(std::uint64_t seed) : random(seed), texts(seed % 2 == 0) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }
  bool often() { return below(2) == 0; }
  std::vector<Token> tokens(std::size_t least = 0) {
    std::vector<Token> list(least + below(4));
    for (auto& token : list) token = static_cast<Token>(below(10)) - 1;
    return list;
  }
  /// The texts of those that come up for the first time.
  void tell(std::span<Token const> list) {
    if (!texts) return;
    for (auto const token : list)
      if (token >= 0 && known.insert(token).second) expected.push_back({{"token", token}, {"text", told_text(token)}});
  }
  static std::string text(Token token) {
    if (token == 7) throw std::runtime_error("no text");
    return "<" + std::to_string(token) + ">";
  }
  static std::string told_text(Token token) { return token == 7 ? "" : text(token); }

  template <class Trace>
  void begin(Trace& trace) {
    auto const prompt = tokens(1), prefix = tokens();
    Vocabulary const vocabulary{.size = 9, .eos = {2, 5}};
    Sentence sentence{.prompt = prompt, .prefix = prefix};
    sentence.source_length = static_cast<std::int32_t>(below(3)) - 1;
    if (often()) sentence.vocabulary = &vocabulary;
    trace.began(below(99), sentence);
    if (sentence.vocabulary != nullptr && !eos) expected.push_back({{"eos", {2, 5}}}), eos = true;
    if (below(4) == 0) return;
    auto const id = below(99);
    auto const base = static_cast<Slot>(below(6)), slots = static_cast<Slot>(1 + below(3));
    trace.admitted(id, base, slots);
    for (auto slot = base; slot < base + slots; ++slot) owners[slot] = id;
    tell(prompt), tell(prefix);
    Json line{{"admit", id}, {"step", step}, {"base", base}, {"slots", slots}, {"prompt", prompt}};
    if (!prefix.empty()) line["prefix"] = prefix;
    if (sentence.source_length >= 0) line["source_length"] = sentence.source_length;
    expected.push_back(line);
  }

  template <class Trace>
  void run(Trace& trace) {
    StepPlan plan;
    std::deque<std::vector<Token>> lists;
    std::deque<std::vector<std::int32_t>> depths;
    Json rows = Json::array(), lines = Json::array();
    for (auto n = below(3); n > 0; --n) {
      auto const& list = lists.emplace_back(tokens(1));
      auto const count = 1 + static_cast<std::int32_t>(below(list.size()));
      auto const to = static_cast<Slot>(below(12));
      plan.rows.push_back({static_cast<Slot>(below(9)), to, static_cast<std::int32_t>(below(9)), list, count});
      auto& row = plan.rows.back();
      Json one{owners.contains(to) ? owners[to] : 0, row.from, row.to, row.length, list};
      if (below(4) == 0) row.depths = depths.emplace_back(list.size(), 0).data();
      if (count != 1 || row.depths != nullptr) one.push_back(count);
      if (row.depths != nullptr) one.push_back(depths.back());
      rows.push_back(one);
      tell(list);
    }
    if (often()) plan.released = {3, static_cast<Slot>(below(5))};
    trace.planned(plan);
    Json line{{"step", step}, {"rows", rows}};
    if (!plan.released.empty()) line["release"] = plan.released;
    expected.push_back(line);

    std::vector<Expansion::Entry> entries;
    std::vector<Candidate> best;
    std::vector<float> probes;
    for (auto n = below(4); n > 0; --n) {
      auto& query = plan.queries.emplace_back();
      Json answer = Json::object(), listed = Json::array(), probed = Json::array();
      auto& entry = entries.emplace_back();
      entry.best = best.size(), entry.probes = probes.size();
      for (auto const token : tokens()) {
        best.push_back({token, 0.0f - static_cast<float>(below(9))});
        listed.push_back(token), listed.push_back(best.back().log_prob);
        tell({&token, 1});
      }
      auto const& asked = lists.emplace_back(tokens());
      query.probes = asked;
      tell(asked);
      for (auto const token : asked) {
        probes.push_back(-static_cast<float>(below(9)) / 2);
        probed.push_back(token), probed.push_back(probes.back());
      }
      entry.best_count = best.size() - entry.best, entry.probe_count = probes.size() - entry.probes;
      if (!listed.empty()) answer["best"] = listed;
      if (!probed.empty()) answer["probes"] = probed;
      if ((query.rank = static_cast<std::int32_t>(below(3))) != 0) answer["rank"] = query.rank;
      if ((query.label = static_cast<std::int32_t>(below(3)) - 1) >= 0) answer["label"] = query.label;
      if ((query.noise = below(2)) != 0) answer["noise"] = true;
      if (!(query.normalise = often())) answer["plain"] = true;
      entry.entropy = 1.5f;
      if ((query.entropy = often())) answer["entropy"] = 1.5f;
      if (!(entry.valid = often())) answer["invalid"] = true;
      if ((entry.impossible = often())) answer["impossible"] = true;
      lines.push_back(answer);
    }
    trace.answered(plan, Expansion(entries, best, probes));
    expected.push_back({{"answer", step}, {"lines", lines}});
    ++step;
  }

  template <class Trace>
  void end(Trace& trace) {
    Result result{.id = below(99)};
    Json line{{"end", result.id}, {"step", step}, {"hypotheses", Json::array()}};
    if (often()) {
      result.fail(Failure::late, "too \"late\"");
      line["failure"] = "late", line["message"] = result.message;
    }
    for (auto n = below(3); n > 0; --n) {
      auto& h = result.hypotheses.emplace_back();
      h.tokens = tokens(), h.log_probs.assign(h.tokens.size(), -0.5f);
      h.log_prob = -2.25, h.score = -0.75, h.finished = often();
      tell(h.tokens);
      Json one{{"tokens", h.tokens},
               {"log_probs", h.log_probs},
               {"log_prob", -2.25},
               {"score", -0.75},
               {"finished", h.finished}};
      if ((h.constraints_total = static_cast<std::int32_t>(below(3))) > 0) {
        h.constraints_met = 1;
        one["constraints_met"] = 1, one["constraints_total"] = h.constraints_total;
      }
      if (often()) one["blocks"] = h.blocks = {1, 3};
      if ((h.stop = static_cast<std::int32_t>(below(3)) - 1) >= 0) one["stop"] = h.stop;
      if (often()) one["attached"] = h.attached = {{0.5f}, {}, {2, 3}};
      line["hypotheses"].push_back(one);
    }
    trace.ended(result);
    expected.push_back(line);
  }

  std::mt19937_64 random;
  bool texts, eos = false;
  std::uint64_t step = 0;
  std::map<Slot, std::uint64_t> owners;
  std::set<Token> known;
  std::vector<Json> expected{{{"sluice_trace", 1}}};
};

/// A buffer that takes everything and keeps nothing.
struct Full : std::streambuf {
  int overflow(int c) override { return c == EOF ? 0 : c; }
  std::streamsize xsputn(char const*, std::streamsize n) override { return n; }
  int sync() override { return -1; }
};

}  // namespace

TEST_CASE("a trace writes what it is told, and every text once", "[trace]") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Told told(seed);
    std::ostringstream stream;
    TraceFile trace(stream, told.texts ? TraceFile::Texts(&Told::text) : TraceFile::Texts());
    for (int i = 0; i < 12; ++i) {
      switch (told.below(4)) {
        case 0: told.begin(trace); break;
        case 1: told.end(trace); break;
        case 2: {
          std::vector<std::string> const source(told.below(3), "a <b>");
          trace.describe(7, "what & why", source);
          Json line{{"sentence", 7}, {"about", "what & why"}};
          if (!source.empty()) line["source"] = source;
          told.expected.push_back(line);
          break;
        }
        default: told.run(trace);
      }
    }
    INFO("seed " << seed << "\n" << stream.str());
    CHECK(trace.wants_entropy());
    std::istringstream lines(stream.str());
    std::vector<Json> written;
    for (std::string line; std::getline(lines, line);) written.push_back(Json::parse(line));
    REQUIRE(written.size() == told.expected.size());
    for (std::size_t i = 0; i < written.size(); ++i) CHECK(written[i] == told.expected[i]);
  }
}

TEST_CASE("a page whose last bytes cannot be written says so", "[trace]") {
  Full full;
  std::ostream out(&full);
  TracePage page(out);
  CHECK_THROWS_AS(page.finish(), std::runtime_error);
}
