// SPDX-License-Identifier: Apache-2.0
// The samplers against libllama's own, on the same scores and histories: the same candidates, with the same probabilities.
#include <sluice/engine/llama.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/llama_models.hpp>
#include <support/sampler_reference.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Own = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;
struct LookingBack {
  TokenBias bias{};
  Penalties penalties{};
  Dry dry{};
};

/// Random options: most samplers are off most of the time.
struct Drawn {
  explicit Drawn(std::uint64_t seed) : random(seed) {}
  bool one_of(std::uint64_t n) { return random() % n == 0; }
  float part() { return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53); }
  Token token(std::size_t size) { return static_cast<Token>(random() % size); }

  Sample sample() {
    auto s = random_sampler(random);
    auto const order = s.order.samplers();
    // There llama.cpp makes NaN of a token whose probability is 0, be it for floats.
    if (s.typical < 1) s.temperature = std::max(s.temperature, 0.5f), s.dynamic_temperature = {};
    if (s.typical < 1 && std::ranges::find(order, Sampler::top_n_sigma) < std::ranges::find(order, Sampler::typical))
      s.top_n_sigma = 0;
    s.check();
    return s;
  }

  /// \param gently  makes no token impossible
  LookingBack rules(std::size_t size, SequenceBreakers const& breakers, bool gently) {
    TokenBias bias;
    for (auto i = one_of(3) ? random() % 5 : 0; i > 0; --i) {
      auto const token = static_cast<Token>(random() % size);
      if (std::ranges::find(bias.biases, token, &std::pair<Token, float>::first) == bias.biases.end())
        bias.biases.emplace_back(token, 6 * part() - 3);
    }
    Penalties penalties;
    if (one_of(2)) {
      penalties = {.repetition = 0.5f + part(), .frequency = part() - 0.3f, .presence = part() - 0.3f};
      penalties.window = static_cast<std::int32_t>(random() % 60);
    }
    Dry dry;
    if (one_of(2)) {
      dry.multiplier = 2 * part(), dry.base = gently ? 1 : 1 + part();
      dry.allowed_length = static_cast<std::int32_t>(random() % 4);
      dry.window = static_cast<std::int32_t>(random() % 60);
      if (!one_of(3)) dry.breakers = breakers;
    }
    LookingBack rules{bias, penalties, dry};
    penalties.check(), dry.check();
    return rules;
  }
  std::mt19937_64 random;
};

Own own_sampler(Sampler kind, Sample const& s, bool xtc_strikes) {
  auto const keep = static_cast<std::size_t>(s.min_keep);
  auto* const made = [&] {
    switch (kind) {
      case Sampler::temperature:
        return llama_sampler_init_temp_ext(s.temperature, s.dynamic_temperature.range, s.dynamic_temperature.exponent);
      case Sampler::top_n_sigma: return llama_sampler_init_top_n_sigma(s.top_n_sigma);
      case Sampler::top_k: return llama_sampler_init_top_k(s.top_k);
      case Sampler::typical: return llama_sampler_init_typical(s.typical, keep);
      case Sampler::top_p: return llama_sampler_init_top_p(s.top_p, keep);
      case Sampler::min_p: return llama_sampler_init_min_p(s.min_p, keep);
      case Sampler::xtc: break;
    }
    // Its random numbers are its own: it is told whether to act.
    return llama_sampler_init_xtc(xtc_strikes && s.xtc.probability > 0 ? 1.0f : 0.0f, s.xtc.threshold, keep, 1);
  }();
  return {made, &llama_sampler_free};
}

/// The samplers that remember something, one after the other, and behind them what chooses.
struct OwnChain {
  OwnChain(llama_vocab const* vocabulary, Sample const& s, LookingBack const& rules,
           std::vector<std::string> const& breakers)
      : sample(s) {
    auto const& [bias, penalties, dry] = rules;
    std::vector<llama_logit_bias> biases;
    for (auto const& [token, add] : bias.biases) biases.push_back({token, add});
    auto const size = llama_vocab_n_tokens(vocabulary);
    before.emplace_back(llama_sampler_init_logit_bias(size, static_cast<std::int32_t>(biases.size()), biases.data()),
                        &llama_sampler_free);
    before.emplace_back(llama_sampler_init_penalties(size, penalties.window, penalties.repetition, penalties.frequency,
                                                     penalties.presence),
                        &llama_sampler_free);
    std::vector<char const*> texts;
    for (auto const& text : breakers) texts.push_back(text.c_str());
    before.emplace_back(llama_sampler_init_dry(vocabulary, dry.multiplier, dry.base, dry.allowed_length, dry.window,
                                               texts.data(), texts.size()),
                        &llama_sampler_free);
    last = {s.mirostat.tau > 0         ? llama_sampler_init_mirostat_v2(7, s.mirostat.tau, s.mirostat.eta)
            : s.adaptive_p.target >= 0 ? llama_sampler_init_adaptive_p(s.adaptive_p.target, s.adaptive_p.decay, 7)
                                       : llama_sampler_init_dist(7),
            &llama_sampler_free};
  }
  void accept(Token token) {
    for (auto& one : before) llama_sampler_accept(one.get(), token);
    llama_sampler_accept(last.get(), token);
  }
  /// What it chooses from, with probabilities; which it chose.
  std::pair<std::map<Token, double>, Token> apply(std::vector<float> const& line, bool xtc_strikes) {
    std::vector<llama_token_data> data;
    for (std::size_t v = 0; v < line.size(); ++v) data.push_back({static_cast<llama_token>(v), line[v], 0});
    llama_token_data_array all{data.data(), data.size(), -1, false};
    for (auto& one : before) llama_sampler_apply(one.get(), &all);
    for (auto const kind : sample.order.samplers())
      llama_sampler_apply(own_sampler(kind, sample, xtc_strikes).get(), &all);
    llama_sampler_apply(last.get(), &all);
    std::map<Token, double> candidates;
    for (std::size_t i = 0; i < all.size; ++i)
      if (all.data[i].logit > -std::numeric_limits<float>::infinity())
        candidates[all.data[i].id] = static_cast<double>(all.data[i].p);
    return {candidates, all.data[all.selected].id};
  }
  Sample sample;
  std::vector<Own> before;
  Own last{nullptr, &llama_sampler_free};
};

std::string text(Sample const& s) {
  std::string out = "order";
  for (auto const one : s.order.samplers()) out += ' ' + std::to_string(static_cast<int>(one));
  out += ", temperature " + std::to_string(s.temperature) + " +- " + std::to_string(s.dynamic_temperature.range);
  out += ", top_k " + std::to_string(s.top_k) + ", top_p " + std::to_string(s.top_p) + ", min_p " +
         std::to_string(s.min_p) + ", typical " + std::to_string(s.typical) + ", sigma " +
         std::to_string(s.top_n_sigma);
  out += ", xtc " + std::to_string(s.xtc.probability) + " / " + std::to_string(s.xtc.threshold) + ", mirostat " +
         std::to_string(s.mirostat.tau) + ", adaptive " + std::to_string(s.adaptive_p.target);
  return out + ", keep " + std::to_string(s.min_keep);
}

/// The same options, all cuts moved a little: a token that lies on the border, to floats, is on either side.
Sample moved(Sample s, float by) {
  if (s.top_p < 1) s.top_p *= 1 + by;
  if (s.typical < 1) s.typical *= 1 + by;
  s.min_p *= 1 - by, s.top_n_sigma *= 1 + by, s.xtc.threshold *= 1 - by;
  return s;
}

}  // namespace

TEST_CASE("samplers leave the candidates of llama.cpp's own, with their probabilities", "[llama][sample]") {
  constexpr std::size_t wanted = 10'000;
  std::size_t lines = 0, on_the_border = 0, most = 0;
  double worst = 0, worst_of_many = 0;
  for (auto const words : {0u, 1500u}) {
    auto const model = draw_llama({.words = words});
    auto const* const vocabulary = llama_model_get_vocab(model.get());
    LlamaTokenizer const tokenizer(model.get());
    auto const size = static_cast<std::size_t>(tokenizer.vocabulary().size);
    std::vector<std::string> const texts{"\n", "q", "ab", "bca"};
    auto const breakers = SequenceBreakers::from_text(
        tokenizer.token_bytes(), texts, [&](std::string_view rest) { return tokenizer.tokens(rest, false); });
    LogSoftmaxTopK expander;
    auto const end = lines + (words == 0 ? wanted * 4 / 5 : wanted - wanted * 4 / 5);
    for (std::uint64_t seed = 0; lines < end; ++seed) {
      Drawn draw(seed * 2 + (words > 0));
      auto const sample = draw.sample();
      auto const rules = draw.rules(size, breakers, sample.typical < 1);
      OwnChain own(vocabulary, sample, rules, rules.dry.breakers.contains(5) ? texts : std::vector<std::string>{});
      INFO("words " << words << ", seed " << seed << ": " << text(sample));
      auto const chain = sample.chain();
      auto state = chain.begin();
      sluice::detail::SamplerScratch scratch;
      // A history of few tokens, so that much of it comes again.
      std::vector<Token> prompt, output;
      auto const some = 2 + draw.random() % 6;
      auto const from = draw.random() % (size - some);
      for (auto i = draw.random() % 70; i > 0; --i) prompt.push_back(static_cast<Token>(from + draw.random() % some));
      for (auto const token : prompt) own.accept(token);
      Sentence const sentence{.vocabulary = &tokenizer.vocabulary(), .prompt = prompt};
      auto const penalised = rules.penalties.initial(sentence);
      auto const repeated = rules.dry.initial(sentence);
      std::vector<float> line(size);
      for (int step = 0; step < 8 && lines < end; ++step, ++lines) {
        std::normal_distribution<float> normal(0, 1 + 3 * draw.part());
        for (auto& x : line) x = normal(draw.random);
        if (sample.typical >= 1 && draw.one_of(4))
          for (auto i = draw.random() % (size / 2); i > 0; --i)
            line[draw.random() % size] = -std::numeric_limits<float>::infinity();
        auto const noise = draw.random();
        auto const [expected, taken] = own.apply(line, chain.strikes(noise));

        std::vector<Edit> edits;
        Output const seen{output, 0, tokenizer.vocabulary()};
        rules.bias.edit({}, seen, edits), rules.penalties.edit(penalised, seen, edits);
        rules.dry.edit(repeated, seen, edits);
        auto const left_by = [&](auto const& some_chain) {
          Query query{.edits = edits};
          some_chain.ask(query, static_cast<std::int32_t>(size), state, 0);
          auto const answer =
              expander.expand(scores(line.data(), 1, static_cast<std::ptrdiff_t>(size)), {&query, 1}, {});
          some_chain.apply(answer[0].best, static_cast<std::int32_t>(size), state, noise, scratch);
          std::map<Token, double> left;
          double sum = 0;
          for (auto const c : some_chain.candidates(scratch)) sum += std::exp(static_cast<double>(c.log_prob));
          for (auto const c : some_chain.candidates(scratch))
            left[c.token] = std::exp(static_cast<double>(c.log_prob)) / sum;
          return left;
        };
        auto const same = [&](std::map<Token, double> const& left) {
          return std::ranges::equal(left, expected, {}, &std::pair<Token const, double>::first,
                                    &std::pair<Token const, double>::first);
        };
        auto left = left_by(chain);
        for (auto const by : {1e-6f, -1e-6f, 1e-5f, -1e-5f, 1e-4f, -1e-4f}) {
          if (same(left)) break;
          if (by == 1e-6f) ++on_the_border;
          left = left_by(moved(sample, by).chain());
        }
        INFO("step " << step << ", " << left.size() << " candidates, llama.cpp has " << expected.size());
        REQUIRE(same(left));
        most = std::max(most, left.size());
        // llama.cpp adds up floats: of many tokens, what AdaptiveP takes the tenfold of errs by more.
        auto const many = left.size() > 100 && sample.adaptive_p.target >= 0;
        for (auto const& [token, probability] : expected) {
          auto const difference = std::abs(left[token] - probability);
          (many ? worst_of_many : worst) = std::max(many ? worst_of_many : worst, difference);
          if (difference > (many ? 2e-4 : 1e-5)) CHECK(left[token] == probability);
        }
        Query query{.edits = edits};
        chain.ask(query, static_cast<std::int32_t>(size), state, 0);
        auto const answer = expander.expand(scores(line.data(), 1, static_cast<std::ptrdiff_t>(size)), {&query, 1}, {});
        REQUIRE(left.contains(taken));
        chain.took(taken, answer[0].best, state, scratch);
        own.accept(taken), output.push_back(taken);
      }
    }
  }
  CHECK(on_the_border * 100 < lines);
  std::cout << lines << " lines, " << on_the_border << " with a token on a border, up to " << most
            << " candidates, largest difference of a probability " << worst
            << ", under adaptive-p with over 100 candidates " << worst_of_many << '\n';
}
