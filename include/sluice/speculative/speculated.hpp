// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model with a list of proposers, which guess tokens for the searches that verify guesses; and what a proposer is.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/slot_tokens.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

SLUICE_NAMES(bind)
SLUICE_NAMES(start)
SLUICE_NAMES(observe)

namespace sluice::inline v0 {

/// The text of every slot of a model: its source, if that is a list of tokens, and the tokens that it holds, prompt included. For
/// proposers (see Proposer).
class SlotTexts {
 public:
  /// The source of what is in the slot; empty if sources are not lists of tokens.
  SLUICE_LAZY std::span<Token const> source(Slot slot) const {
    auto const i = static_cast<std::size_t>(slot);
    return i < sources_.size() ? std::span<Token const>(sources_[i]) : std::span<Token const>();
  }
  /// Appends what a draft is to continue: the tokens of its slot that stay, and those chosen since.
  SLUICE_LAZY void append(Draft const& draft, std::vector<Token>& text) const {
    auto const held = held_[draft.slot].first(static_cast<std::size_t>(draft.length));
    text.insert(text.end(), held.begin(), held.end());
    text.insert(text.end(), draft.pending.begin(), draft.pending.end());
  }

 private:
  template <Model M, class... P>
  friend class Speculated;

  SLUICE_LAZY void start(Slot slot, std::span<Token const> source) {
    held_.clear(slot);
    at(slot).assign(source.begin(), source.end());
  }
  SLUICE_LAZY void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) held_.clear(slot);
  }
  SLUICE_LAZY void apply(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        at((std::max)(row.from, row.to));  // grow first, so that references stay valid
        auto const& from = at(row.from);
        at(row.to).assign(from.begin(), from.end());
      }
    held_.apply(rows);
  }
  SLUICE_LAZY std::vector<Token>& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= sources_.size()) sources_.resize(i + 1);
    return sources_[i];
  }

  detail::SlotTokens held_;
  std::vector<std::vector<Token>> sources_;  // [slot]
};

namespace detail {

/// Stands for the proposers behind one, where a concept needs a type.
struct SomeOthers {
  bool any() const { return false; }
  void operator()(std::span<Draft const>) const {}
};

// clang-format off
template <class P>
concept GuessesFromTexts = requires(P& p, std::span<Draft const> drafts, SlotTexts const& texts) { p.propose(drafts, texts); };
template <class P>
concept GuessesWithOthers = requires(P& p, std::span<Draft const> drafts, SlotTexts const& texts, SomeOthers others) {
  p.propose(drafts, texts, others);
};
template <class P>
concept RemembersTexts = requires(P& p, Decoded const& decoded, SlotTexts const& texts) { p.remember(decoded, texts); };
template <class P>
concept ReadsTexts = GuessesFromTexts<P> || GuessesWithOthers<P> || RemembersTexts<P>;
template <class P>
concept BindsVocabulary = requires(P& p, Vocabulary const& vocabulary) { p.bind(vocabulary); };
template <class P>
concept ReadsSources = requires { typename P::Source; };
template <class P>
concept StartsSlots = requires(P& p, std::span<Slot const> slot_numbers) { p.start(slot_numbers); };
template <class P>
concept ReleasesSlots = requires(P& p, std::span<Slot const> slot_numbers) { p.release(slot_numbers); };
template <class P, class A>
concept Observes = requires(P& p, std::span<Row const> rows, A const& answer) { p.observe(rows, answer); };
template <class P>
concept LimitsRows = requires(P const& p) { { p.limits() } -> std::convertible_to<Limits>; };
template <class P>
concept EncodesSources = ReadsSources<P> && !std::is_void_v<typename P::Encoded>;
// clang-format on

/// What a proposer has encoded; nothing for one without sources.
template <class P>
struct EncodedByProposer {
  struct Nothing {};
  using Type = Nothing;
};
template <EncodesSources P>
struct EncodedByProposer<P> {
  using Type = typename P::Encoded;
};

/// What a model and its proposers have encoded: void unless all do that need sources.
template <class M, class... P>
struct EncodedWithProposers {
  using Encoded = void;
};
template <EncodingModel M, class... P>
  requires((!ReadsSources<P> || EncodesSources<P>)&&...)
struct EncodedWithProposers<M, P...> {
  struct Encoded {
    typename M::Encoded model;
    std::vector<std::vector<Token>> sources;  // for SlotTexts
    std::tuple<typename EncodedByProposer<P>::Type...> proposers;
  };
};

}  // namespace detail

/// What guesses tokens for a model, in a Speculated: a class with one of
///
///  - `propose(drafts)`;
///  - `propose(drafts, texts)`: it also reads the text of any slot, see SlotTexts;
///  - `propose(drafts, texts, others)`: it also decides when those behind it in the list are asked: `others(some_drafts)` asks
///    them, the model's own `propose` last, and `others.any()` says whether there are any.
///
/// `propose` is called at most once a step, for all sentences that want guesses and have none of a proposer before it; see Draft for
/// what it reads and fills in. A sentence for which it pushes no token goes on to the next proposer. It should allocate nothing once
/// it is warm. Nothing that it does changes an output whose rule is exact: it only decides how many steps that takes.
///
/// Optional members, all called by the thread that steps:
///
///  - `bind(vocabulary)`: when the Speculated is made. Throws std::invalid_argument for a model that does not fit;
///  - `start(slots)`, `release(slots)`: the slots begin, or are free again. Only slots that begin a sentence are started; release
///    also names others, and must not throw;
///  - `observe(rows, answer)`: after each step, what the model was given and answered, as the model itself returned it;
///  - `remember(decoded, texts)`: a sentence has ended, see RememberingModel;
///  - `limits()`: keeps the model to these, too.
///
/// One with a model of its own, DraftModel for example, has a type `Source` and `start(sources, slots)` as a Model has, in place of
/// `start(slots)`; and to encode ahead `Encoded` (void: it cannot), `encode(sources)`, `encodes()` and `start(encoded, items, slots)`.
// clang-format off
template <class P>
concept Proposer = std::move_constructible<P> &&
  (requires(P& p, std::span<Draft const> drafts) { p.propose(drafts); } ||
   requires(P& p, std::span<Draft const> drafts, SlotTexts const& texts) { p.propose(drafts, texts); } ||
   detail::GuessesWithOthers<P>);
// clang-format on

namespace detail {

/// Compile errors for members that have the name of an optional member and another signature: they would never be called.
template <class M, class P>
consteval bool check_proposer() {
  static_assert(Proposer<P>, "sluice: a proposer must have `propose(std::span<sluice::Draft const>)`, with a "
                             "`sluice::SlotTexts const&` behind it if it reads the text");
  static_assert(BindsVocabulary<P> || !names_bind<P>(),
                "sluice: a proposer's `bind` must take a sluice::Vocabulary const&");
  static_assert(ReleasesSlots<P> || !names_release<P>(),
                "sluice: a proposer's `release` must take a std::span<Slot const>");
  static_assert(Observes<P, Answer<M>> || !names_observe<P>(),
                "sluice: a proposer's `observe` must take a std::span<Row const> and what the model's step returns");
  static_assert(RemembersTexts<P> || !names_remember<P>(),
                "sluice: a proposer's `remember` must take a sluice::Decoded const& and a sluice::SlotTexts const&");
  static_assert(LimitsRows<P> || !names_limits<P>(),
                "sluice: a proposer's `limits` must be const, take nothing and return sluice::Limits");
  static_assert(StartsSlots<P> || ReadsSources<P> || !names_start<P>(),
                "sluice: a proposer's `start` must take a std::span<Slot const>, or it must have a type `Source`");
  if constexpr (ReadsSources<P>)
    static_assert(std::same_as<typename P::Source, typename M::Source>,
                  "sluice: model and draft read different sources");
  return true;
}

}  // namespace detail

/// A model with proposers, which guess tokens for the searches that verify guesses (Blockwise): `Speculated{model, PromptLookup(),
/// DraftModel(draft)}`. They are tried in order: the first that has a guess for a sentence makes it, and the model's own `propose`,
/// if it has one, comes last. DraftModel, DraftHeads, PromptLookup and SuffixDecoding are proposers; so is any class that meets
/// Proposer.
///
/// Refers to the model, which must outlive it; the proposers are moved into it. Has the model's abilities, and passes on all that it
/// has. Encodes ahead if the model and the models of all proposers do.
template <Model M, class... P>
class Speculated : public detail::Forwarding<M> {
  using Base = detail::Forwarding<M>;
  static_assert(sizeof...(P) > 0, "sluice: Speculated needs a proposer");
  static_assert((detail::check_proposer<M, P>() && ...));
  static constexpr bool reads_texts = (detail::ReadsTexts<P> || ...);
  static constexpr bool encodes_all =
      EncodingModel<M> && ((!detail::ReadsSources<P> || detail::EncodesSources<P>)&&...);

 public:
  using Source = typename M::Source;
  using Encoded = typename detail::EncodedWithProposers<M, P...>::Encoded;  ///< void unless all encode

  /// \throws std::invalid_argument  for a proposer that does not fit the model
  explicit Speculated(M& model, P... proposers) : Base(model), proposers_(std::move(proposers)...) {
    Vocabulary const vocabulary = model.vocabulary();
    each([&](auto& p) {
      if constexpr (requires { p.bind(vocabulary); }) p.bind(vocabulary);
    });
  }

  bool proposes() const { return true; }
  bool encodes() const {
    auto all = Base::encodes();
    each([&](auto const& p) {
      if constexpr (requires {
                      { p.encodes() } -> std::convertible_to<bool>;
                    })
        all = all && p.encodes();
    });
    return all;
  }
  Limits limits() const {
    auto const own = Base::limits();
    auto all = own;
    each([&](auto const& p) {
      if constexpr (requires { p.limits(); }) all = detail::common(all, p.limits());
    });
    all.log_prob = own.log_prob;  // a proposer's scores are no part of any output's
    return all;
  }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    if constexpr (reads_texts)
      for (std::size_t i = 0; i < slot_numbers.size(); ++i) texts_.start(slot_numbers[i], tokens_of(*sources[i]));
    this->model_.start(sources, slot_numbers);
    start_proposers(slot_numbers, [&](auto& p, auto) { p.start(sources, slot_numbers); });
  }
  auto encode(std::span<Source const* const> sources) const requires encodes_all {
    std::vector<std::vector<Token>> texts(reads_texts ? sources.size() : 0);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto const text = tokens_of(*sources[i]);
      texts[i].assign(text.begin(), text.end());
    }
    auto encoded = Base::encode(sources);
    return std::apply(
        [&](P const&... p) {
          return Encoded{std::move(encoded), std::move(texts), {encode_for(p, sources)...}};
        },
        proposers_);
  }
  template <class Batch>
  requires encodes_all void start(Batch& encoded, std::span<std::int32_t const> items,
                                  std::span<Slot const> slot_numbers) {
    if constexpr (reads_texts)
      for (std::size_t i = 0; i < slot_numbers.size(); ++i)
        texts_.start(slot_numbers[i], encoded.sources[static_cast<std::size_t>(items[i])]);
    this->model_.start(encoded.model, items, slot_numbers);
    start_proposers(slot_numbers, [&](auto& p, auto number) {
      p.start(std::get<decltype(number)::value>(encoded.proposers), items, slot_numbers);
    });
  }
  void release(std::span<Slot const> slot_numbers) {
    if constexpr (reads_texts) texts_.release(slot_numbers);
    detail::release(this->model_, slot_numbers);
    each([&](auto& p) {
      if constexpr (requires { p.release(slot_numbers); }) p.release(slot_numbers);
    });
  }

  decltype(auto) step(std::span<Row const> rows) {
    if constexpr (reads_texts) texts_.apply(rows);
    if constexpr ((detail::Observes<P, Answer<M>> || ...)) {
      auto answer = this->model_.step(rows);
      each([&](auto& p) {
        if constexpr (requires { p.observe(rows, std::as_const(answer)); }) p.observe(rows, std::as_const(answer));
      });
      return answer;
    } else return this->model_.step(rows);
  }

  void propose(std::span<Draft const> drafts) { ask<0>(drafts); }

  void remember(Decoded const& decoded) requires(RememberingModel<M> || (detail::RemembersTexts<P> || ...)) {
    each([&](auto& p) {
      if constexpr (requires { p.remember(decoded, std::as_const(texts_)); })
        p.remember(decoded, std::as_const(texts_));
    });
    if constexpr (RememberingModel<M>) this->model_.remember(decoded);
  }

 private:
  /// Those behind proposer I - 1.
  template <std::size_t I>
  struct Others {
    Speculated& whole;
    bool any() const {
      if constexpr (I < sizeof...(P)) return true;
      else return whole.model_proposes();
    }
    void operator()(std::span<Draft const> drafts) const { whole.template ask<I>(drafts); }
  };

  bool model_proposes() const {
    if constexpr (ProposingModel<M>) return sluice::proposes(std::as_const(this->model_));
    else return false;
  }

  /// Has proposer I guess, and those behind it for what is left.
  template <std::size_t I>
  void ask(std::span<Draft const> drafts) {
    if constexpr (I == sizeof...(P)) {
      if constexpr (ProposingModel<M>)
        if (!drafts.empty() && model_proposes()) this->model_.propose(drafts);
    } else {
      using Asked = std::tuple_element_t<I, std::tuple<P...>>;
      if (drafts.empty()) return;
      auto& p = std::get<I>(proposers_);
      if constexpr (detail::GuessesWithOthers<Asked>) p.propose(drafts, std::as_const(texts_), Others<I + 1>{*this});
      else {
        if constexpr (detail::GuessesFromTexts<Asked>) p.propose(drafts, std::as_const(texts_));
        else p.propose(drafts);
        auto& rest = rest_[I];
        rest.clear();
        for (auto const& draft : drafts)
          if (draft.tokens->empty()) rest.push_back(draft);
        ask<I + 1>(rest);
      }
    }
  }

  template <class F>
  void each(F&& f) {
    std::apply([&](P&... p) { (f(p), ...); }, proposers_);
  }
  template <class F>
  void each(F&& f) const {
    std::apply([&](P const&... p) { (f(p), ...); }, proposers_);
  }

  template <class F>
  void start_proposers(std::span<Slot const> slot_numbers, F&& start_with_source) {
    try {
      start_from<0>(slot_numbers, start_with_source);
    } catch (...) {
      release(slot_numbers);
      throw;
    }
  }
  template <std::size_t I, class F>
  void start_from(std::span<Slot const> slot_numbers, F& start_with_source) {
    if constexpr (I < sizeof...(P)) {
      using Started = std::tuple_element_t<I, std::tuple<P...>>;
      auto& p = std::get<I>(proposers_);
      if constexpr (detail::ReadsSources<Started>) start_with_source(p, std::integral_constant<std::size_t, I>());
      else if constexpr (detail::StartsSlots<Started>) p.start(slot_numbers);
      start_from<I + 1>(slot_numbers, start_with_source);
    }
  }
  template <class One>
  static auto encode_for(One const& p, std::span<Source const* const> sources) {
    if constexpr (detail::ReadsSources<One>) return p.encode(sources);
    else return typename detail::EncodedByProposer<One>::Type();
  }
  static std::span<Token const> tokens_of(Source const& source) {
    if constexpr (std::convertible_to<Source const&, std::span<Token const>>) return source;
    else return {};
  }

  std::tuple<P...> proposers_;
  SlotTexts texts_;
  std::array<std::vector<Draft>, sizeof...(P)> rest_;  // [proposer]: the drafts that it left
};

}  // namespace sluice::inline v0
