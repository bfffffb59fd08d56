// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a search found something else because the library's automaton and the original's differ, by what both say
/// of every output that the search looks at.
#pragma once

#include <sluice/core/search.hpp>

#include <support/naive_constraints.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <oracle_check/common.hpp>
#include <oracle_check/constrained.hpp>
#include <string>
#include <utility>
#include <vector>

namespace oracle_check {

/// What two automata say of an output: the tokens that they count as met, and those that they want, sorted.
struct Look {
  std::vector<Token> output;
  std::int32_t own, theirs;
  std::vector<Token> own_wants, they_want;

  bool differ() const { return own != theirs || own_wants != they_want; }
};

/// Follows `Own` and `Theirs` through the same output. The search is told what one of them says; the walk holds what
/// both say, in the order in which the search asked.
template <class Own, class Theirs, bool theirs_decide>
class Following {
 public:
  struct State {
    typename Own::State own;
    typename Theirs::State theirs;
    std::vector<Token> output;
  };

  Following() : Following(std::vector<Phrase>{}) {}
  explicit Following(std::vector<Phrase> const& phrases) : own_(phrases), theirs_(phrases) {}

  State initial(sluice::Sentence const& sentence) const {
    return noted({own_.initial(sentence), theirs_.initial(sentence), {}});
  }
  State next(State const& state, Token token) const {
    auto output = state.output;
    output.push_back(token);
    return noted({own_.next(state.own, token), theirs_.next(state.theirs, token), std::move(output)});
  }
  std::int32_t progress(State const& s) const {
    return theirs_decide ? theirs_.progress(s.theirs) : own_.progress(s.own);
  }
  std::int32_t total() const { return theirs_decide ? theirs_.total() : own_.total(); }
  bool complete(State const& s) const { return theirs_decide ? theirs_.complete(s.theirs) : own_.complete(s.own); }
  bool dead(State const&) const { return false; }
  void wanted(State const& s, std::vector<Token>& tokens) const {
    if constexpr (theirs_decide) theirs_.wanted(s.theirs, tokens);
    else own_.wanted(s.own, tokens);
  }
  std::vector<Look> const& walk() const { return *walk_; }

 private:
  template <class A>
  static std::vector<Token> wants(A const& automaton, typename A::State const& state) {
    std::vector<Token> tokens;
    automaton.wanted(state, tokens);
    std::ranges::sort(tokens);
    return tokens;
  }
  State noted(State s) const {
    walk_->push_back(
        {s.output, own_.progress(s.own), theirs_.progress(s.theirs), wants(own_, s.own), wants(theirs_, s.theirs)});
    return s;
  }

  Own own_;
  Theirs theirs_;
  std::shared_ptr<std::vector<Look>> walk_ = std::make_shared<std::vector<Look>>();
};

/// The look at which two searches part that are the same but for their automata: up to there they asked about the same
/// outputs, so the automata differ on one of that step or of the step before. None: nothing parts them.
inline Look const* parting(std::vector<Look> const& a, std::vector<Look> const& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at].output == b[at].output) ++at;
  if (at == a.size() && at == b.size()) return nullptr;
  auto const length = [at](auto const& walk) { return at < walk.size() ? walk[at].output.size() : 0; };
  auto const step = std::max(length(a), length(b));  // of one that has ended: 0
  for (std::size_t i = 0; i < at; ++i)
    if (a[i].differ() && a[i].output.size() + 1 >= step) return &a[i];
  return nullptr;
}

/// How far an output is, found by searching it for the phrases.
using Truth = sluice::test::Standing (*)(std::vector<Phrase> const&, std::vector<Token>);

inline sluice::test::Standing in_any_order(std::vector<Phrase> const& phrases, std::vector<Token> output) {
  output.insert(output.begin(), sluice::test::bos);
  return sluice::test::naive_any(sluice::test::one_each(phrases), output);
}
inline sluice::test::Standing in_order(std::vector<Phrase> const& phrases, std::vector<Token> output) {
  output.insert(output.begin(), sluice::test::bos);
  return sluice::test::naive_ordered(phrases, output);
}

/// Whether the library's automaton is right about an output: it counts what stands there, and wants what would stand
/// there for one token more.
inline bool own_is_right(Look const& look, std::vector<Phrase> const& phrases, Token vocabulary, Truth truth) {
  auto const here = truth(phrases, look.output).progress();
  auto further = look.output;
  further.push_back(0);
  for (Token token = sluice::test::eos; token < vocabulary; ++token) {
    further.back() = token;
    if ((truth(phrases, further).progress() > here) != std::ranges::binary_search(look.own_wants, token)) return false;
  }
  return look.own == here;
}

inline std::string text(Look const& look) {
  auto const& o = look.output;
  auto const last = text(o.size() > 6 ? std::vector(o.end() - 5, o.end()) : o);
  if (look.own != look.theirs)
    return "credit: of what ends in " + last + " it counts " + std::to_string(look.theirs) + ", not " +
           std::to_string(look.own);
  return "candidates: after what ends in " + last + " it wants " + text(look.they_want) + ", not " +
         text(look.own_wants);
}

/// Why sentence `i` of a case may have another result under `Own` than the reference has; "" if it may not. Under
/// `Theirs` the search must agree with the reference, and the first output at which the two searches part must be one
/// of which the library's automaton is right and the original's is not.
/// \param searching  (automaton) -> the search under it
/// \param agrees     (result) -> whether it is the reference's
template <class Own, class Theirs, class F, class Agrees>
std::string automata_part(Json const& one, std::size_t i, Truth truth, F const& searching, Agrees const& agrees) {
  auto const source = one.at("seeds").at(i).get<std::uint64_t>();
  Following<Own, Theirs, false> const ours(phrases(one, i));
  Following<Own, Theirs, true> const original(phrases(one, i));
  auto checked = model(one.at("model"));
  sluice::decode(checked, std::vector{source}, searching(ours));
  if (!agrees(sluice::decode(checked, std::vector{source}, searching(original)).at(0))) return {};
  auto const* const look = parting(ours.walk(), original.walk());
  auto const right =
      look != nullptr && own_is_right(*look, phrases(one, i), one.at("model").at("V").get<Token>(), truth);
  return right ? text(*look) : "";
}

}  // namespace oracle_check
