// SPDX-License-Identifier: Apache-2.0
/// \file
/// The beginning of a sentence: from a request to what its search is told.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/running.hpp>

#include <span>

namespace sluice::inline v0::detail {

/// Begins the search of a sentence that has its slots. Returns what the search was told.
/// \throws std::invalid_argument  for a request that this search or model refuses
SLUICE_LAZY Sentence begin_search(LoopState const& state, Running& s) {
  auto& request = *s.request;
  auto const& vocabulary = state.model.vocabulary;
  auto const fed = state.searches.takes_prefix ? std::span<Token const>() : std::span<Token const>(request.prefix);
  if (request.prompt.empty()) request.prompt.assign(1, vocabulary.bos);
  for (auto const token : fed)
    require(!vocabulary.ends(token), "prefix", token, "is an end of sentence: nothing could follow");
  s.prefill.reset(request.prompt, fed, state.model.abilities);
  s.confidence.begin(request.confidence, vocabulary, s.base, s.slot_count, request.prompt.size());
  if (state.model.attaches) s.attachments.begin(s.base, s.slot_count, request.prompt.size());
  if (state.model.grows) {
    request.source_length = state.model.source_length(request.source());
    s.growth = state.model.growth(request.source());
  }
  require(s.growth.over || state.searches.waits, "source", "not over",
          "this search needs the whole source: close it before it is submitted");
  Sentence const sentence{.vocabulary = &vocabulary,
                          .prompt = request.prompt,
                          .prefix = request.prefix,
                          .last = s.prefill.last(),
                          .held = s.prefill.held(),
                          .prefix_log_prob = &s.prefill.log_prob(),
                          .source_length = request.source_length,
                          .growth = s.growth.over ? nullptr : &s.growth,
                          .seed = request.seed.value_or(s.id),
                          .abilities = state.model.abilities,
                          .limits = state.model.limits,
                          .traced = request.traced,
                          .confident = request.confidence.asks(),
                          .whole_lines = state.model.processes_lines};
  s.search->begin(sentence);
  if (request.shortlist) {  // which stays as it is: the sentence may begin again
    auto& shortlist = s.shortlist = *request.shortlist;
    shortlist.insert(vocabulary.eos), shortlist.insert(request.prefix);
    auto const given = shortlist;
    if (!s.search->insert_into(shortlist)) return sentence;
    for (auto const token : vocabulary.never)  // e.g. a bos that a phrase begins with
      if (!given.contains(token)) shortlist.erase(token);
  }
  return sentence;
}

}  // namespace sluice::inline v0::detail
