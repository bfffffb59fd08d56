// SPDX-License-Identifier: Apache-2.0
/// \file
/// The minimum number of tokens that a text needs to be complete.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/spelling.hpp>
#include <sluice/grammar/detail/stable_vector.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// For each place of a grammar and each two places of a spelling: the minimum number of tokens that end within a rest of
/// the rule's text (or, in a loop, of the repetition's) that leads from the first place to the second. This is Knuth's
/// (1977) algorithm for the shortest text of a grammar, on the product of grammar and spelling (Bar-Hillel, Perles and
/// Shamir 1961). Exact if the spelling has all tokens; otherwise for its tokens only.
class FewestTokens {
 public:
  using Count = std::int32_t;
  using Counts = std::vector<Count>;  // [from][to]
  static constexpr Count never = (std::numeric_limits<Count>::max)() / 4;

  SLUICE_LAZY FewestTokens(Automaton const& automaton, TokenNodes const& trie) : a_(automaton) {
    auto const places = most_places(automaton);
    auto const all = trie.inner() <= places;
    if (!all) solve(trie, 1);
    covers_ = !all && covered();
    if (!covers_) solve(trie, places);
    if (!covers_) return;
    std::int64_t inside = 0;
    for (auto const count : counts_) inside = (std::max)(inside, std::int64_t{count < never ? count : 0});
    auto most_of_all = inside;
    for (auto const& loop : a_.loops) {  // from the beginning of a repetition to the end of the rule
      auto const rest = loop.to < 0 ? 0 : counts_[at(loop.to)];
      auto const body = loop.body < 0 ? 0 : counts_[at(loop.body)];
      most_of_all = (std::max)(most_of_all, inside + rest + std::int64_t{body} * loop.minimum);
    }
    most_ = static_cast<Count>((std::min)(std::int64_t{never}, most_of_all));
  }

  Spelling const& spelling() const { return *spelling_; }
  std::size_t places() const { return places_; }
  /// Whether any text can be completed byte by byte with tokens: counts are then in bytes, and a completion always
  /// exists.
  bool covers() const { return covers_; }
  /// At least the largest count from any place to the end of its rule, if covers(); otherwise `never`.
  Count most() const { return most_; }
  /// The counts from a place, which may be in a loop after this number of repetitions, to the end of the rule.
  SLUICE_LAZY Counts of(std::int32_t place, std::int32_t repetitions) const {
    auto const* const own = counts_.data() + at(place) * places_ * places_;
    Counts out(own, own + places_ * places_);
    auto const within = a_.places[at(place)].within;
    if (within >= 0 && a_.loops[at(within)].counts_characters()) return product(out, matrix(a_.loops[at(within)].to));
    return within < 0 ? out : product(out, after(a_.loops[at(within)], repetitions + 1));
  }

 private:
  using Place = Automaton::Place;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  SLUICE_LAZY static std::int32_t most_places(Automaton const& a) {
    auto const nodes = static_cast<double>(a.nodes() + 1);
    return std::clamp(static_cast<std::int32_t>(std::sqrt(2e6 / nodes)), 1, a.loops.empty() ? 64 : 24);
  }
  SLUICE_LAZY static std::array<bool, 256> needed(Automaton const& a) {
    std::array<bool, 256> out{};
    auto const need = [&](std::uint8_t first, std::uint8_t last) {
      for (int byte = first; byte <= last; ++byte) out[static_cast<std::size_t>(byte)] = true;
    };
    if (a.behind_space) need(' ', ' ');
    for (auto const& place : a.places) {
      if (place.kind == Place::byte) need(place.low, place.high);
      if (place.kind == Place::state)
        for (auto const& edge : a.edges_of(place)) need(edge.first, edge.last);
    }
    return out;
  }

  Count get(std::int32_t place, std::size_t from, std::size_t to) const {
    return counts_[(at(place) * places_ + from) * places_ + to];
  }
  SLUICE_LAZY Counts matrix(std::int32_t place) const {
    if (place < 0) return Counts(places_ * places_, never);  // NOLINT(modernize-return-braced-init-list): a size
    auto const* const own = counts_.data() + at(place) * places_ * places_;
    return {own, own + places_ * places_};
  }
  SLUICE_LAZY Counts product(Counts const& a, Counts const& b) const {
    Counts out(places_ * places_, never);
    for (std::size_t q = 0; q < places_; ++q)
      for (std::size_t m = 0; m < places_; ++m)
        if (auto const one = a[q * places_ + m]; one < never)
          for (std::size_t r = 0; r < places_; ++r)
            out[q * places_ + r] = (std::min)(out[q * places_ + r], one + b[m * places_ + r]);
    for (auto& count : out) count = (std::min)(count, never);
    return out;
  }
  SLUICE_LAZY Counts identity() const {
    Counts out(places_ * places_, never);
    for (std::size_t q = 0; q < places_; ++q) out[q * places_ + q] = 0;
    return out;
  }
  SLUICE_LAZY Counts power(Counts base, std::int64_t exponent) const {
    auto out = identity();
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) out = product(out, base);
      if (exponent > 1) base = product(base, base);
    }
    return out;
  }
  /// From between two repetitions, this many before, to the end of the rule.
  SLUICE_LAZY Counts after(Automaton::Loop const& loop, std::int32_t repetitions) const {
    auto const least = (std::max)(0, loop.minimum - repetitions);
    auto const most = loop.maximum < 0 ? (std::numeric_limits<std::int32_t>::max)() : loop.maximum - repetitions;
    if (places_ == 1) {
      auto const rest = loop.to < 0 ? never : counts_[at(loop.to)];
      auto const body = loop.body < 0 ? never : counts_[at(loop.body)];
      auto const all = std::int64_t{rest} + (least == 0 ? 0 : std::int64_t{body} * least);
      return {static_cast<Count>((std::min)(std::int64_t{never}, all))};
    }
    auto const body = matrix(loop.body);
    auto once = body;
    for (std::size_t q = 0; q < places_; ++q) once[q * places_ + q] = 0;
    auto const more = (std::min)(std::int64_t{most} - least, static_cast<std::int64_t>(places_));
    return product(product(power(body, least), power(std::move(once), more)), matrix(loop.to));
  }

  SLUICE_LAZY bool covered() const {
    for (std::int32_t p = 0; p < a_.nodes(); ++p) {
      auto const& place = a_.places[at(p)];
      if (counts_[at(p)] >= never && !(place.kind == Place::split && place.count == 0)) return false;
    }
    return true;
  }

  /// \param most  places of the spelling
  SLUICE_LAZY void solve(TokenNodes const& trie, std::int32_t most) {
    steps_.clear();
    spelling_.emplace(trie, most, most == 1 ? std::array<bool, 256>{} : needed(a_));
    places_ = static_cast<std::size_t>(spelling_->places());
    auto const nodes = at(a_.nodes());
    counts_.assign(nodes * places_ * places_, never);
    auto const counts = std::ranges::any_of(a_.loops, &Automaton::Loop::counts_characters);
    characters_.assign(counts ? counts_.size() : 0, never);
    std::vector<std::int32_t> begins(nodes + 1), users;
    for (auto const counting : {true, false}) {
      auto const use = [&](std::int32_t user, std::int32_t used) {
        if (used < 0) return;
        if (counting) ++begins[at(used)];
        else users[at(--begins[at(used)])] = user;
      };
      for (std::int32_t p = 0; p < a_.nodes(); ++p) {
        auto const& place = a_.places[at(p)];
        if (place.kind == Place::split)
          for (auto const to : a_.targets_of(place)) use(p, to);
        if (place.kind == Place::state)
          for (auto const& edge : a_.edges_of(place)) use(p, edge.to);
        if (place.kind == Place::call) use(p, a_.start[at(place.first)]);
        if (place.kind == Place::loop) use(p, a_.loops[at(place.first)].body), use(p, a_.loops[at(place.first)].to);
        else if (place.kind != Place::again) use(p, place.to);
      }
      if (!counting) break;
      std::int32_t sum = 0;
      for (auto& begin : begins) sum += begin, begin = sum;
      users.resize(at(sum));
    }
    std::deque<std::int32_t> open;
    std::vector<std::uint8_t> waits(nodes);
    auto const run = [&](bool counted) {
      for (std::int32_t p = 0; p < a_.nodes(); ++p)  // mostly, a place leads to those made before it
        if (in_counted(p) == counted) waits[at(p)] = 1, open.push_back(p);
      while (!open.empty()) {
        auto const p = open.front();
        open.pop_front(), waits[at(p)] = 0;
        if (!(counted ? relax_counted(p) : relax(p))) continue;
        for (auto i = begins[at(p)]; i < begins[at(p) + 1]; ++i)
          if (auto const user = users[at(i)]; waits[at(user)] == 0 && in_counted(user) == counted)
            waits[at(user)] = 1, open.push_back(user);
      }
    };
    if (counts) run(true);
    run(false);
  }
  /// Whether it is within a text of which the characters are counted.
  SLUICE_LAZY bool in_counted(std::int32_t p) const {
    auto const& place = a_.places[at(p)];
    return place.within >= 0 && place.kind != Place::loop && a_.loops[at(place.within)].counts_characters();
  }

  SLUICE_LAZY bool relax(std::int32_t p) {
    auto const& place = a_.places[at(p)];
    auto changed = false;
    auto* const own = counts_.data() + at(p) * places_ * places_;
    auto const lower = [&](Count& count, Count to) {
      if (to < count) count = (std::min)(to, never), changed = changed || to < never;
    };
    auto const like = [&](std::int32_t other) {
      if (other >= 0)
        for (std::size_t i = 0; i < places_ * places_; ++i) lower(own[i], counts_[at(other) * places_ * places_ + i]);
    };
    auto const read = [&](std::uint8_t first, std::uint8_t last, std::int32_t next) {
      auto const& steps = this->steps(first, last);
      for (std::size_t q = 0; q < places_; ++q)
        for (auto const [to, cost] : steps[q])
          for (std::size_t r = 0; r < places_; ++r) lower(own[q * places_ + r], cost + get(next, at(to), r));
    };
    switch (place.kind) {
      case Place::split:
        for (auto const to : a_.targets_of(place)) like(to);
        break;
      case Place::byte: read(place.low, place.high, place.to); break;
      case Place::state:
        for (auto const& edge : a_.edges_of(place)) read(edge.first, edge.last, edge.to);
        like(place.to);
        break;
      case Place::call:
        for (std::size_t q = 0; q < places_; ++q)
          for (std::size_t m = 0; m < places_; ++m)
            if (auto const text = get(a_.start[at(place.first)], q, m); text < never)
              for (std::size_t r = 0; r < places_; ++r) lower(own[q * places_ + r], text + get(place.to, m, r));
        if (a_.nullable[at(place.first)] != 0) like(place.to);
        break;
      case Place::end:
      case Place::again:
        for (std::size_t q = 0; q < places_; ++q) lower(own[q * places_ + q], 0);
        break;
      case Place::loop: {
        auto const& loop = a_.loops[at(place.first)];
        auto const all = loop.counts_characters() ? product(matrix(loop.body), matrix(loop.to)) : after(loop, 0);
        for (std::size_t i = 0; i < places_ * places_; ++i) lower(own[i], all[i]);
        break;
      }
    }
    return changed;
  }
  /// Within a text of which the characters are counted, to its end: along a text of the fewest characters, so that it
  /// can be read whatever the number before it.
  SLUICE_LAZY bool relax_counted(std::int32_t p) {
    auto const& place = a_.places[at(p)];
    auto const base = at(p) * places_ * places_;
    auto changed = false;
    auto const lower = [&](std::size_t i, Count characters, Count count) {
      if (count >= never || std::pair(characters, count) >= std::pair(characters_[base + i], counts_[base + i])) return;
      characters_[base + i] = characters, counts_[base + i] = count, changed = true;
    };
    if (place.kind == Place::again) {
      for (std::size_t q = 0; q < places_; ++q) lower(q * places_ + q, 0, 0);
      return changed;
    }
    for (auto const& edge : a_.edges_of(place)) {
      auto const& steps = this->steps(edge.first, edge.last);
      auto const one = a_.places[at(edge.to)].low;
      for (std::size_t q = 0; q < places_; ++q)
        for (auto const [to, cost] : steps[q])
          for (std::size_t r = 0; r < places_; ++r) {
            auto const i = (at(edge.to) * places_ + at(to)) * places_ + r;
            lower(q * places_ + r, characters_[i] + one, cost + counts_[i]);
          }
    }
    if (place.to >= 0)
      for (std::size_t i = 0; i < places_ * places_; ++i)
        lower(i, characters_[at(place.to) * places_ * places_ + i], counts_[at(place.to) * places_ * places_ + i]);
    return changed;
  }
  SLUICE_LAZY std::vector<std::vector<Spelling::Step>> const& steps(std::uint8_t first, std::uint8_t last) {
    auto const [it, fresh] = steps_.try_emplace({first, last});
    if (fresh)
      for (std::int32_t q = 0; q < spelling_->places(); ++q) it->second.push_back(spelling_->steps(q, first, last));
    return it->second;
  }

  Automaton const& a_;
  std::optional<Spelling> spelling_;
  std::size_t places_ = 1;
  Count most_ = never;
  bool covers_ = false;
  Counts counts_;      // [place][from][to]
  Counts characters_;  // the same, of a text that is counted
  std::map<std::pair<std::uint8_t, std::uint8_t>, std::vector<std::vector<Spelling::Step>>> steps_;
};

/// The same for whole states of a pushdown machine. Thread-safe: what several threads find out at once is the same.
class Completion {
 public:
  using Count = FewestTokens::Count;
  using State = Pushdown::State;
  static constexpr Count never = FewestTokens::never;

  SLUICE_LAZY Completion(FewestTokens const& fewest, TokenNodes trie, Pushdown& machine)
      : fewest_(fewest), trie_(std::move(trie)), machine_(machine) {}

  /// The number of the spelling's tokens in which it can be completed (without eos); 0: it is complete.
  SLUICE_LAZY Count count(State state) {
    if (auto const known = counts_.get(at(state)); known > 0) return known - 1;
    auto const found = counted(state);
    counts_.set(at(state), found + 1);
    return found;
  }
  /// The number of tokens, out of the whole vocabulary, in which it can be completed. If it is n for a state, it is n -
  /// 1 after some token: an output that continues only while enough tokens are left will be completed. Exact if the
  /// spelling has all tokens. Otherwise all tokens are tried along the spelling's own shortest text (if that is at most
  /// some thousand tokens long), and a shorter completion along another text may be missed.
  SLUICE_LAZY Count fewest(State state) {
    auto const most = count(state);
    if (most == 0 || most >= never || fewest_.spelling().all() || most / (std::max)(trie_.depth(), 1) > 4096)
      return most;
    return along(state);
  }
  /// The count for the rest of a stack, starting at a token boundary.
  SLUICE_LAZY Count rest(std::int32_t stack) {
    find_rests(stack);
    return rest(stack, 0);
  }

  /// Of what was computed.
  SLUICE_LAZY std::size_t bytes() const {
    return counts_.bytes() + rests_.bytes() + along_.bytes() + follow_.bytes() + nodes_.bytes() +
           matrices_.load(std::memory_order_relaxed) *
               (sizeof(FewestTokens::Counts) + fewest_.places() * fewest_.places() * sizeof(Count));
  }

  /// Whether a state can be completed in at most this many tokens.
  SLUICE_LAZY bool fits(State state, Count tokens) {
    if (state == Pushdown::dead || tokens < 0) return false;
    return count(state) <= tokens || fewest(state) <= tokens;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static constexpr Count unknown = -1;

  SLUICE_LAZY Count counted(State state) {
    if (state == Pushdown::dead) return never;
    if (machine_.complete(state) || machine_.left(state)) return 0;
    auto best = from(state, 0);
    if (!machine_.spaced(state)) return best;
    best = never;
    auto const& a = machine_.automaton();
    for (auto const first : a.first_of) {  // byte by byte, since a space leads elsewhere than at the nodes
      auto const next = machine_.next(state, first);
      if (next == Pushdown::dead) continue;
      auto last = first;
      while (last < 255 && a.class_of[last + std::size_t{1}] == a.class_of[first]) ++last;
      for (auto const [to, cost] : fewest_.spelling().steps(0, first, last))
        best = (std::min)(best, cost + from(next, at(to)));
    }
    return best;
  }
  /// The count from inside a token.
  SLUICE_LAZY Count from(State state, std::size_t place) {
    Count best = place == 0 && (machine_.complete(state) || machine_.left(state)) ? 0 : never;
    for (auto const [node, stack] : machine_.ways(state)) {
      find_rests(stack);
      auto const& own = node_counts(node);
      for (std::size_t q = 0; q < fewest_.places(); ++q)
        best = (std::min)(best, own[place * fewest_.places() + q] + rest(stack, q));
    }
    return (std::min)(best, never);
  }
  SLUICE_LAZY FewestTokens::Counts const& node_counts(std::int32_t node) {
    if (auto const* const known = nodes_.get(at(node)); known != nullptr) return *known;
    auto const places = machine_.with_nodes([&](Nodes const& nodes) { return nodes.places(node); });
    auto made = FewestTokens::Counts(fewest_.places() * fewest_.places(), never);
    for (auto const [place, repetitions] : places) {
      auto const one = fewest_.of(place, repetitions);
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = (std::min)(made[i], one[i]);
    }
    auto const lock = std::scoped_lock(mutex_);
    auto const* const kept = &all_.emplace_back(std::move(made));
    matrices_.store(all_.size(), std::memory_order_relaxed);
    nodes_.set(at(node), kept);
    return *kept;
  }

  Count rest(std::int32_t stack, std::size_t place) const {
    return rests_.get(at(stack) * fewest_.places() + place) - 1;
  }
  /// Finds the counts of a stack and all before it: the entries below a stack were added before it.
  SLUICE_LAZY void find_rests(std::int32_t stack) {
    auto const places = fewest_.places();
    auto known = found_.load(std::memory_order_acquire);
    if (stack < known) return;
    for (auto id = known; id <= stack; ++id) {
      std::vector<Count> own(places, never);
      for (auto const [node, below] : machine_.stack(id)) {
        if (node < 0) {
          own[0] = 0;
          continue;
        }
        auto const& counts = node_counts(node);
        for (std::size_t q = 0; q < places; ++q)
          for (std::size_t r = 0; r < places; ++r) own[q] = (std::min)(own[q], counts[q * places + r] + rest(below, r));
      }
      for (std::size_t q = 0; q < places; ++q) rests_.set(at(id) * places + q, own[q] + 1);
    }
    while (known <= stack && !found_.compare_exchange_weak(known, stack + 1, std::memory_order_acq_rel)) {
    }
  }

  struct Next {
    State state = -1;       // -1: unknown
    std::int32_t node = 0;  // the token's node in the trie
  };

  /// The first of the spelling's tokens of a shortest completion: the same for each state, regardless of the tokens
  /// before it.
  SLUICE_LAZY Next follow(State state) {
    if (auto const known = follow_.get(at(state)); known != 0)
      return {static_cast<State>(known >> 32) - 1, static_cast<std::int32_t>(known & 0xFFFFFFFFu)};
    auto const wanted = count(state) - 1;
    std::vector<State> path{state};
    Next found;
    for (std::int32_t node = 1; node < trie_.size() && found.state < 0;) {
      auto const depth = at(trie_.depth(node));
      auto const next = machine_.next(path[depth - 1], trie_.byte(node));
      if (next == Pushdown::dead || !(fewest_.spelling().chosen(node) || fewest_.spelling().open(node))) {
        node = trie_.end(node);
        continue;
      }
      if (fewest_.spelling().chosen(node) && count(next) <= wanted) found = {next, node};
      path.resize(depth), path.push_back(next);
      node = fewest_.spelling().open(node) ? node + 1 : trie_.end(node);
    }
    follow_.set(at(state), static_cast<std::uint64_t>(found.state + 1) << 32 | static_cast<std::uint32_t>(found.node));
    return found;
  }

  /// The minimum number of tokens that spell the text along follow(), ending where its tokens end.
  SLUICE_LAZY Count along(State state) {
    std::vector<State> path;
    for (auto s = state; known(s) == unknown; s = follow(s).state) path.push_back(s);
    for (auto i = path.size(); i-- > 0;) {
      Count best = never;
      std::int32_t node = 0;
      for (auto s = path[i]; node >= 0 && count(s) > 0;) {
        auto const next = follow(s);
        std::int32_t part = next.node;
        std::vector<std::uint8_t> bytes;
        spell(part, bytes);
        for (auto const byte : bytes)
          if (node >= 0) node = trie_.child(node, byte);
        s = next.state;
        if (node >= 0 && !trie_.tokens(node).empty()) best = (std::min)(best, known(s) + 1);
      }
      along_.set(at(path[i]), best + 1);
    }
    return known(state);
  }
  SLUICE_LAZY Count known(State state) {
    if (count(state) == 0) return 0;
    return along_.get(at(state)) - 1;
  }
  SLUICE_LAZY void spell(std::int32_t node, std::vector<std::uint8_t>& bytes) const {
    for (std::int32_t above = 0; above != node;) {
      auto child = above + 1;
      while (trie_.end(child) <= node) child = trie_.end(child);
      bytes.push_back(trie_.byte(child)), above = child;
    }
  }

  FewestTokens const& fewest_;
  TokenNodes trie_;
  Pushdown& machine_;
  SharedTable<Count> counts_;            // [state]: + 1, as the others; 0: unknown
  SharedTable<Count> rests_;             // [stack][place]
  std::atomic<std::int32_t> found_ = 0;  // stacks before this one have their counts
  SharedTable<FewestTokens::Counts const*> nodes_;
  SharedTable<std::uint64_t> follow_;  // [state]: the state and the node
  SharedTable<Count> along_;           // [state]
  std::atomic<std::size_t> matrices_ = 0;
  std::mutex mutex_;                      // guards what is below
  std::deque<FewestTokens::Counts> all_;  // those of nodes
};

}  // namespace sluice::inline v0::detail
