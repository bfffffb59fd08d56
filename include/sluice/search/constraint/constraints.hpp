// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that must or must not occur in one output.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/phrase.hpp>
#include <sluice/search/constraint/any_of.hpp>
#include <sluice/search/constraint/ordered_phrases.hpp>
#include <sluice/search/constraint/phrases.hpp>
#include <sluice/search/constraint/product.hpp>
#include <sluice/search/rule/forbidden.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The phrases that one output must and must not contain.
struct PhraseLists {
  std::vector<Phrase> all{};               ///< all of these, in any order; one listed twice must occur twice (Phrases)
  std::vector<Phrase> ordered{};           ///< all of these, in this order, with anything between (OrderedPhrases)
  std::vector<std::vector<Phrase>> any{};  ///< one phrase of each of these lists (AnyOf)
  std::vector<Phrase> none{};              ///< none of these (Forbidden)
};

/// The product of Phrases, AnyOf, OrderedPhrases and Forbidden. One occurrence in the output may serve `all`, `any` and
/// `ordered` at the same time. Copies share the tables built from the lists.
class Constraints : public Product<Phrases, AnyOf, OrderedPhrases, Forbidden> {
  using Base = Product<Phrases, AnyOf, OrderedPhrases, Forbidden>;

 public:
  Constraints() = default;
  template <class = void>
  explicit Constraints(PhraseLists lists)
      : Base(Phrases(lists.all, "all"), AnyOf(lists.any, "any"), OrderedPhrases(lists.ordered, "ordered"),
             Forbidden(lists.none, "none")),
        lists_(std::make_shared<PhraseLists const>(std::move(lists))) {}

  /// \throws std::invalid_argument  what the parts throw, and a phrase that is both required and forbidden
  template <class = void>
  State initial(Sentence const& sentence) const {
    auto state = Base::initial(sentence);
    if (lists_ == nullptr) return state;
    check(lists_->all, "all"), check(lists_->ordered, "ordered");
    for (std::size_t i = 0; i < lists_->any.size(); ++i)
      if (std::ranges::all_of(lists_->any[i], [this](Phrase const& phrase) { return forbids(phrase) != nullptr; }))
        check(lists_->any[i], "any[" + std::to_string(i) + "]");
    return state;
  }

  PhraseLists const& lists() const {
    static PhraseLists const none;
    return lists_ == nullptr ? none : *lists_;
  }

 private:
  Phrase const* forbids(Phrase const& phrase) const {
    for (auto const& bad : lists_->none)
      if (detail::contains(phrase, bad)) return &bad;
    return nullptr;
  }
  template <class = void>
  void check(std::span<Phrase const> phrases, std::string const& name) const {
    for (std::size_t i = 0; i < phrases.size(); ++i)
      if (auto const* const bad = forbids(phrases[i]))
        require(false, name + "[" + std::to_string(i) + "]", detail::text(phrases[i]),
                "is demanded, and forbidden by none: " + detail::text(*bad));
  }

  std::shared_ptr<PhraseLists const> lists_;
};

}  // namespace sluice::inline v0
