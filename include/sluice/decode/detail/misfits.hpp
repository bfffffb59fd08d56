// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compile errors for arguments that do not fit a decoder's model or search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace sluice::inline v0::detail {

/// The default expander always passes, so that a static_assert can say what is missing.
template <class E, class AnswerType>
concept ExpanderOrDefault = Expander<E, AnswerType> || std::same_as<E, LogSoftmaxTopK>;

template <class AnswerType>
inline constexpr bool is_hidden = false;
template <class T>
inline constexpr bool is_hidden<Hidden<T>> = true;

/// Converts from everything, so that `{.source = ...}` of a wrong type finds an overload with a clear error.
struct Anything {
  Anything() = default;
  template <class T>
  Anything(T const&) {}  // NOLINT(google-explicit-constructor)
};
using AnyFields = Request<Anything, Anything>;

/// Whether X is a request for another model, or for another search, than Own.
template <class X, class Own>
inline constexpr bool is_other_source = false;
template <class Source, class S, class OwnSource, class Own>
inline constexpr bool is_other_source<Request<Source, S>, Request<OwnSource, Own>> = !std::same_as<Source, OwnSource>;
template <class X, class Own>
inline constexpr bool is_other_search = false;
template <class Source, class S, class OwnSource, class Own>
inline constexpr bool is_other_search<Request<Source, S>, Request<OwnSource, Own>> =
    std::same_as<Source, OwnSource> && !std::same_as<S, Own>;

/// Whether X is one of these. If so, this is a compile error.
template <class X, class Own>
consteval bool refuse_other() {
  static_assert(!is_other_source<X, Own>,
                "sluice: a request of another Source than the model's: make it a sluice::Request<M::Source, Search>");
  static_assert(!is_other_search<X, Own>,
                "sluice: a request of another search than the decoder's: make it a sluice::Request<M::Source, Search> "
                "of the search that was given to the decoder (options of its own go into Request::search)");
  return is_other_source<X, Own> || is_other_search<X, Own>;
}

/// The compile error for an argument that is no Own.
template <class X, class Own>
consteval bool refuse_request() {
  static_assert(refuse_other<X, Own>(),
                "sluice: submit() takes a sluice::Request<M::Source, Search> of the decoder's own model and search: "
                "write submit({.source = ...}), with a Source of the model (M::Source)");
  return true;
}

/// Whether the elements of a range are requests, or sources of requests.
template <class Reference, class Own>
concept InputOf = std::same_as<std::remove_cvref_t<Reference>, Own> || requires(Reference&& input) {
  Own{.source = std::forward<Reference>(input)};
};

template <class Reference, class Own>
consteval bool accept_input() {
  static_assert(
      refuse_other<std::remove_cvref_t<Reference>, Own>() || InputOf<Reference, Own>,
      "sluice: an input must be a Source of the model (M::Source), or a sluice::Request<M::Source, Search>; tokens "
      "to go on from are no source: they go into Request::prompt");
  return true;
}

}  // namespace sluice::inline v0::detail
