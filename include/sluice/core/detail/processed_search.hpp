// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search under a list of logits processors.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_processor.hpp>
#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/followed.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/detail/known_ends.hpp>
#include <sluice/core/detail/name_shared.hpp>
#include <sluice/core/detail/processed_line.hpp>
#include <sluice/core/detail/restricted_guesses.hpp>
#include <sluice/core/detail/shifted_lines.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Stands between the loop and a search: follows the rows of its plans, edits its queries, and completes the answers to them. See
/// LogitsProcessorList. One for each request.
SLUICE_LAZY class ProcessedSearch final : public AnyProcessed, private CandidateStops {
 public:
  void use(AnySearch& search, ProcessorPointers const& processors) override { search_ = &search, list_ = &processors; }
  void clear() override {
    for (auto& one : followed_) one.clear();
    branch_.clear(), guesses_.clear();
    for (auto& one : allowed_) one.reset();
    for (auto const& one : ending_) one.begun->clear(), one.scratch->clear();
    for (auto const& one : lines_) one->clear();
    list_ = nullptr, search_ = nullptr;
  }

  void take(void const* own) override { search_->take(own); }
  SearchFacts facts(Sentence const& sentence) const override {
    auto facts = search_->facts(sentence);
    facts.ends_outputs = facts.ends_outputs || any_of(*list_, &AnyProcessor::ends);
    return facts;
  }
  std::int32_t slot_count() const override { return search_->slot_count(); }
  bool insert_into(TokenSet& set) const override { return search_->insert_into(set); }

  void begin(Sentence const& sentence) override {
    search_->begin(sentence);
    facts_ = search_->facts(sentence);
    vocabulary_ = sentence.vocabulary, prefix_ = sentence.prefix.size();
    ends_ = any_of(*list_, &AnyProcessor::ends) && !facts_.takes_prefix;
    restricts_ = any_of(*list_, &AnyProcessor::restricts), processes_ = any_of(*list_, &AnyProcessor::processes);
    biasing_ = std::count_if(list_->begin(), list_->end(), [](auto const& one) { return one->biases; });
    // Where an output ends, what was added for its beginning is taken back: that takes a line of its own.
    at_once_ = ends_ && biasing_ == 0 && facts_.stops_asked > 0;
    check_bearable(sentence);
    most_ = facts_.takes_prefix ? static_cast<std::int32_t>(prefix_) : facts_.most;
    // The tokens in the first slot when the search first plans: all but the last of prompt and prefix.
    followed_.resize(static_cast<std::size_t>(slot_count()));
    auto& first = followed_[0];
    first.begin(*list_, sentence);
    for (std::size_t i = 1; i < followed_.size(); ++i) followed_[i].begin_like(first);
    branch_.begin_like(first);
    if (!facts_.takes_prefix)
      for (auto const token : sentence.prefix) first.push(token);
    if (biasing_ > 0) unasked_ = facts_.ends_unasked && !vocabulary_->eos.empty();
    if (ends_) begin_ends(sentence);
    if (restricts_) {
      guesses_.begin(*list_, facts_.most), planning_ = false;
      if (!facts_.takes_prefix)
        for (std::size_t i = 0; i < first.size(); ++i)
          first[i].require_possible(output(first.output()), guesses_.left(first.output().size()));
    }
    first.cut(sentence.held);
  }

  void plan(Plan& plan) override {
    if (restricts_ && facts_.drafts) guess();
    search_->plan(plan);
    auto const rows = plan.rows();
    auto const slot = [&](Slot number) -> Followed& {
      return followed_[static_cast<std::size_t>(number - plan.base())];
    };
    for (auto const& row : rows)
      if (row.from != row.to) slot(row.to).copy(slot(row.from)), slot(row.to).cut(row.length);
    auto queries = plan.queries();
    if (edits_.size() < queries.size()) edits_.resize(queries.size());
    if (biasing_ > 0 && boosts_.size() < queries.size()) boosts_.resize(queries.size());
    if (restricts_ && allowed_.size() < queries.size()) allowed_.resize(queries.size());
    std::size_t line = 0;
    known_.clear(), shifts_.clear(), processed_ = 0, line_slots_.clear();
    for (auto const& row : rows) {
      auto& kept_path = slot(row.to);
      kept_path.cut(row.length);
      auto const kept = row.kept();
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        if (i == kept) branch_.copy(kept_path);  // branches are not kept in the slot
        auto& followed = i < kept ? kept_path : branch_;
        if (i >= kept) followed.cut(row.length + row.depth(i));
        followed.push(row.tokens[i]);
        if (i + static_cast<std::size_t>(row.lines) < row.tokens.size()) continue;
        if (line == queries.size()) return;  // the decoding loop refuses such a plan
        process(followed, queries[line], line);
        if (at_once_) line_slots_.push_back(row.to - plan.base());
        ++line;
      }
    }
    if (ends_ && !facts_.goes_back) known_.take_back(plan);
  }

  bool advance(Expansion const& answer) override {
    for (std::size_t i = 0; i < processed_; ++i) lines_[i]->rethrow();
    auto known = answer;
    if (at_once_) {
      known.stops_ = this;
      return search_->advance(known);
    }
    if (ends_) known = known_.complete(known);
    if (biasing_ > 0) known = shifts_.shift(known);
    return search_->advance(known);
  }
  Progress progress() const override { return search_->progress(); }
  bool waits() const override { return search_->waits(); }
  void settled(std::vector<Token>& tokens) override {
    search_->settled(tokens);
    if (ends_ && !at_once_ && ends_in_eos(tokens) && stop_before_end(tokens) >= 0) tokens.pop_back();
  }
  void finish(Result& result) override {
    search_->finish(result);
    if (!ends_ || at_once_) return;
    for (auto& hypothesis : result.hypotheses) tell_stop(hypothesis);
  }
  bool draft(Draft& draft) override {
    auto const base = draft.slot;
    auto const wanted = search_->draft(draft);
    if (restricts_) guesses_.ask(followed_[static_cast<std::size_t>(draft.slot - base)], draft);
    return wanted;
  }

 private:
  Output output(std::span<Token const> tokens) const { return {tokens, prefix_, *vocabulary_}; }

  /// Refuses the processors that the search cannot bear.
  void check_bearable(Sentence const& sentence) const {
    auto const& all = *list_;
    require(
        facts_.takes_processors, "processors", std::to_string(all.size()) + " of them",
        "the tokens of this search are frames, not texts: give it a rule of its own (CtcBeamSearch, TransducerBeam)");
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i]->adds() || all[i]->raises()) check_bearable(*all[i], "processors[" + std::to_string(i) + "]");
    for (std::size_t i = 0; i < all.size(); ++i)
      require(!all[i]->processes || sentence.whole_lines, "processors[" + std::to_string(i) + "]", all[i]->name,
              "needs the scores of whole lines, which the output layer of this model does not write: let step() "
              "return Scores, or use DenseProjection");
  }
  void check_bearable(AnyProcessor const& one, std::string const& name) const {
    auto const adds = one.adds();
    auto const called = std::string(one.name), both = name + ", " + called;
    require(!facts_.stops_by_proof, "early_stopping.rule", "exact",
            "proves its result by log-probabilities that only fall, and " + both +
                ", adds to them: stop by another rule");
    require(!facts_.assumes_falling || (adds && facts_.bears_bonus), name, called,
            "adds to scores, and this search proves its result by log-probabilities that only fall: use BeamSearch" +
                std::string(adds ? " or ExactSearch" : ""));
    require(!adds || !facts_.assumes_falling || facts_.takes_prefix || facts_.most < Limits::unlimited, "length.max",
            "unlimited",
            "a search that proves its result cannot bound what " + both + ", may still add: give a maximum");
    require(!adds || !facts_.ends_outputs, name, called,
            "adds to scores, so it must see where outputs end: put it into one list with the processor that ends them");
  }

  void process(Followed const& followed, Query& query, std::size_t line) {
    auto over = false;
    if (ends_ && !at_once_) over = is_over(followed, query), known_.add(query, over);
    if (at_once_ && query.lists()) query.best = (std::max)(query.best, facts_.stops_asked);
    if (over) KnownEnds::ask_nothing(query);
    else edit(followed, query, edits_[line]);
    if (processes_ && query.lists()) process_line(followed, query);  // before bias(): Query::plain()
    if (biasing_ > 0) bias(followed, query, boosts_[line], over);
    if (restricts_ && !over) restrict(followed, query, allowed_[line]);
  }

  void restrict(Followed const& followed, Query& query, AllowedTokens& allowed) {
    allowed.reset();
    auto const left = guesses_.left(followed.output().size());
    for (std::size_t i = 0; i < followed.size(); ++i)
      if ((*list_)[i]->restricts) allowed.keep(followed[i].may_follow(left));
    if (allowed.get() == nullptr) return;
    if (query.only != nullptr) allowed.keep(*query.only);
    query.only = allowed.get();
  }
  void process_line(Followed const& followed, Query& query) {
    if (processed_ == lines_.size()) lines_.push_back(std::make_unique<ProcessedLine>());
    auto& line = *lines_[processed_++];
    line.begin(*list_, followed, output(followed.output()),
               facts_.chooses_probes ? std::span<Token const>{} : query.probes);
    query.process = &line;
  }
  /// Applies the processors to the guesses and adds certain tokens: as many as fit into a block, whatever number the search wanted.
  void guess() {
    if (!std::exchange(planning_, true)) return;  // no guesses are requested before the first plan
    Draft draft;
    if (!guesses_.asked()) this->draft(draft);  // without a draft model, certain tokens still become guesses
    if (!guesses_.asked()) return;
    guesses_.restrict(*vocabulary_, (std::max)(facts_.block - 1, 0));
  }

  bool is_over(Followed const& followed, Query const& query) const {
    auto const tokens = followed.output();
    if (tokens.size() <= prefix_) return false;  // nothing has been generated
    auto stop = std::int32_t{-1};
    for (std::size_t i = 0; i < followed.size() && stop < 0; ++i)
      if ((*list_)[i]->ends) stop = followed[i].stop(output(tokens));
    if (stop < 0 || known_.forbidden(query)) return false;
    require(!vocabulary_->eos.empty(), "vocabulary.eos", "none",
            "a processor ends an output, and there is no end to tell");
    return true;
  }

  /// CandidateStops
  std::int32_t stop(std::size_t line, Token token) override {
    auto const& followed = followed_[static_cast<std::size_t>(line_slots_[line])];
    auto const tokens = followed.output();
    output_.assign(tokens.begin(), tokens.end());
    output_.push_back(token);
    std::size_t ending = 0;
    for (std::size_t i = 0; i < followed.size(); ++i) {
      if (!(*list_)[i]->ends) continue;
      auto& scratch = *ending_[ending++].scratch;
      scratch.copy_last(followed[i]);
      scratch.push(token);
      if (auto const stop = scratch.stop(output(output_)); stop >= 0) return stop;
    }
    return -1;
  }

  void begin_ends(Sentence const& sentence) {
    known_.reset(*vocabulary_), forced_ = sentence.prefix;
    auto const& first = followed_[0];
    std::size_t count = 0;
    for (std::size_t i = 0; i < first.size(); ++i)
      if ((*list_)[i]->ends) {
        if (count == ending_.size()) ending_.emplace_back();
        auto& [begun, scratch] = ending_[count++];
        begun = first[i].another(std::move(begun)), scratch = first[i].another(std::move(scratch));
        begun->copy_at(first[i], sentence.prefix.size());
      }
    ending_.resize(count);
  }
  bool ends_in_eos(std::vector<Token> const& generated) const {
    return !generated.empty() && vocabulary_->ends(generated.back());
  }
  /// The stop of an output that is the forced prefix and `generated`, without an eos at its end: that eos is then the one that the
  /// search was told of. -1: none.
  std::int32_t stop_before_end(std::vector<Token> const& generated) {
    auto const count = generated.size() - (ends_in_eos(generated) ? 1 : 0);
    if (count == 0) return -1;
    output_.assign(forced_.begin(), forced_.end());
    output_.insert(output_.end(), generated.begin(), generated.begin() + static_cast<std::ptrdiff_t>(count));
    for (auto const& [begun, scratch] : ending_) {
      scratch->copy(*begun);
      for (auto const token : std::span(generated).first(count)) scratch->push(token);
      if (auto const stop = scratch->stop(output(output_)); stop >= 0) return stop;
    }
    return -1;
  }
  void tell_stop(Hypothesis& h) {
    if (h.stop >= 0) return;  // set by the search
    h.stop = stop_before_end(h.tokens);
    if (h.stop < 0) return;
    h.finished = true;
    if (!ends_in_eos(h.tokens)) return;
    if (biasing_ > 0 && h.log_probs.size() > 1)  // what was taken back there
      h.log_probs[h.log_probs.size() - 2] += h.log_probs.back();
    h.tokens.pop_back(), h.log_probs.pop_back();
    if (!h.blocks.empty() && --h.blocks.back() == 0) h.blocks.pop_back();
  }

  void bias(Followed const& followed, Query& query, std::vector<Edit>& edits, bool over) {
    edits.clear();
    auto const outputs = followed.output().size();
    auto const left = most_ == Limits::unlimited ? most_ : most_ - static_cast<std::int32_t>(outputs);
    BiasPlace const place{*vocabulary_,
                          left,
                          !facts_.takes_prefix && outputs <= prefix_,
                          left <= (unasked_ ? 2 : 1),
                          over,
                          facts_.assumes_falling,
                          biasing_ == 1 && query.shared == nullptr && query.plain()};  // edits of two are added up
    BiasSum sum;
    for (std::size_t i = 0; i < followed.size(); ++i) {
      if (!(*list_)[i]->biases) continue;
      auto const first = edits.empty();
      auto const its = followed[i].bias(place, edits);
      sum.all += its.all;
      if (first) sum.sorted = its.sorted;
      if (its.shared != nullptr) sum.shared = its.shared;
    }
    auto const shifts = query.stage == Stage::after_softmax ? sum.all : 0;
    shifts_.add(shifts), query.base += static_cast<double>(shifts), query.shift += shifts;
    if (over) return;
    if (sum.shared != nullptr) {
      query.shared = sum.shared;
      name_shared_of_query(*sum.shared, query.edits, edits);
    }
    if (edits.empty()) return;
    prepend(query, edits, sum.shared == nullptr ? query.shared : nullptr);
    query.sorted = sum.sorted;
  }
  void edit(Followed const& followed, Query& query, std::vector<Edit>& edits) {
    if (!KnownEnds::lists(query)) return;
    edits.clear();
    auto const seen = output(followed.output());
    for (std::size_t i = 0; i < followed.size(); ++i) followed[i].edit(seen, edits);
    if (edits.empty()) return;
    for (auto const& e : edits)
      require(vocabulary_->contains(e.token), "a processor's edit", e.token, "is outside the vocabulary");
    if (!facts_.chooses_probes && !query.probes.empty())
      std::erase_if(edits, [&](Edit const& e) {
        return std::find(query.probes.begin(), query.probes.end(), e.token) != query.probes.end();
      });
    prepend(query, edits, query.shared);
  }
  /// Puts edits in front of the query's, which already regard its shared ones.
  static void prepend(Query& query, std::vector<Edit>& edits, SharedEdits const* shared) {
    if (shared != nullptr) name_shared_of_rule(*shared, query.edits, edits);
    edits.insert(edits.end(), query.edits.begin(), query.edits.end());
    query.edits = edits, query.sorted = {};
  }

  struct Ending {
    std::unique_ptr<AnyFollower> begun, scratch;  // begun: after the forced prefix
  };

  AnySearch* search_ = nullptr;
  ProcessorPointers const* list_ = nullptr;
  SearchFacts facts_{};
  Vocabulary const* vocabulary_ = nullptr;
  Buffer<Followed> followed_;                 // [slot]
  Followed branch_;                           // for a tree: beyond its first path
  Buffer<std::vector<Edit>> edits_, boosts_;  // [line]
  Buffer<AllowedTokens> allowed_;             // [line]
  KnownEnds known_;
  ShiftedLines shifts_;
  RestrictedGuesses guesses_;
  Buffer<Ending> ending_;                         // [processor that ends outputs]
  Buffer<std::unique_ptr<ProcessedLine>> lines_;  // those of the last plan first
  std::size_t processed_ = 0;                     // lines of the last plan
  std::vector<Slot> line_slots_;                  // [line]: of the last plan, from 0, if the search asks of candidates
  std::span<Token const> forced_;                 // the forced prefix
  std::vector<Token> output_;                     // scratch
  std::size_t prefix_ = 0;
  std::ptrdiff_t biasing_ = 0;             // processors that add to scores
  std::int32_t most_ = Limits::unlimited;  // tokens of an output, for processors that add to scores
  bool ends_ = false, restricts_ = false, processes_ = false, planning_ = false;
  bool at_once_ = false;  // the search asks which candidates end
  bool unasked_ = false;  // the end at the maximum length is not asked for
};

template <class>
std::unique_ptr<AnyProcessed> make_processed() {
  return std::make_unique<ProcessedSearch<>>();
}
SLUICE_FUNCTION_IN_LIBRARY(std::unique_ptr<AnyProcessed> make_processed<void>())

}  // namespace sluice::inline v0::detail
