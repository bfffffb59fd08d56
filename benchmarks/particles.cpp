// SPDX-License-Identifier: Apache-2.0
// Sampling under a grammar: how far outputs are from the model restricted to it, and what they cost.
//
//   sluice.bench.particles [tables] [runs] [tokens of the vocabulary] [requests]
//
// First random models of a few tokens, whose outputs are all enumerated: total variation to the true posterior, rows of the model and
// questions to the grammar, for n samples of masking, plain rejection and ASAp (Park et al. 2024), and n particles. Then a vocabulary of
// the usual size under a JSON schema: the time of a step beside masking.
#include <sluice/core/noise.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/sample.hpp>

#include "grammar_vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using sluice::Proposal, sluice::Structure, sluice::Token;
using Outputs = std::map<std::vector<Token>, double>;

/// The grammar as a potential, which counts what it is asked.
struct Counted {
  sluice::Indicator<Structure> inner{};
  std::shared_ptr<std::size_t> asked = std::make_shared<std::size_t>(0);

  using State = Structure::State;
  static constexpr bool exact = true;
  State initial(sluice::Sentence const& sentence) const { return inner.initial(sentence); }
  State next(State const& state, Token token) const { return ++*asked, inner.next(state, token); }
  double log_prefix(State const& state) const { return inner.log_prefix(state); }
  double log_final(State const& state, bool finished) const { return inner.log_final(state, finished); }
  std::shared_ptr<sluice::TokenSet const> may_follow(State const& state, std::int32_t left) const {
    return inner.may_follow(state, left);
  }
};
using Particles = sluice::ParticleSample<Counted>;

/// Random distributions by a hash of the tokens so far. Counts its rows.
class Hashed {
 public:
  using Source = std::uint64_t;
  static constexpr sluice::Abilities abilities{.ragged = true};

  Hashed(std::int32_t size, double scale) : size_(size), scale_(scale), line_(static_cast<std::size_t>(size)) {}

  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 0, .eos = {0}}; }
  /// The logits after some tokens.
  std::span<float const> logits(std::uint64_t source, std::span<Token const> tokens) {
    auto key = sluice::derive(source, 5);
    for (auto const token : tokens) key = sluice::derive(key, static_cast<std::uint64_t>(token));
    for (Token v = 0; v < size_; ++v)
      line_[static_cast<std::size_t>(v)] = static_cast<float>(scale_ * sluice::uniform(key, v));
    line_[0] += 0.3f * static_cast<float>(tokens.size()) - 0.5f;
    return line_;
  }
  void start(std::span<std::uint64_t const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) slot(slots[i]) = {*sources[i], {}};
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) slot((std::max)(row.from, row.to)), slot(row.to) = slot(row.from);
    scores_.clear();
    for (auto const& row : rows) {
      auto& held = slot(row.to);
      held.tokens.resize(static_cast<std::size_t>(row.length));
      held.tokens.insert(held.tokens.end(), row.tokens.begin(), row.tokens.end());
      auto const line = logits(held.source, std::span<Token const>(held.tokens).subspan(1));  // behind bos
      scores_.insert(scores_.end(), line.begin(), line.end());
    }
    count += rows.size();
    return sluice::scores(scores_.data(), std::ssize(rows), size_);
  }
  std::size_t count = 0;

 private:
  struct Held {
    std::uint64_t source = 0;
    std::vector<Token> tokens;
  };
  Held& slot(sluice::Slot number) {
    auto const i = static_cast<std::size_t>(number);
    if (held_.size() <= i) held_.resize(i + 1);
    return held_[i];
  }
  std::int32_t size_;
  double scale_;
  std::vector<float> line_, scores_;
  std::vector<Held> held_;
};

double total_variation(Outputs const& found, Outputs const& exact) {
  double all = 0, apart = 0;
  for (auto const& [tokens, value] : found) all += value;
  for (auto const& [tokens, value] : exact) {
    auto const its = found.find(tokens);
    apart += std::abs(value - (its == found.end() || all <= 0 ? 0 : its->second / all));
  }
  return apart / 2;  // nothing else is found
}

/// What the methods share: a model, a grammar, the longest output, and what is enumerated.
struct Task {
  Hashed model;
  std::uint64_t source;
  Structure structure;
  std::int32_t most;
  Outputs exact{};
  double z = 0;

  std::vector<double> probabilities(std::vector<Token> const& tokens) {
    auto const line = model.logits(source, tokens);
    std::vector<double> p(line.begin(), line.end());
    double sum = 0;
    for (auto& x : p) x = std::exp(x), sum += x;
    for (auto& x : p) x /= sum;
    return p;
  }
  void enumerate(std::vector<Token>& tokens, Structure::State const& state, double probability) {
    auto const p = probabilities(tokens);
    auto const set = structure.may_follow(state, most - static_cast<std::int32_t>(tokens.size()));
    for (Token v = 0; v < static_cast<Token>(p.size()); ++v) {
      if (!set->contains(v)) continue;
      tokens.push_back(v);
      auto const its = probability * p[static_cast<std::size_t>(v)];
      if (v == 0) exact[tokens] = its, z += its;
      else enumerate(tokens, structure.next(state, v), its);
      tokens.pop_back();
    }
  }
  void enumerate() {
    std::vector<Token> tokens;
    enumerate(tokens, structure.start(), 1);
    for (auto& [output, value] : exact) value /= z;
  }
};

/// Adaptive sampling with approximate expected futures: after each sample, the probability of an accepted continuation is known better
/// behind its prefixes (Park et al. 2024, "Grammar-Aligned Decoding"). One after another.
class Asap {
 public:
  explicit Asap(Task& task) : task_(task) {}
  std::vector<Token> draw(std::uint64_t noise, std::size_t& rows) {
    std::vector<Token> tokens;
    auto state = task_.structure.start();
    for (;;) {
      auto& node = nodes_[tokens];
      ++rows;
      if (node.p.empty()) {
        node.p = task_.probabilities(tokens);
        auto const set = task_.structure.may_follow(state, task_.most - static_cast<std::int32_t>(tokens.size()));
        for (std::size_t v = 0; v < node.p.size(); ++v)
          node.future.push_back(set->contains(static_cast<Token>(v)) ? 1 : 0);
      }
      auto chosen = Token{-1};
      auto bar = -std::numeric_limits<double>::infinity();
      for (std::size_t v = 0; v < node.p.size(); ++v) {
        if (node.future[v] <= 0) continue;
        auto const token = static_cast<Token>(v);
        auto const value =
            std::log(node.p[v] * node.future[v]) + sluice::gumbel(sluice::derive(noise, tokens.size()), token);
        if (value > bar) chosen = token, bar = value;
      }
      tokens.push_back(chosen);
      if (chosen == 0) break;
      state = task_.structure.next(state, chosen);
    }
    for (auto prefix = tokens; prefix.size() > 1;) {  // from the end
      prefix.pop_back();
      auto const& node = nodes_[prefix];
      double future = 0;
      for (std::size_t v = 0; v < node.p.size(); ++v) future += node.p[v] * node.future[v];
      auto const last = prefix.back();
      auto before = prefix;
      before.pop_back();
      nodes_[before].future[static_cast<std::size_t>(last)] = future;
    }
    return tokens;
  }

 private:
  struct Node {
    std::vector<double> p, future;
  };
  Task& task_;
  std::map<std::vector<Token>, Node> nodes_;
};

/// Means over runs.
struct Row {
  double distance = 0, rows = 0, asked = 0, failed = 0;
};

Row particles(Task& task, Particles search, std::size_t runs) {
  search.length.max = task.most, search.potential.inner.accepted = task.structure;
  task.model.count = 0;
  std::vector<sluice::Request<std::uint64_t, Particles>> requests(runs);
  for (std::size_t i = 0; i < runs; ++i) requests[i].source = task.source, requests[i].seed = i + 1;
  Row row;
  for (auto const& result : sluice::decode(task.model, std::move(requests), search)) {
    Outputs found;
    for (auto const& h : result.hypotheses) found[h.tokens] = h.weight;
    row.distance += found.empty() ? 1 : total_variation(found, task.exact), row.failed += found.empty() ? 1 : 0;
  }
  auto const n = static_cast<double>(runs);
  row.distance /= n, row.failed /= n, row.rows = static_cast<double>(task.model.count) / n;
  row.asked = static_cast<double>(*search.potential.asked) / n;
  return row;
}

Row masking(Task& task, std::int32_t samples, std::size_t runs) {
  sluice::Processed<sluice::Sample> const search({.samples = samples, .length{.max = task.most}}, task.structure);
  task.model.count = 0;
  std::vector<sluice::Request<std::uint64_t, sluice::Processed<sluice::Sample>>> requests(runs);
  for (std::size_t i = 0; i < runs; ++i) requests[i].source = task.source, requests[i].seed = i + 1;
  Row row;
  for (auto const& result : sluice::decode(task.model, std::move(requests), search)) {
    Outputs found;
    for (auto const& h : result.hypotheses) found[h.tokens] += 1;
    row.distance += total_variation(found, task.exact);
  }
  auto const n = static_cast<double>(runs);
  row.distance /= n, row.rows = static_cast<double>(task.model.count) / n;
  return row;
}

Row asap(Task& task, std::int32_t samples, std::size_t runs) {
  Row row;
  for (std::size_t run = 0; run < runs; ++run) {
    Asap sampler(task);
    Outputs found;
    std::size_t rows = 0;
    for (std::int32_t i = 0; i < samples; ++i)
      found[sampler.draw(sluice::derive(run + 1, static_cast<std::uint64_t>(i)), rows)] += 1;
    row.distance += total_variation(found, task.exact), row.rows += static_cast<double>(rows);
  }
  row.distance /= static_cast<double>(runs), row.rows /= static_cast<double>(runs);
  return row;
}

void distances(std::size_t tables, std::size_t runs) {
  std::vector<std::string> const texts{"", "a", "b", "c", "ab", "ca", "bc", "("};
  sluice::TokenBytes const bytes(texts);
  sluice::Vocabulary const vocabulary{.size = 8, .bos = 0, .eos = {0}};
  sluice::TokenTrie const trie(bytes, vocabulary);
  Structure const structure(sluice::Grammar::from_regex("(ab|ca|b)*ac?|b+c"), trie);
  std::vector<Task> tasks;
  double z = 0, outputs = 0;
  for (std::size_t i = 0; i < tables; ++i) {
    auto& task = tasks.emplace_back(Task{Hashed(8, 4), i, structure, 5});
    task.enumerate();
    z += task.z / static_cast<double>(tables);
    outputs += static_cast<double>(task.exact.size()) / static_cast<double>(tables);
  }
  std::printf(
      "%zu models of 8 tokens, of whose outputs of up to 5 tokens %.0f match, Z = %.3f on average; %zu runs each\n\n",
      tables, outputs, z, runs);
  std::printf("| method | n | total variation | rows | questions | runs with no output |\n| --- | --- | --- | --- | "
              "--- | --- |\n");
  auto const print = [&](char const* method, std::int32_t n, std::function<Row(Task&)> const& of) {
    Row mean;
    auto const count = static_cast<double>(tables);
    for (auto& task : tasks) {
      auto const row = of(task);
      mean.distance += row.distance / count, mean.rows += row.rows / count;
      mean.asked += row.asked / count, mean.failed += row.failed / count;
    }
    std::printf("| %s | %d | %.3f | %.1f | %.1f | %.3f |\n", method, n, mean.distance, mean.rows, mean.asked,
                mean.failed);
    std::fflush(stdout);
  };
  for (auto const n : {4, 16, 64, 256}) {
    auto const with = [&](Proposal proposal, float resample_below, std::int32_t looks) {
      return [=](Task& task) {
        return particles(
            task, Particles{.particles = n, .proposal = proposal, .resample_below = resample_below, .looks = looks},
            runs);
      };
    };
    print("masking", n, [&](Task& task) { return masking(task, n, runs); });
    print("ASAp", n, [&](Task& task) { return asap(task, n, (std::min)(runs, std::size_t{20})); });
    print("plain rejection", n, with(Proposal::model, 0, 1));
    print("particles, model", n, with(Proposal::model, 0.5f, 1));
    print("particles, rejection", n, with(Proposal::rejection, 0.5f, 1));
    print("particles, rejection, 4 looks", n, with(Proposal::rejection, 0.5f, 4));
    print("particles, product", n, with(Proposal::product, 0.5f, 1));
  }
}

/// Random scores by place and last token, and nine tenths of the probability on what a grammar allows: a model that nearly knows it. Counts
/// its rows and its time.
class Knowing {
 public:
  using Source = int;
  static constexpr sluice::Abilities abilities{.ragged = true};

  Knowing(std::int32_t size, Structure structure) : structure_(std::move(structure)), size_(size) {
    for (Token i = 0; i < size_ + shifts; ++i) table_.push_back(2 * static_cast<float>(sluice::gumbel(3, i)));
  }
  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 0, .eos = {0}}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const> slots) {
    for (auto const one : slots) slot(one) = {structure_.start(), true};
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    time += bench::milliseconds([&] { answer(rows); });
    count += rows.size();
    return sluice::scores(scores_.data(), std::ssize(rows), size_);
  }
  std::size_t count = 0;
  double time = 0;  // in milliseconds

 private:
  struct Held {
    Structure::State state{};
    bool first = false;
  };
  Held& slot(sluice::Slot number) {
    auto const i = static_cast<std::size_t>(number);
    if (held_.size() <= i) held_.resize(i + 1);
    return held_[i];
  }
  void answer(std::span<sluice::Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) slot((std::max)(row.from, row.to)), slot(row.to) = slot(row.from);
    scores_.clear();
    for (auto const& row : rows) {
      auto& held = slot(row.to);
      if (!held.first) held.state = structure_.next(held.state, row.tokens.back());
      held.first = false;
      auto const shift = (row.length * 37 + row.tokens.back()) % shifts;
      auto const set = structure_.may_follow(held.state, 1000);
      double allowed = 0, all = 0;
      auto const line = scores_.size();
      for (Token v = 0; v < size_; ++v) {
        scores_.push_back(table_[static_cast<std::size_t>(v + shift)]);
        auto const e = std::exp(static_cast<double>(scores_.back()));
        all += e;
        if (set != nullptr && set->contains(v)) allowed += e;
      }
      if (allowed <= 0) continue;
      auto const more = static_cast<float>(std::log(9 * (all - allowed) / allowed));
      for (Token v = 0; v < size_; ++v)
        if (set->contains(v)) scores_[line + static_cast<std::size_t>(v)] += more;
    }
  }

  static constexpr Token shifts = 997;
  Structure structure_;
  std::int32_t size_;
  std::vector<float> table_, scores_;
  std::vector<Held> held_;
};

/// The time besides the model's own, in seconds.
template <class S>
double seconds(Knowing& model, S const& search, std::size_t requests, std::size_t& outputs) {
  model.time = 0;
  auto const time = bench::milliseconds([&] {
    for (auto const& result : sluice::decode(model, std::vector<int>(requests), search))
      outputs += result.hypotheses.size();
  });
  return (time - model.time) / 1000;
}

void costs(std::size_t size, std::size_t requests) {
  auto const texts = bench::merged_tokens(size);
  sluice::TokenBytes const bytes(texts);
  auto const size_of = static_cast<std::int32_t>(size);
  sluice::TokenTrie const trie(bytes, {.size = size_of, .bos = 0, .eos = {0}});
  auto const grammar = sluice::Grammar::from_json_schema(
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20},
          "seats": {"type": "integer", "minimum": 1, "maximum": 8}, "window": {"type": "boolean"}},
          "required": ["name", "seats"], "additionalProperties": false})");
  Knowing model(size_of, Structure(grammar, trie));
  std::printf("\nA vocabulary of %zu, a JSON schema, %zu requests of 16, at most 40 tokens; time besides the model\n\n",
              size, requests);
  std::printf(
      "| method | rows | outputs | questions a row | us a row | to masking |\n| --- | --- | --- | --- | --- | --- |\n");
  sluice::LengthLimits const length{.max = 40};
  struct Method {
    char const* name;
    std::function<double(Structure const&, std::size_t&)> run;
  };
  std::size_t asked = 0;
  auto const with = [&](Proposal proposal) {
    return [&, proposal](Structure const& structure, std::size_t& outputs) {
      Particles search{.particles = 16, .proposal = proposal, .distinct = false, .length = length};
      search.potential.inner.accepted = structure;
      auto const time = seconds(model, search, requests, outputs);
      asked = *search.potential.asked;
      return time;
    };
  };
  std::vector<Method> const methods{
      {"no grammar",
       [&](Structure const&, std::size_t& outputs) {
         return seconds(model, sluice::Sample{.samples = 16, .length = length}, requests, outputs);
       }},
      {"masking",
       [&](Structure const& structure, std::size_t& outputs) {
         return seconds(model, sluice::Processed<sluice::Sample>({.samples = 16, .length = length}, structure),
                        requests, outputs);
       }},
      {"particles, model", with(Proposal::model)},
      {"particles, rejection", with(Proposal::rejection)},
      {"particles, product", with(Proposal::product)},
  };
  std::vector<std::vector<double>> times(methods.size());
  std::vector<double> rows(methods.size()), questions(methods.size()), found(methods.size());
  for (int round = 0; round < 5; ++round)
    for (std::size_t m = 0; m < methods.size(); ++m) {
      Structure const structure(grammar, trie);  // its masks are found anew
      model.count = 0, asked = 0;
      std::size_t outputs = 0;
      auto const time = methods[m].run(structure, outputs);
      rows[m] = static_cast<double>(model.count), questions[m] = static_cast<double>(asked),
      found[m] = static_cast<double>(outputs);
      times[m].push_back(time / rows[m] * 1e6);
    }
  for (auto& one : times) std::ranges::sort(one);
  for (std::size_t m = 0; m < methods.size(); ++m)
    std::printf("| %s | %.0f | %.0f | %.2f | %.0f | %.2f |\n", methods[m].name, rows[m], found[m],
                questions[m] / rows[m], times[m][2], times[m][2] / times[1][2]);
}

}  // namespace

int main(int argc, char** argv) try {
  auto const argument = [&](int i, std::size_t usual) {
    if (i >= argc) return usual;
    auto const value = std::strtoul(argv[i], nullptr, 10);
    if (value == 0) throw std::invalid_argument(std::string(argv[i]) + " is no number above 0");
    return std::size_t{value};
  };
  distances(argument(1, 12), argument(2, 100));
  costs(argument(3, 32000), argument(4, 8));
  return 0;
} catch (std::exception const& error) {
  std::fprintf(stderr, "particles: %s\n", error.what());
  return 2;
}
