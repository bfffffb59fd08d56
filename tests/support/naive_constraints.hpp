// SPDX-License-Identifier: Apache-2.0
/// \file
/// The meaning of constraints, by repeatedly searching for phrases in the text: the reference for the automata.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/search/constraints.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

using Tokens = std::vector<Token>;

/// A random number in [low, high].
inline std::int32_t between(std::mt19937_64& random, std::int32_t low, std::int32_t high) {
  return low + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// Whether `text` ends in the first `count` tokens of `phrase`.
inline bool ends_in(Tokens const& text, Phrase const& phrase, std::size_t count) {
  return count <= text.size() && std::equal(phrase.begin(), phrase.begin() + static_cast<std::ptrdiff_t>(count),
                                            text.end() - static_cast<std::ptrdiff_t>(count));
}

/// The number of positions of `text` at which one of `phrases` ends.
inline std::int32_t places(Tokens const& text, std::set<Phrase> const& phrases) {
  std::int32_t count = 0;
  for (std::size_t n = 1; n <= text.size(); ++n) {
    Tokens const part(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
    count += std::ranges::any_of(phrases, [&](Phrase const& p) { return ends_in(part, p, p.size()); }) ? 1 : 0;
  }
  return count;
}

/// The progress of a constraint.
struct Standing {
  std::int32_t credit = 0;  ///< tokens of everything met
  std::int32_t begun = 0;   ///< tokens of the longest prefix of anything not met
  std::int32_t met = 0;
  std::int32_t remaining = 0;  ///< tokens of everything missing, as if nothing overlapped

  std::int32_t progress() const { return credit + begun; }
  friend Standing operator+(Standing const& a, Standing const& b) {
    return {a.credit + b.credit, std::max(a.begun, b.begun), a.met + b.met, a.remaining + b.remaining};
  }
};

/// Items that must each occur as one of their phrases; `text` begins with bos.
inline Standing naive_any(std::vector<std::vector<Phrase>> const& items, Tokens const& text) {
  std::map<std::set<Phrase>, std::int32_t> kinds;
  for (auto const& item : items) ++kinds[{item.begin(), item.end()}];
  Standing now;
  std::size_t begun = 0;
  for (auto const& [phrases, copies] : kinds) {
    auto const met = std::min(copies, places(text, phrases));
    std::size_t longest = 0, shortest = 1000;
    for (auto const& phrase : phrases)
      longest = std::max(longest, phrase.size()), shortest = std::min(shortest, phrase.size());
    now.remaining += (copies - met) * static_cast<std::int32_t>(shortest);
    now.met += met, now.credit += met * static_cast<std::int32_t>(longest);
    if (met == copies) continue;
    for (auto const& phrase : phrases)
      for (auto n = begun + 1; n < phrase.size(); ++n)
        if (ends_in(text, phrase, n)) begun = n;
  }
  now.begun = static_cast<std::int32_t>(begun);
  now.remaining = std::max(0, now.remaining - static_cast<std::int32_t>(begun));
  return now;
}

inline std::int32_t naive_total(std::vector<std::vector<Phrase>> const& items) {
  std::size_t total = 0;
  for (auto const& item : items) {
    std::size_t longest = 0;
    for (auto const& phrase : item) longest = std::max(longest, phrase.size());
    total += longest;
  }
  return static_cast<std::int32_t>(total);
}

/// Phrases that must occur one after another.
inline Standing naive_ordered(std::vector<Phrase> const& phrases, Tokens text) {
  Standing now;
  for (auto const& phrase : phrases) {
    auto const found = std::search(text.begin(), text.end(), phrase.begin(), phrase.end());
    if (found == text.end()) {
      std::size_t begun = 0;
      for (std::size_t n = 1; n < phrase.size(); ++n)
        if (ends_in(text, phrase, n)) begun = n;
      now.begun = static_cast<std::int32_t>(begun);
      break;
    }
    text.erase(text.begin(), found + static_cast<std::ptrdiff_t>(phrase.size()));
    ++now.met, now.credit += static_cast<std::int32_t>(phrase.size());
  }
  for (auto const& phrase : phrases) now.remaining += static_cast<std::int32_t>(phrase.size());
  now.remaining -= now.progress();
  return now;
}

inline bool occurs(Tokens const& text, Phrase const& phrase) {
  return std::search(text.begin(), text.end(), phrase.begin(), phrase.end()) != text.end();
}

inline std::vector<std::vector<Phrase>> one_each(std::vector<Phrase> const& phrases) {
  std::vector<std::vector<Phrase>> items;
  for (auto const& phrase : phrases) items.push_back({phrase});
  return items;
}

/// The number of constraints that an output meets.
inline std::int32_t naive_met(PhraseLists const& lists, Tokens output) {
  output.insert(output.begin(), bos);
  return naive_any(one_each(lists.all), output).met + naive_any(lists.any, output).met +
         naive_ordered(lists.ordered, output).met;
}
inline std::int32_t naive_count(PhraseLists const& lists) {
  return static_cast<std::int32_t>(lists.all.size() + lists.any.size() + lists.ordered.size());
}
/// Whether it contains nothing forbidden.
inline bool naive_clean(PhraseLists const& lists, Tokens output) {
  output.insert(output.begin(), bos);
  return std::ranges::none_of(lists.none, [&](Phrase const& phrase) { return occurs(output, phrase); });
}
inline bool satisfies(PhraseLists const& lists, Tokens const& output) {
  return naive_met(lists, output) == naive_count(lists) && naive_clean(lists, output);
}

/// A phrase over `first` .. `last`; sometimes with bos before or eos after it.
inline Phrase random_phrase(std::mt19937_64& random, Token first, Token last, std::int32_t longest, bool edges) {
  Phrase phrase;
  for (auto n = between(random, 1, longest); n > 0; --n) phrase.push_back(between(random, first, last));
  if (edges && random() % 8 == 0) phrase.insert(phrase.begin(), bos);
  if (edges && random() % 8 == 0) phrase.push_back(eos);
  return phrase;
}

/// Which lists to fill.
struct ListShape {
  Token first = 3, last = 5;
  std::int32_t longest = 3;  ///< of a phrase
  bool edges = false;
  std::int32_t all = 2, ordered = 0, any = 0, none = 0;  ///< maximum numbers of phrases
};

inline PhraseLists random_lists(std::mt19937_64& random, ListShape const& shape) {
  auto const phrase = [&] { return random_phrase(random, shape.first, shape.last, shape.longest, shape.edges); };
  PhraseLists lists;
  for (auto n = between(random, 0, shape.all); n > 0; --n)
    lists.all.push_back(!lists.all.empty() && random() % 5 == 0 ? lists.all.front() : phrase());
  for (auto n = between(random, 0, shape.ordered); n > 0; --n) {
    lists.ordered.push_back(phrase());
    auto& added = lists.ordered.back();  // bos only at the very beginning, eos only at the very end
    if (lists.ordered.size() > 1) std::erase(added, bos);
    if (n > 1) std::erase(added, eos);
  }
  for (auto n = between(random, 0, shape.any); n > 0; --n) {
    auto& item = lists.any.emplace_back();
    for (auto m = between(random, 1, 3); m > 0; --m) item.push_back(phrase());
    if (random() % 5 == 0) item = lists.any.front();
  }
  for (auto n = between(random, 0, shape.none); n > 0; --n) lists.none.push_back(phrase());
  return lists;
}

inline std::string text(std::vector<Phrase> const& phrases) {
  std::string result;
  for (auto const& phrase : phrases) result.append(detail::text(phrase));
  return result;
}
inline std::string text(PhraseLists const& lists) {
  auto result = "all " + text(lists.all) + ", ordered " + text(lists.ordered) + ", any ";
  for (auto const& item : lists.any) result.append("{").append(text(item)).append("}");
  return result.append(", none ").append(text(lists.none));
}

}  // namespace sluice::test
