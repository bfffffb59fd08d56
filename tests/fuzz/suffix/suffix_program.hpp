// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bytes as a program that uses a SuffixCache, beside a list of texts.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/suffix_guesses.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <fuzz/decoder/bytes.hpp>
#include <fuzz/demand.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

class SuffixProgram {
 public:
  explicit SuffixProgram(std::span<std::uint8_t const> bytes) : bytes_(bytes.data(), bytes.size()) {}

  void run() {
    make();
    for (int steps = 0; !bytes_.empty() && steps < 300; ++steps) {
      switch (bytes_.below(8)) {
        case 0:
        case 1:
        case 2: insert(); break;
        case 3: many(); break;
        case 4: count(); break;
        case 5: guess(); break;
        case 6: file(); break;
        case 7:
          if (bytes_.chance(8)) cache_->clear(), texts_.clear();
          else refused();
      }
      if (steps % 8 == 7) examine();
    }
    examine();
  }

 private:
  using Text = std::vector<Token>;
  /// What the cache may hold of an insertion: `mark` occurs in no other text, before the last token.
  struct Inserted {
    Text before, decoded;
    Token mark;
    std::size_t inserted, used;  // how many insertions there were; `used`: at most
    bool held = true;
  };

  void make() {
    most_ = bytes_.pick({4096, 6000});
    longest_ = bytes_.between(1, 9);
    cache_ = std::make_unique<SuffixCache>(most_, longest_);
  }
  Text draw(std::size_t most) {
    Text text;
    auto const size = static_cast<std::size_t>(bytes_.below(static_cast<std::int32_t>(most) + 1));
    if (!texts_.empty() && bytes_.chance(2)) {  // a piece of another
      auto const& other = texts_[static_cast<std::size_t>(bytes_.byte()) % texts_.size()].decoded;
      auto const from = static_cast<std::size_t>(bytes_.byte()) % other.size();
      text.assign(other.begin() + static_cast<std::ptrdiff_t>(from),
                  other.begin() + static_cast<std::ptrdiff_t>((std::min)(from + size, other.size())));
      std::erase_if(text, [](Token token) { return token >= first_mark; });
      return text;
    }
    std::minstd_rand random(bytes_.byte() + 1u);
    for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<Token>(random() % 4));
    return text;
  }
  void insert(Text before, Text decoded) {
    auto const last = decoded.empty() ? Token{0} : decoded.back();
    auto const mark = first_mark + static_cast<Token>(inserted_);
    if (!decoded.empty()) decoded.pop_back();
    decoded.push_back(mark), decoded.push_back(last);
    cache_->insert(before, decoded);
    ++inserted_;
    // An insertion may have 1/64 of all tokens.
    auto const room = static_cast<std::size_t>(most_ / 64);
    auto const negative = std::find_if(before.rbegin(), before.rend(), [](Token token) { return token < 0; });
    before.erase(before.begin(), negative.base());
    auto context = (std::min)(before.size(), static_cast<std::size_t>(longest_));
    if (decoded.size() >= room)
      context = 0, decoded.erase(decoded.begin(), decoded.end() - static_cast<std::ptrdiff_t>(room - 1));
    else context = (std::min)(context, room - decoded.size() - 1);
    before.erase(before.begin(), before.end() - static_cast<std::ptrdiff_t>(context));
    texts_.push_back({std::move(before), std::move(decoded), mark, inserted_, inserted_});
  }
  void insert() {
    auto before = draw(12);
    if (!before.empty() && bytes_.chance(4)) before[static_cast<std::size_t>(bytes_.byte()) % before.size()] = -1;
    insert(std::move(before), draw(100));
  }
  /// So many that some are forgotten.
  void many() {
    std::minstd_rand random(bytes_.byte() + 1u);
    for (auto n = bytes_.between(1, 40); n > 0; --n) {
      Text text(random() % 40 + 1);
      for (auto& token : text) token = static_cast<Token>(random() % 4);
      insert({}, text);
    }
  }
  void refused() {
    auto const held = cache_->tokens();
    auto failed = false;
    try {
      cache_->insert({}, Text{1, -1 - bytes_.byte(), 2});
    } catch (std::invalid_argument const& e) {
      failed = std::string_view(e.what()).starts_with("sluice: SuffixCache: token = -");
    }
    demand(failed && cache_->tokens() == held, "a negative token was not refused, or left something");
  }

  /// Calls f(text, place) for every place of a text that is held where the last `shared` tokens of a context come before a decoded token.
  template <class F>
  void for_each_place(Text const& context, std::size_t shared, F const& f) {
    for (auto& one : texts_) {
      if (!one.held) continue;
      auto all = one.before;
      all.insert(all.end(), one.decoded.begin(), one.decoded.end());
      for (auto p = (std::max)(one.before.size(), shared); p < all.size(); ++p)
        if (std::equal(context.end() - static_cast<std::ptrdiff_t>(shared), context.end(),
                       all.begin() + static_cast<std::ptrdiff_t>(p - shared)))
          f(one, std::span<Token const>(all).subspan(p));
    }
  }
  std::int64_t places(Text const& context, std::size_t shared) {
    std::int64_t found = 0;
    for_each_place(context, shared, [&](Inserted&, std::span<Token const>) { ++found; });
    return found;
  }
  void count() {
    see();
    auto const context = draw(10);
    demand(cache_->count(context) == places(context, (std::min)(context.size(), static_cast<std::size_t>(longest_))),
           "another count");
  }
  void guess() {
    see();
    auto const context = draw(10);
    auto const depth = bytes_.between(1, 6);
    sluice::detail::SuffixGuesses finder;
    sluice::detail::PathGuesses made;
    auto const all = cache_->places();
    finder.of_others(*all, context, {.factor = 10}, {.depth = depth, .nodes = depth, .leaves = 1}, made);
    std::size_t matched = 0;  // the longest match
    while (matched < (std::min)(context.size(), static_cast<std::size_t>(longest_)) && places(context, matched + 1) > 0)
      ++matched;
    demand(made.tokens.empty() == (matched == 0), "a guess without a match, or a match without a guess");
    demand(std::ssize(made.tokens) <= depth, "too many guesses");
    if (matched == 0) return;
    auto followed = false;
    for_each_place(context, 1, [&](Inserted& one, std::span<Token const> after) {
      if (after.size() < made.tokens.size() || !std::equal(made.tokens.begin(), made.tokens.end(), after.begin()))
        return;
      followed = true, one.used = inserted_;
    });
    demand(followed, "a guess that followed nowhere");
  }

  /// A file is written, sometimes damaged, and read into this cache or another.
  void file() {
    std::ostringstream stream;
    cache_->write(stream);
    auto const whole = std::move(stream).str();
    see();
    auto const load = [](SuffixCache& into, std::string const& file) {
      into.load_bytes(std::as_bytes(std::span(file.data(), file.size())));
    };
    if (bytes_.chance(2)) {
      auto damaged = whole;
      if (bytes_.chance(4)) damaged.resize(damaged.size() * bytes_.byte() / 256);
      else {
        auto const at = (static_cast<std::size_t>(bytes_.byte()) << 8 | bytes_.byte()) % damaged.size();
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bytes_.below(8)));
      }
      auto failed = false;
      try {
        load(*cache_, damaged);
      } catch (std::runtime_error const& e) {
        failed = std::string_view(e.what()).starts_with("suffix cache: ");
      }
      demand(failed, "a damaged file was read, or refused without saying of what");
      return;  // examine() sees whether anything has changed
    }
    if (bytes_.chance(2)) {
      most_ = bytes_.pick({4096, 6000});
      cache_ = std::make_unique<SuffixCache>(most_, bytes_.between(1, 9));
    }
    load(*cache_, whole);
    demand(cache_->longest() == longest_, "a file with another length of matches");
    std::ostringstream again;
    if (bytes_.chance(2)) {
      cache_->write(again);
      demand(most_ != 6000 || again.str() == whole, "a file that was read is not the one that was written");
    }
  }

  /// Finds out what the cache has forgotten.
  void see() {
    std::int64_t held = 0;
    for (auto& one : texts_) {
      auto const found = cache_->count(Text{one.mark});
      demand(found == 0 || found == 1, "a text that is held twice");
      demand(one.held || found == 0, "what was forgotten is back");
      one.held = found == 1;
      held += found;
    }
    demand(cache_->texts() == held, "another number of texts");
    for (auto const& gone : texts_)
      for (auto const& kept : texts_)
        if (!gone.held && kept.held)
          demand(gone.inserted <= kept.used, "a text was forgotten before one that was used before it came");
    std::erase_if(texts_, [](auto const& one) { return !one.held; });
  }
  void examine() {
    see();
    std::int64_t tokens = 0;
    for (auto const& one : texts_) {
      tokens += std::ssize(one.before) + std::ssize(one.decoded);
      auto context = one.before;
      context.insert(context.end(), one.decoded.begin(), one.decoded.end() - 1);
      auto const shared = (std::min)(context.size(), static_cast<std::size_t>(longest_));
      if (tokens % 5 == 0)
        demand(cache_->count(context) == places(context, shared), "another count of a text's own end");
    }
    demand(cache_->tokens() == tokens, "another number of tokens");
    demand(tokens <= 6000, "more than it may hold");
  }

  static constexpr Token first_mark = 100;
  Bytes bytes_;
  std::int64_t most_ = 4096;
  std::int32_t longest_ = 1;
  std::unique_ptr<SuffixCache> cache_;
  std::vector<Inserted> texts_;
  std::size_t inserted_ = 0;
};

}  // namespace sluice::test
