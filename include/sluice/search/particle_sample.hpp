// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sampling under constraints that do not bend the model's probabilities. Potentials: what an output is worth besides its
/// probability; Indicator: constraints as potentials.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/detail/particle_rejection.hpp>
#include <sluice/search/detail/particle_weights.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

// clang-format off
template <class A>
concept NamesDead = requires(A const& a, typename A::State const& state) { { a.dead(state) } -> std::convertible_to<bool>; };
template <class A>
concept NamesAlive = requires(A const& a, typename A::State const& state) { { a.alive(state) } -> std::convertible_to<bool>; };
/// Follows an output token by token, and knows which it accepts.
template <class A>
concept Acceptor = std::copyable<typename A::State> && (NamesDead<A> || NamesAlive<A>) &&
  requires(A const& a, typename A::State const& state, Sentence const& sentence, Token token) {
    { a.initial(sentence) } -> std::same_as<typename A::State>;
    { a.next(state, token) } -> std::same_as<typename A::State>;
    { a.complete(state) } -> std::convertible_to<bool>;
  };
template <class A>
concept NamesMayFollow = requires(A const& a, typename A::State const& state, std::int32_t left) {
  { a.may_follow(state, left) } -> std::same_as<std::shared_ptr<TokenSet const>>;
};
template <class A>
concept NamesAllowedSet = requires(A const& a, typename A::State const& state) {
  { a.allowed(state) } -> std::convertible_to<TokenSet const*>;
};
// clang-format on

}  // namespace detail

/// The potential that is 1 for the finished outputs that a ConstraintAutomaton or a Structure accepts, and 0 for all others, those cut at
/// the maximum length included: what is sampled is the model's distribution over accepted outputs.
template <detail::Acceptor A>
struct Indicator {
  A accepted{};

  using State = typename A::State;
  using Wrapped = A;
  /// A Structure's masks hold exactly the tokens that keep it possible.
  static constexpr bool exact = detail::NamesMayFollow<A>;

  State initial(Sentence const& sentence) const { return accepted.initial(sentence); }
  State next(State const& state, Token token) const { return accepted.next(state, token); }
  double log_prefix(State const& state) const { return possible(state) ? 0 : impossible; }
  double log_final(State const& state, bool finished) const {
    return finished && possible(state) && accepted.complete(state) ? 0 : impossible;
  }
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const
      requires(detail::NamesMayFollow<A> || detail::NamesAllowedSet<A>) {
    if constexpr (detail::NamesMayFollow<A>) return accepted.may_follow(state, left);
    else return {std::shared_ptr<void>(), accepted.allowed(state)};  // not owned
  }
  void require_possible(State const& state, Output const& output, std::int32_t left) const requires requires {
    accepted.require_possible(state, output, left);
  }
  { accepted.require_possible(state, output, left); }

 private:
  static constexpr auto impossible = -std::numeric_limits<double>::infinity();
  bool possible(State const& state) const {
    if constexpr (detail::NamesAlive<A>) return accepted.alive(state);
    else return !accepted.dead(state);
  }
};

// clang-format off
/// A factor of the distribution over outputs: p(y) times exp(log_final) is sampled, divided by the sum over all outputs. `State` is a
/// small value that follows an output token by token, as a ConstraintAutomaton's does.
///
///  - `initial(sentence)`: the state before the first token of the output; throws std::invalid_argument for what is invalid for this
///    sentence;
///  - `next(state, token)`: the state after `token`, which is forced or generated, eos included;
///  - `log_final(state, finished)`: the logarithm of the factor of the whole output, whose state this is. `finished`: as in Hypothesis;
///    false for an output that is cut at the maximum length. -infinity: such an output is impossible;
///  - `log_prefix(state)`: a forecast of log_final while the output goes on, which steers the search and does not change what is
///    sampled. It may be -infinity only where no continuation is possible; 0 if nothing is known.
///
/// Values are -infinity or finite. Optional:
///  - `may_follow(state, left)`: a std::shared_ptr<TokenSet const> of the tokens that may come next; all others are impossible. null: any.
///    `left`: how many tokens may still come, the end included. Only Proposal::product asks. With `static constexpr bool exact = true`,
///    each token of a set leaves the potential as it is, so it need not be asked for each of them;
///  - `require_possible(state, output, left)`: throws std::invalid_argument if no output can begin with a forced prefix;
///  - `check()`: throws std::invalid_argument for invalid options, naming the option and its value.
template <class P>
concept Potential = std::copyable<typename P::State> &&
  requires(P const& potential, typename P::State const& state, Sentence const& sentence, Token token, bool finished) {
    { potential.initial(sentence) } -> std::same_as<typename P::State>;
    { potential.next(state, token) } -> std::same_as<typename P::State>;
    { potential.log_prefix(state) } -> std::convertible_to<double>;
    { potential.log_final(state, finished) } -> std::convertible_to<double>;
  };

namespace detail {

template <class P>
concept RestrictingPotential = requires(P const& potential, typename P::State const& state, std::int32_t left) {
  { potential.may_follow(state, left) } -> std::same_as<std::shared_ptr<TokenSet const>>;
};
template <class P>
concept RequiringPotential = requires(P const& potential, typename P::State const& state, Output const& output, std::int32_t left) {
  potential.require_possible(state, output, left);
};
// clang-format on

/// Whether the tokens of a set leave the potential as it is.
template <class P>
consteval bool exact() {
  if constexpr (requires { P::exact; }) return P::exact;
  else return false;
}

/// Calls a potential's check(), if it has one.
template <Potential P>
void check_potential(P const& potential) {
  static_assert(RestrictingPotential<P> || !stray_may_follow<P>(),
                "sluice: `may_follow` of a potential must be const, take (State const&, std::int32_t) and return a "
                "std::shared_ptr<TokenSet const>");
  if constexpr (requires { potential.check(); }) potential.check();
  else static_assert(!stray_check<P>(), "sluice: check() of a potential must be const and take nothing");
}

}  // namespace detail

/// A function of the output as a potential: `function(tokens, over)` is the logarithm of the factor, for the tokens so far, forced prefix
/// and eos included. `over`: they are the whole output; else the function gives a forecast, as Potential::log_prefix. Each call of the
/// function costs a copy of the tokens; write a Potential with a State of its own where that is much.
template <class Function>
struct OutputPotential {
  Function function{};

  OutputPotential() requires std::default_initializable<Function>
  = default;
  explicit OutputPotential(Function its_function) : function(std::move(its_function)) {}

  using State = std::vector<Token>;
  State initial(Sentence const& /*sentence*/) const { return {}; }
  State next(State const& tokens, Token token) const {
    State longer;
    longer.reserve(tokens.size() + 1);
    longer.assign(tokens.begin(), tokens.end());
    longer.push_back(token);
    return longer;
  }
  double log_prefix(State const& tokens) const { return function(std::span<Token const>(tokens), false); }
  double log_final(State const& tokens, bool /*finished*/) const {
    return function(std::span<Token const>(tokens), true);
  }
};

/// How ParticleSample draws a particle's next token. Each is corrected by weights, so that all of them sample the same distribution.
enum class Proposal : std::uint8_t {
  model,  ///< from the model; the potential is asked about the token drawn. A token that is impossible ends the particle
  rejection,  ///< from the model, until a token is possible: adaptive weighted rejection sampling. The potential is asked about 1 +
              ///< `looks` tokens, and those rejected
  product,  ///< from the product of model and potential, as masking does: the potential is asked about all tokens, or only for the set
            ///< of those that may follow
};

constexpr char const* name(Proposal proposal) {
  switch (proposal) {
    case Proposal::model: return "model";
    case Proposal::rejection: return "rejection";
    case Proposal::product: return "product";
  }
  return "unknown";
}

/// Draws outputs from p(y) f(y) / Z, where p is the model and f a Potential: for an Indicator, the model's distribution restricted to the
/// accepted outputs, which masking (Sample with a Structure) does not give. A population of particles, each an output in the making with
/// a weight; they are the slots of one sentence. Sequential Monte Carlo (Lew et al. 2023, "Sequential Monte Carlo Steering of Large
/// Language Models using Probabilistic Programs"; Loula et al. 2025): each token multiplies the weight by what its proposal left out and
/// by the change of the potential. When the effective number of particles falls below a share of them, they are resampled.
///
/// Hypothesis::weight estimates the probabilities of outputs, with an error that falls as `particles` rises; Result::log_z estimates
/// log Z, and exp(log_z) is unbiased for any number of particles. For an Indicator, Z is the probability that the model by itself gives
/// an accepted output. log_prob is the model's, at this temperature; score = log(weight).
///
/// The model is the one of Sample: tokens never generated, and eos while the output is too short, are forbidden before the softmax; a rule
/// around this search changes the model that is sampled. An output cut at the maximum length is an outcome, of which log_final decides. A
/// forced prefix is a condition: Z is of what follows it. A result depends on the sentence, its options and its seed alone.
///
/// `resample_below` = 0 is importance sampling, and with Proposal::model and an Indicator plain rejection sampling: weights are equal, and
/// particles that fail have none.
///
/// One slot for each particle, and one row a step for each that goes on. With Proposal::rejection, lists of `tries` tokens; product lists
/// all tokens that may follow, O(V) for each row. States of the potential are copied at resampling.
template <Potential P>
struct ParticleSample {
  std::int32_t particles = 16;              ///< >= 1
  Proposal proposal = Proposal::rejection;  ///< how tokens are drawn
  float resample_below = 0.5f;              ///< share of `particles`; in [0, 1]; 0: never
  std::int32_t tries =
      64;  ///< of rejection: tokens tried at most; then the particle ends, and the weights of the others make up for it;
           ///< >= 1
  std::int32_t looks =
      1;  ///< of rejection: tokens tried after the one that is drawn, for its weight. More: less variance; >= 1
  float temperature = 1;  ///< the model's scores are divided by it; > 0
  bool distinct =
      true;  ///< equal outputs are one hypothesis, with the sum of their weights, and the heaviest is first (ties by tokens);
             ///< false: the particles in their order, but those without weight
  LengthLimits length{};
  P potential{};

  /// Rules around this search apply to its probes.
  static constexpr bool chooses_probes = true;

  struct State : detail::OutputLimits {
    struct Particle {
      double log_prob = 0, log_potential = 0;
      History::Node node = History::root;
      Token token = 0;  // the last token; to be fed
      Slot from = 0;    // whose slot it continues
      bool alive = true, finished = false;
    };
    History history;
    detail::ParticleWeights weights;
    std::vector<Particle> particles;         // [particles]; each has the slot of its number
    std::vector<typename P::State> states;   // [particles]
    std::vector<typename P::State> tried;    // [1]: of the token drawn
    std::vector<std::uint8_t> used;          // [slot] holds tokens
    std::vector<std::vector<Token>> probes;  // [particles]
    std::vector<double> values;              // [probe]
    std::vector<Token> own;                  // of settled()
    std::uint64_t seed = 0;
    std::int32_t held = 0;       // tokens in the slots
    std::int32_t generated = 0;  // tokens, prefix included
    bool first = true;
  };

  void check() const {
    detail::require_slots("particles", particles);
    require(proposal <= Proposal::product, "proposal", static_cast<int>(proposal),
            "must be model, rejection or product");
    require(resample_below >= 0 && resample_below <= 1, "resample_below", resample_below, "must be in [0, 1]");
    require(tries >= 1, "tries", tries, "must be at least 1");
    require(looks >= 1, "looks", looks, "must be at least 1");
    require(temperature > 0 && std::isfinite(temperature), "temperature", temperature, "must be a number > 0");
    length.check();
    detail::check_potential(potential);
  }
  std::int32_t slot_count() const { return particles; }

  void begin(State& s, Sentence const& sentence) const;
  void plan(State& s, Plan& plan) const;
  bool advance(State& s, Expansion const& answer) const;
  Progress progress(State const& s) const { return {s.held, static_cast<std::int32_t>(alive(s))}; }
  void settled(State& s, std::vector<Token>& tokens) const {
    tokens.clear();
    auto first = true;
    for (std::size_t i = 0; i < s.particles.size(); ++i) {
      if (!(s.weights[i] > none)) continue;
      s.history.write(s.particles[i].node, first ? tokens : s.own);
      if (!first)
        tokens.erase(std::mismatch(tokens.begin(), tokens.end(), s.own.begin(), s.own.end()).first, tokens.end());
      first = false;
    }
  }
  void finish(State& s, Result& result) const;

 private:
  using Particle = typename State::Particle;
  static constexpr auto none = -std::numeric_limits<double>::infinity();

  /// The noise of a particle's token at `position`, and of the resampling there.
  static std::uint64_t noise(State const& s, std::size_t particle) {
    return derive(derive(s.seed, particle), static_cast<std::uint64_t>(s.generated));
  }
  static std::uint64_t resampling_noise(State const& s) {
    constexpr auto apart = ~std::uint64_t{0};  // no particle has this number
    return derive(derive(s.seed, apart), static_cast<std::uint64_t>(s.generated));
  }
  static std::size_t alive(State const& s) {
    return static_cast<std::size_t>(
        std::count_if(s.particles.begin(), s.particles.end(), [](Particle const& one) { return one.alive; }));
  }

  /// Whether an output is over after this token.
  static bool over(State const& s, Token token) { return s.vocabulary->ends(token) || s.generated + 1 >= s.bounds.max; }
  /// The log potential of an output after `token`, which led to `state`.
  double value(State const& s, typename P::State const& state, Token token) const {
    auto const found =
        static_cast<double>(over(s, token) ? potential.log_final(state, s.finished_by(token, s.generated + 1))
                                           : potential.log_prefix(state));
    refuse_value(found);
    return found;
  }
  static void refuse_value(double found) {
    require(found < std::numeric_limits<double>::infinity(), "potential", found,
            "must be -infinity or a finite number");
  }

  void list_probes(State& s, std::size_t particle) const;
  void take(State& s, std::size_t particle, Line const& line) const;
  bool take_first(State& s, std::size_t particle, Line const& line) const;
  bool reject(State& s, std::size_t particle, Line const& line) const;
  bool take_product(State& s, std::size_t particle, Line const& line) const;
  bool append(State& s, std::size_t particle, Candidate chosen, typename P::State state, double log_potential) const;
  void resample(State& s) const;
};

template <Potential P>
void ParticleSample<P>::begin(State& s, Sentence const& sentence) const {
  s.begin(sentence, length);
  s.history.clear(s.prefix.size());
  s.seed = sentence.seed, s.first = true;
  s.held = sentence.held, s.generated = s.prefix.size();
  auto state = potential.initial(sentence);
  for (auto const token : sentence.prefix) state = potential.next(state, token);
  if constexpr (detail::RequiringPotential<P>)
    potential.require_possible(state, Output{sentence.prefix, sentence.prefix.size(), *sentence.vocabulary},
                               s.bounds.max - s.generated);
  auto const empty = s.bounds.max == 0;
  auto const log_potential = static_cast<double>(empty ? potential.log_final(state, sentence.vocabulary->eos.empty())
                                                       : potential.log_prefix(state));
  refuse_value(log_potential);
  require(empty || log_potential > none, "potential", log_potential,
          "makes every output impossible that begins with the prefix");
  auto const count = static_cast<std::size_t>(particles);
  s.weights.begin(count, log_potential);
  s.particles.assign(count, {.log_potential = log_potential, .token = sentence.last, .alive = !empty});
  s.states.assign(count, state), s.tried.assign(1, state);
  s.used.assign(count, 0), s.used[0] = 1;
  s.probes.resize(count);
}

template <Potential P>
void ParticleSample<P>::list_probes(State& s, std::size_t particle) const {
  auto& probes = s.probes[particle];
  probes.clear();
  std::shared_ptr<TokenSet const> set;
  if constexpr (detail::RestrictingPotential<P>)
    set = potential.may_follow(s.states[particle], s.bounds.max - s.generated);
  if (set == nullptr) {
    for (Token token = 0; token < s.vocabulary->size; ++token) probes.push_back(token);
    return;
  }
  auto const words = set->words();
  for (std::size_t i = 0; i < words.size(); ++i)
    for (auto rest = words[i]; rest != 0; rest &= rest - 1)
      probes.push_back(static_cast<Token>(i * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
}

template <Potential P>
void ParticleSample<P>::plan(State& s, Plan& plan) const {
  for (std::size_t i = 0; i < s.particles.size(); ++i)
    if (s.used[i] != 0 && !s.particles[i].alive && !s.first) plan.release(static_cast<Slot>(i)), s.used[i] = 0;
  for (std::size_t i = 0; i < s.particles.size(); ++i) {
    auto& one = s.particles[i];
    if (!one.alive) continue;
    plan.row(one.from, static_cast<Slot>(i), s.held, {&one.token, 1});
    s.used[i] = 1;
    Query query{.edits = s.edits(s.generated), .temperature = temperature};
    switch (proposal) {
      case Proposal::model: query.noise = noise(s, i); break;
      case Proposal::rejection: query.best = (std::min)(tries, s.vocabulary->size), query.noise = noise(s, i); break;
      // and the best: rules leave a line as it is that lists nothing
      case Proposal::product: list_probes(s, i), query.probes = s.probes[i]; break;
    }
    plan.ask(query);
  }
  s.first = false;
}

template <Potential P>
bool ParticleSample<P>::advance(State& s, Expansion const& answer) const {
  if (answer.size() == 0) return true;
  ++s.held;
  std::size_t line = 0;
  for (std::size_t i = 0; i < s.particles.size(); ++i) {
    if (!s.particles[i].alive) continue;
    if (s.generated == s.prefix.size()) s.particles[i].log_prob = s.prefix.ranked();
    s.particles[i].from = static_cast<Slot>(i);
    take(s, i, answer[line++]);
  }
  ++s.generated;
  if (alive(s) == 0) return true;
  if (s.weights.effective() < static_cast<double>(resample_below) * static_cast<double>(particles)) resample(s);
  return alive(s) == 0;
}

/// Draws the next token of a particle, and weights it.
template <Potential P>
void ParticleSample<P>::take(State& s, std::size_t particle, Line const& line) const {
  auto taken = false;
  switch (proposal) {
    case Proposal::model: taken = take_first(s, particle, line); break;
    case Proposal::rejection: taken = reject(s, particle, line); break;
    case Proposal::product: taken = take_product(s, particle, line); break;
  }
  if (taken) return;
  s.particles[particle].alive = false;
  s.weights.kill(particle);
}

/// Appends the token drawn. False if it is impossible.
template <Potential P>
bool ParticleSample<P>::append(State& s, std::size_t particle, Candidate chosen, typename P::State state,
                               double log_potential) const {
  if (!(log_potential > none)) return false;
  auto& one = s.particles[particle];
  one.node = s.history.add(one.node, chosen.token, chosen.log_prob);
  one.token = chosen.token, one.log_prob += static_cast<double>(chosen.log_prob);
  one.log_potential = log_potential;
  one.finished = s.finished_by(chosen.token, s.generated + 1), one.alive = !over(s, chosen.token);
  s.states[particle] = std::move(state);
  return true;
}

template <Potential P>
bool ParticleSample<P>::take_first(State& s, std::size_t particle, Line const& line) const {
  if (line.best.empty()) return false;
  auto const chosen = line.best[0];
  auto state = potential.next(s.states[particle], chosen.token);
  auto const found = value(s, state, chosen.token);
  s.weights.multiply(particle, found - s.particles[particle].log_potential);
  return append(s, particle, chosen, std::move(state), found);
}

template <Potential P>
bool ParticleSample<P>::reject(State& s, std::size_t particle, Line const& line) const {
  auto drawn = none;  // its log potential
  auto const found =
      detail::reject(line.best, line.best.size() < static_cast<std::size_t>(tries), looks, [&](std::size_t place) {
        auto const token = line.best[place].token;
        auto state = potential.next(s.states[particle], token);
        auto const its = value(s, state, token);
        if (its > none && !(drawn > none)) drawn = its, s.tried[0] = std::move(state);
        return its > none;
      });
  if (!(found.mass > 0)) return false;
  s.weights.multiply(particle, std::log(found.mass) + drawn - s.particles[particle].log_potential);
  return append(s, particle, line.best[found.place], std::move(s.tried[0]), drawn);
}

/// Draws from all probes in proportion to probability times potential, by the Gumbel-max trick.
template <Potential P>
bool ParticleSample<P>::take_product(State& s, std::size_t particle, Line const& line) const {
  auto const& probes = s.probes[particle];
  auto const before = s.particles[particle].log_potential;
  auto const own = noise(s, particle);
  auto ask = true;  // each token
  if constexpr (detail::exact<P>() && detail::RestrictingPotential<P>)
    ask = probes.size() == static_cast<std::size_t>(s.vocabulary->size);
  s.values.resize(probes.size());
  auto most = none, bar = none;
  std::size_t chosen = probes.size();
  for (std::size_t i = 0; i < probes.size(); ++i) {
    auto& found = s.values[i];
    found = static_cast<double>(line.probes[i]);
    if (!(found > none)) continue;
    if (ask) found += value(s, potential.next(s.states[particle], probes[i]), probes[i]) - before;
    if (!(found > none)) continue;
    most = (std::max)(most, found);
    auto const perturbed = found + gumbel(own, probes[i]);
    if (chosen == probes.size() || perturbed > bar) chosen = i, bar = perturbed;
  }
  if (chosen == probes.size()) return false;
  double sum = 0;
  for (auto const x : s.values) sum += std::exp(x - most);
  auto state = potential.next(s.states[particle], probes[chosen]);
  auto const found = value(s, state, probes[chosen]);
  s.weights.multiply(particle, most + std::log(sum));
  return append(s, particle, {probes[chosen], line.probes[chosen]}, std::move(state), found);
}

template <Potential P>
void ParticleSample<P>::resample(State& s) const {
  s.weights.resample(uniform(resampling_noise(s), 0));
  s.weights.inherit(s.particles);  // with `from`: children continue their parent's slot
  s.weights.inherit(s.states);
}

template <Potential P>
void ParticleSample<P>::finish(State& s, Result& result) const {
  result.hypotheses.clear();
  auto const all = s.weights.log_sum();
  result.log_z = s.weights.log_z(), result.log_z_error = s.weights.log_z_error();
  for (std::size_t i = 0; i < s.particles.size(); ++i) {
    if (!(s.weights[i] > none)) continue;
    auto const& one = s.particles[i];
    auto& h = result.hypotheses.emplace_back();
    s.history.write(one.node, h);
    h.log_prob = one.log_prob, h.finished = one.finished;
    h.weight = std::exp(s.weights[i] - all), h.score = std::log(h.weight);
  }
  auto& hypotheses = result.hypotheses;
  if (hypotheses.empty())
    return result.fail(Failure::no_token_left, "every particle became impossible under the potential");
  if (distinct) {
    std::sort(hypotheses.begin(), hypotheses.end(),
              [](Hypothesis const& a, Hypothesis const& b) { return a.tokens < b.tokens; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < hypotheses.size(); ++i) {
      if (hypotheses[i].tokens == hypotheses[kept].tokens) hypotheses[kept].weight += hypotheses[i].weight;
      else if (++kept != i) hypotheses[kept] = std::move(hypotheses[i]);
    }
    hypotheses.resize(kept + 1);
    for (auto& h : hypotheses) h.score = std::log(h.weight);
    std::sort(hypotheses.begin(), hypotheses.end(), [](Hypothesis const& a, Hypothesis const& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.tokens < b.tokens;
    });
  }
  if (s.prefix.impossible())
    for (auto& h : hypotheses) h.log_prob = s.prefix.log_prob();
}

}  // namespace sluice::inline v0
