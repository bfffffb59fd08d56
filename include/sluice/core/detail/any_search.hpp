// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search and its state for one sentence, without their types.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

struct Interface {
  Interface() = default;
  Interface(Interface const&) = delete;
  Interface& operator=(Interface const&) = delete;
  virtual ~Interface() = default;
};

/// What a list of processors needs to know of the search that it is for.
struct SearchFacts {
  bool takes_processors = true;           ///< false: its tokens are no texts' (frames, alignments)
  bool takes_prefix = false;              ///< it feeds the forced prefix itself
  bool goes_back = false;                 ///< every planned row must be run
  bool drafts = false;                    ///< it verifies guesses
  bool chooses_probes = false;            ///< it may choose among its probes, so edits apply to them
  bool assumes_falling = false;           ///< it proves its result by log-probabilities that only fall
  bool bears_bonus = false;               ///< but from any start
  bool stops_by_proof = false;            ///< its options stop it by such a proof
  bool ends_unasked = false;              ///< it ends outputs of the maximum length in an eos that it does not ask for
  bool ends_outputs = false;              ///< it holds a processor that ends outputs
  std::int32_t most = Limits::unlimited;  ///< tokens that it generates, forced prefix and end included
  std::int32_t block = 0;                 ///< tokens of a block; 0: unknown
  std::int32_t stops_asked = 0;           ///< of so many candidates of a step it asks Expansion::stop; 0: of none
};

/// A search and its state for one sentence.
struct AnySearch : Interface {
  virtual void take(void const* own) = 0;  ///< takes a request's own search, or, of nullptr, the decoder's
  virtual SearchFacts facts(Sentence const& sentence) const = 0;
  virtual std::int32_t slot_count() const = 0;
  virtual void begin(Sentence const& sentence) = 0;
  virtual bool insert_into(TokenSet& set) const = 0;  ///< false: nothing that the vocabulary never generates
  virtual void plan(Plan& plan) = 0;
  virtual bool advance(Expansion const& answer) = 0;
  virtual Progress progress() const = 0;
  virtual bool draft(Draft& draft) = 0;
  virtual bool waits() const = 0;
  virtual void settled(std::vector<Token>& tokens) = 0;
  virtual void finish(Result& result) = 0;
};

}  // namespace sluice::inline v0::detail
