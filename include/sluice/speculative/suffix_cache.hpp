// SPDX-License-Identifier: Apache-2.0
/// \file
/// SuffixCache: what was decoded, indexed by its suffixes, and SuffixDecoding, the proposer that guesses from it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/frequent_paths.hpp>
#include <sluice/speculative/detail/suffix_file.hpp>
#include <sluice/speculative/detail/suffix_guesses.hpp>
#include <sluice/speculative/detail/suffix_merge.hpp>
#include <sluice/speculative/detail/suffix_places.hpp>
#include <sluice/speculative/detail/suffix_segment.hpp>
#include <sluice/speculative/speculated.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Remembers what was decoded, and finds what followed the last tokens of a text before: the global tree of suffix decoding
/// (SuffixDecoding: Oliaro et al. 2025; `suffix` of vLLM, ArcticInference's SuffixDecodingCache). SuffixDecoding guesses from it.
/// Any number of threads may insert and look up, and any number of models share one.
///
/// An array of suffixes sorted from their ends, as in context sorting, rather than a suffix automaton or tree: 8.5 bytes a token in
/// place of some 80; one search finds the longest match and all shorter ones around it; it lies in a file as it does in memory; and a
/// text can be forgotten. New texts go into a small array, which is merged into larger ones (at most four are searched), a little with
/// each insertion. Readers never wait for that: they hold what was there when they began.
///
/// It holds at most `tokens` tokens. Beyond that, those texts are forgotten that were inserted, or last guessed from, longest ago. What
/// it holds depends only on the order of insertions and look-ups. While a large array is merged, old and new are both in memory.
class SuffixCache {
 public:
  /// \param tokens   how many it may hold, with the contexts of texts; >= 4096
  /// \param longest  how many last tokens of a text are compared; 1 to 256. As many tokens before each text are stored
  /// \throws std::invalid_argument  for other numbers
  SLUICE_LAZY explicit SuffixCache(std::int64_t tokens = 10'000'000, std::int32_t longest = 32) : depth_(longest) {
    require(tokens >= 4096 && tokens <= (std::numeric_limits<std::int32_t>::max)(), "SuffixCache: tokens", tokens,
            "must be from 4096 to 2147483647");
    require(longest >= 1 && longest <= static_cast<std::int32_t>(detail::suffix_depth), "SuffixCache: longest", longest,
            "must be from 1 to 256");
    auto const all = static_cast<std::size_t>(tokens);
    middle_ = all / 32, tail_ = (std::min)(middle_, std::size_t{8192}), text_ = all / 64;
    main_ = all - 2 * (middle_ + tail_ + text_) - (tail_ + text_);
    reset();
  }
  SuffixCache(SuffixCache const&) = delete;
  SuffixCache& operator=(SuffixCache const&) = delete;
  ~SuffixCache() = default;

  /// Remembers a text. Of a very long one, only the end: an insertion may have 1/64 of all tokens. Takes a few microseconds for
  /// each token, and copies an array of at most 8,192 tokens.
  /// \param before   what precedes it (source, prompt); only the last `longest` tokens count, and nothing is guessed from within them.
  ///                 Only what follows its last negative number counts
  /// \param decoded  the text; nothing happens if it is empty
  /// \throws std::invalid_argument  for a negative token in `decoded`
  SLUICE_LAZY void insert(std::span<Token const> before, std::span<Token const> decoded) {
    for (auto const token : decoded) require(token >= 0, "SuffixCache: token", token, "must not be negative");
    if (decoded.empty()) return;
    auto const most = static_cast<std::size_t>(depth_);
    std::lock_guard const lock(writing_);
    auto made = std::make_shared<detail::SuffixSegment>();
    auto& tokens = made->own_tokens;
    tokens.push_back(-1);
    if (decoded.size() < text_) {
      auto const context = detail::after_negative(before.last((std::min)(before.size(), most)));
      auto const room = text_ - decoded.size() - 1;
      auto const some = context.last((std::min)(context.size(), room));
      tokens.insert(tokens.end(), some.begin(), some.end());
    } else decoded = decoded.last(text_ - 1);
    auto const first = tokens.size();
    tokens.insert(tokens.end(), decoded.begin(), decoded.end());
    tokens.push_back(-1);
    made->own_texts.assign(1, 0);
    made->show();
    for (auto i = first; i + 1 < tokens.size(); ++i) made->own_order.push_back(static_cast<std::uint32_t>(i));
    std::stable_sort(made->own_order.begin(), made->own_order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return made->before(a, *made, b, depth_); });
    made->show();
    for (std::size_t i = 0; i < made->order.size(); i += detail::SuffixSegment::every)
      made->add_key(i, made->key(made->order[i]));
    made->used = std::make_unique<std::atomic<std::uint32_t>[]>(1);
    made->used[0].store(++clock_, std::memory_order_relaxed);
    largest_ = (std::max)(largest_, *std::max_element(decoded.begin(), decoded.end()));
    add(std::move(made), tokens.size());
  }

  /// How many tokens were decoded after these: how often the `context` (at most `longest` tokens of it count) occurred with a token of
  /// an inserted text behind it. O(log tokens).
  SLUICE_LAZY std::int64_t count(std::span<Token const> context) const {
    auto const all = places();
    context = detail::after_negative(context);
    context = context.last((std::min)(context.size(), static_cast<std::size_t>(all->depth)));
    std::int64_t sum = 0;
    for (auto const& segment : all->segments) {
      detail::SuffixMatch match(*segment, context, all->depth);
      match.find(context, all->depth);
      match.widen(context, static_cast<std::int32_t>(context.size()), all->depth, segment->order.size());
      sum += static_cast<std::int64_t>(match.size());
    }
    return sum;
  }

  /// How many tokens it holds, with contexts.
  SLUICE_LAZY std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (auto const& segment : places()->segments)
      sum += static_cast<std::int64_t>(segment->tokens.size() - 1 - segment->texts.size());
    return sum;
  }
  /// How many texts it holds.
  SLUICE_LAZY std::int64_t texts() const {
    std::int64_t sum = 0;
    for (auto const& segment : places()->segments) sum += static_cast<std::int64_t>(segment->texts.size());
    return sum;
  }
  /// The bytes that its arrays take, those of a mapped file included, without what is being merged.
  SLUICE_LAZY std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (auto const& segment : places()->segments) sum += static_cast<std::int64_t>(segment->bytes());
    return sum;
  }
  /// The largest token of any inserted text; -1: there are none.
  SLUICE_LAZY Token largest_token() const { return places()->largest; }
  /// How many last tokens of a text are compared.
  SLUICE_LAZY std::int32_t longest() const { return places()->depth; }

  /// Forgets everything.
  SLUICE_LAZY void clear() {
    std::lock_guard const lock(writing_);
    reset();
  }

  /// Writes a file, under another name first, which then replaces what was there: it may be mapped. Merges all arrays into one.
  /// \throws std::runtime_error  naming the file
  SLUICE_LAZY void save(std::string const& path) {
    auto const next = path + ".new";
    {
      std::ofstream stream(next, std::ios::binary | std::ios::trunc);
      if (!stream) throw std::runtime_error(next + ": cannot be written");
      try {
        write(stream);
      } catch (std::runtime_error const& problem) {
        throw std::runtime_error(next + ": " + problem.what());
      }
    }
    std::error_code problem;
    std::filesystem::rename(next, path, problem);
    if (problem) throw std::runtime_error(path + ": cannot be replaced: " + problem.message());
  }
  /// Writes the same to a binary stream.
  /// \throws std::runtime_error  if writing to the stream fails
  SLUICE_LAZY void write(std::ostream& stream) {
    std::lock_guard const lock(writing_);
    settle();
    detail::write_suffixes(stream, *segments_[0],
                           {.depth = static_cast<std::uint32_t>(depth_), .largest = largest_, .clock = clock_});
  }

  /// Replaces everything by what a file holds, which is mapped: processes share its memory. `longest` becomes that of the file; what is
  /// more than this cache may hold is forgotten later. The file must not be changed while it is used; save() replaces it by renaming.
  /// \throws std::runtime_error  naming the file, and what is wrong; then nothing changes
  SLUICE_LAZY void load(std::string const& path) {
    auto kept = detail::map_file(path);
    try {
      take(detail::read_suffixes(std::move(kept)));
    } catch (std::runtime_error const& problem) {
      throw std::runtime_error(path + ": " + problem.what());
    }
  }
  /// The same from bytes, which are copied.
  /// \throws std::runtime_error  naming what is wrong; then nothing changes
  SLUICE_LAZY void load_bytes(std::span<std::byte const> bytes) {
    take(detail::read_suffixes(detail::copy_bytes(bytes)));
  }

  /// What look-ups see now: for SuffixDecoding.
  SLUICE_LAZY std::shared_ptr<detail::SuffixPlaces const> places() const {
    std::lock_guard const lock(showing_);
    return shown_;
  }

 private:
  using Segment = std::shared_ptr<detail::SuffixSegment const>;

  SLUICE_LAZY static Segment nothing() {
    auto made = std::make_shared<detail::SuffixSegment>();
    made->own_tokens.assign(1, -1);
    made->show();
    return made;
  }
  SLUICE_LAZY void reset() {
    for (auto& segment : segments_) segment = nothing();
    merging_.reset(), clock_ = 0, largest_ = -1;
    show();
  }
  SLUICE_LAZY void take(std::pair<detail::SuffixHead, Segment> read) {
    std::lock_guard const lock(writing_);
    reset();
    depth_ = static_cast<std::int32_t>(read.first.depth);
    clock_ = read.first.clock, largest_ = read.first.largest;
    segments_[0] = std::move(read.second);
    show();
  }
  SLUICE_LAZY void show() {
    auto made = std::make_shared<detail::SuffixPlaces>();
    for (auto const& segment : segments_)
      if (!segment->order.empty()) made->segments.push_back(segment);
    made->depth = depth_, made->clock = clock_, made->largest = largest_;
    std::lock_guard const lock(showing_);
    shown_ = std::move(made);
  }

  SLUICE_LAZY Segment merged(Segment a, Segment b, std::size_t most = (std::numeric_limits<std::size_t>::max)()) {
    detail::SuffixMerge merge(std::move(a), std::move(b), depth_, most);
    merge.step((std::numeric_limits<std::size_t>::max)());
    return merge.take();
  }
  /// Adds a text of so many tokens.
  SLUICE_LAZY void add(Segment text, std::size_t count) {
    auto& [main, joining, middle, tail] = segments_;
    tail = merged(tail, std::move(text));
    if (tail->tokens.size() >= tail_) middle = merged(middle, tail), tail = nothing();
    if (middle->tokens.size() >= middle_) {
      finish();
      joining = middle, middle = nothing();
      merging_.emplace(main, joining, depth_, main_);
      rate_ = 2 * merging_->work() / middle_ + 1;  // done when the middle is half full again
    } else if (merging_ && merging_->step(rate_ * count)) finish();
    show();
  }
  /// Ends the merging into the main array.
  SLUICE_LAZY void finish() {
    if (!merging_) return;
    merging_->step((std::numeric_limits<std::size_t>::max)());
    segments_[0] = merging_->take(), segments_[1] = nothing();
    merging_.reset();
  }
  /// Merges everything into the main array.
  SLUICE_LAZY void settle() {
    finish();
    auto& [main, joining, middle, tail] = segments_;
    main = merged(main, merged(middle, tail), main_);
    middle = nothing(), tail = nothing();
    show();
  }

  mutable std::mutex showing_;  // of shown_
  std::shared_ptr<detail::SuffixPlaces const> shown_;

  std::mutex writing_;  // of all that follows
  std::int32_t depth_;
  std::size_t main_ = 0, middle_ = 0, tail_ = 0, text_ = 0;  // how many tokens each may have
  Segment segments_[4];  // main; what is being merged into it; middle; tail: later ones are smaller, and younger
  std::optional<detail::SuffixMerge> merging_;
  std::size_t rate_ = 1;  // work for each token
  std::uint32_t clock_ = 0;
  Token largest_ = -1;
};

/// A proposer that guesses what followed the same last tokens in earlier outputs (suffix decoding: Oliaro et al. 2025), which it also
/// stores in a SuffixCache as sentences end. Many models, in many threads, may share one.
///
/// The longest match decides, or one of the next shorter ones; as many tokens are guessed as followed it often enough (`least`), and
/// as its length allows (`factor`). A guess expects that a token is right as often as it followed before. The sentence's own text is a
/// second source of guesses, and the proposers behind it in the list (heads, a draft, prompt lookup) the third: whichever expects most
/// is asked, by how it did in this sentence so far. For a search that takes trees, the most frequent continuations form one.
///
/// A request with Request::remember = false neither leaves anything in the cache nor gets anything from it.
///
/// Guesses change what is decoded only where a rule is relaxed (acceptance::TopK, Distance) or draws (acceptance::Rejection): then
/// outputs also depend on what the cache holds.
///
/// Refers to the cache, which must outlive it. A guess costs O(log tokens of the cache + own text).
class SuffixDecoding {
 public:
  /// What it guesses.
  struct Options {
    std::int32_t shortest = 1;  ///< the shortest match, in tokens; >= 1
    /// guesses on a path per token of the match, at most: a short match is followed for a short while; > 0. `max_spec_factor` of vLLM
    /// and ArcticInference
    double factor = 1;
    /// a guess is made if at least this fraction of what followed begins with the path up to it; 0 to 1. `min_token_prob`
    double least = 0.1;
    std::int32_t samples = 16;  ///< how many places with a match are looked at, at most; >= 1
    bool own = true;            ///< also look in the sentence's own source, prompt and output
    bool source =
        true;  ///< the source, if it is a list of tokens, precedes the prompt: what is decoded for a source is then found
               ///< again for one that ends the same

    void check() const {
      require(shortest >= 1, "shortest", shortest, "must be at least 1");
      require(std::isfinite(factor) && factor > 0, "factor", factor, "must be a number above 0");
      require(least >= 0 && least <= 1, "least", least, "must be from 0 to 1");
      require(samples >= 1, "samples", samples, "must be at least 1");
    }
  };

  explicit SuffixDecoding(SuffixCache& cache) : SuffixDecoding(cache, Options{}) {}
  /// \throws std::invalid_argument  for options that make no sense
  SuffixDecoding(SuffixCache& cache, Options const& options) : cache_(cache), options_(options) { options_.check(); }

  /// \throws std::invalid_argument  for a cache with tokens that the model does not have
  SLUICE_LAZY void bind(Vocabulary const& vocabulary) {
    require(cache_.largest_token() < vocabulary.size, "SuffixDecoding: cache.largest_token()", cache_.largest_token(),
            "is outside the vocabulary of " + std::to_string(vocabulary.size) + ": the cache is of another model");
  }
  SLUICE_LAZY void start(std::span<Slot const> slot_numbers) {
    for (auto const number : slot_numbers) {
      auto& slot = at(number);
      slot.made_by = Slots::none, slot.cache = slot.own = slot.inner = {2, 2};
    }
  }

  template <class F>
  void propose(std::span<Draft const> drafts, SlotTexts const& texts, F const& others) {
    auto const places = cache_.places();
    auto const inner = others.any();
    others_.clear(), waiting_.clear();
    if (guesses_.size() < drafts.size()) guesses_.resize(drafts.size());
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      auto const& draft = drafts[i];
      auto& slot = at(draft.slot);
      read_text(draft, texts);
      learn(slot);
      slot.length = text_.size();
      auto const best = guess(draft, slot, *places, guesses_[i]);
      if (inner && slot.inner.mean() >= best) others_.push_back(draft), waiting_.push_back(i);
      else give(guesses_[i], draft, slot);
    }
    if (!others_.empty()) others(std::span<Draft const>(others_));
    for (std::size_t i = 0; i < others_.size(); ++i) {
      auto const& draft = others_[i];
      auto& slot = at(draft.slot);
      if (draft.tokens->empty()) give(guesses_[waiting_[i]], draft, slot);
      else note(slot, Slots::by_inner, 0, *draft.tokens, draft.tree != nullptr ? draft.tree->parents : none_);
    }
  }

  /// Stores an output.
  SLUICE_LAZY void remember(Decoded const& decoded, SlotTexts const& texts) {
    auto const source = texts.source(decoded.slot);
    before_.assign(source.begin(), source.end());
    before_.insert(before_.end(), decoded.prompt.begin(), decoded.prompt.end());
    cache_.insert(before_, decoded.output);
  }

 private:
  /// How many guesses were right in the last rounds, beside how many were expected to be. Old rounds decay by a tenth each.
  struct Record {
    double right, expected;
    void count(double now, double wanted) { right = 0.9 * right + now, expected = 0.9 * expected + wanted; }
    double mean() const { return right / expected; }
  };
  struct Slots {
    static constexpr int none = -1, by_cache = 0, by_own_text = 1, by_inner = 2;
    std::vector<Token> guessed{};  // in the last round, after `length` tokens
    std::vector<std::int32_t> parents{};
    std::size_t length = 0;
    int made_by = none, waiting = none;  // what made those, and the guesses that wait to be given
    double expected = 0;
    Record cache{2, 2}, own{2, 2};  // a token for each that is expected
    Record inner{2, 2};             // tokens in a round
  };

  SLUICE_LAZY Slots& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= slots_.size()) slots_.resize(i + 1);
    return slots_[i];
  }

  /// Sets text_ to what the sentence holds, behind its source.
  SLUICE_LAZY void read_text(Draft const& draft, SlotTexts const& texts) {
    text_.clear();
    if (auto const source = texts.source(draft.slot); options_.source) text_.assign(source.begin(), source.end());
    source_ = text_.size();
    texts.append(draft, text_);
  }

  /// Counts how many of the last guesses are in the text.
  SLUICE_LAZY void learn(Slots& slot) {
    auto const made_by = std::exchange(slot.made_by, Slots::none);
    if (made_by == Slots::none || slot.length > text_.size()) return;
    double right = 0;
    std::int32_t parent = -1;
    for (auto i = slot.length; i < text_.size(); ++i) {
      auto g = static_cast<std::size_t>(std::int64_t{parent} + 1);
      auto const above = [&](std::size_t n) {
        return n < slot.parents.size() ? slot.parents[n] : static_cast<std::int32_t>(n) - 1;
      };
      while (g < slot.guessed.size() && (above(g) != parent || slot.guessed[g] != text_[i])) ++g;
      if (g == slot.guessed.size()) break;
      parent = static_cast<std::int32_t>(g), right += 1;
    }
    if (made_by == Slots::by_inner) slot.inner.count(right, 1);
    else (made_by == Slots::by_cache ? slot.cache : slot.own).count(right, slot.expected);
  }

  /// Makes the guesses of the cache, or of the sentence's own text. Returns how many are expected to be right.
  SLUICE_LAZY double guess(Draft const& draft, Slots& slot, detail::SuffixPlaces const& places,
                           detail::PathGuesses& made) {
    auto const branches = draft.tree != nullptr && draft.tree->leaves > 1;
    detail::FrequentPaths::Bounds const bounds{.depth = (std::max)(draft.count, 0),
                                               .nodes = branches ? draft.tree->nodes : (std::max)(draft.count, 0),
                                               .leaves = branches ? draft.tree->leaves : 1,
                                               .cost = draft.tree != nullptr ? draft.tree->cost : 0,
                                               .least = options_.least};
    detail::SuffixGuesses::Options const options{
        .shortest = options_.shortest, .samples = options_.samples, .factor = options_.factor};
    made.clear();
    slot.waiting = Slots::by_cache;
    double best = -1;
    if (draft.remember) {
      finder_.of_others(places, text_, options, bounds, made);
      best = made.expected * slot.cache.mean();
    }
    if (options_.own) {
      finder_.of_text(text_, source_, places.depth, options, bounds, own_);
      if (auto const other = own_.expected * slot.own.mean(); other > best || made.tokens.empty())
        std::swap(made, own_), best = other, slot.waiting = Slots::by_own_text;
    }
    return made.tokens.empty() ? -1 : best;
  }

  SLUICE_LAZY void give(detail::PathGuesses const& guesses, Draft const& draft, Slots& slot) {
    draft.tokens->insert(draft.tokens->end(), guesses.tokens.begin(), guesses.tokens.end());
    if (draft.tree != nullptr && draft.tree->leaves > 1) draft.tree->parents = guesses.parents;
    if (!guesses.tokens.empty()) note(slot, slot.waiting, guesses.expected, guesses.tokens, guesses.parents);
  }
  SLUICE_LAZY void note(Slots& slot, int made_by, double expected, std::span<Token const> tokens,
                        std::span<std::int32_t const> parents) {
    slot.guessed.assign(tokens.begin(), tokens.end()), slot.parents.assign(parents.begin(), parents.end());
    slot.made_by = made_by, slot.expected = expected;
  }

  SuffixCache& cache_;
  Options options_;
  std::vector<Slots> slots_;
  std::vector<Token> text_, before_;
  std::size_t source_ = 0;
  detail::SuffixGuesses finder_;
  detail::PathGuesses own_;
  std::vector<detail::PathGuesses> guesses_;  // [draft]
  std::vector<Draft> others_;
  std::vector<std::size_t> waiting_;  // [others_]: their drafts
  std::vector<std::int32_t> none_;
};

}  // namespace sluice::inline v0
