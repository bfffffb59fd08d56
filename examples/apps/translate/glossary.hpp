// SPDX-License-Identifier: Apache-2.0
/// \file
/// Terms of the source and their required translations.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/processor/phrase.hpp>

#include <text/lines.hpp>
#include <text/words.hpp>
#include <translate/word_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translate {

/// Finds its terms in sources as whole words; the first letter may be of either case.
class Glossary {
 public:
  /// Normalizes texts.
  using Normal = std::function<std::string(std::string_view)>;

  struct Target {
    std::string text;
    std::size_t line;  ///< in the file, from 1
  };
  struct Entry {
    std::string term;
    std::vector<Target> targets;  ///< any of them is accepted
  };

  Glossary() = default;
  /// \param lines   source term, tab, target term; or blank; or a comment that begins with #
  /// \param name    of the file
  /// \param source  of terms and of the texts they are looked for in
  /// \param target  of targets; what it throws as a text::InputError is told with the line
  /// \throws text::InputError  naming the line
  Glossary(
      std::vector<std::string> const& lines, std::string const& name, Normal source = text::squeezed,
      Normal const& target = [](std::string_view text) { return std::string(text); })
      : normal_(std::move(source)) {
    std::map<std::string, std::size_t> known;
    std::set<std::pair<std::size_t, std::string>> pairs;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto const& line = lines[i];
      if (line.starts_with('#') || text::squeezed(line).empty()) continue;
      auto const refuse = [&](std::string const& why) {
        throw text::InputError(name + ":" + std::to_string(i + 1) + ": " + why + ": '" + line + "'");
      };
      auto const tab = line.find('\t');
      if (tab == line.npos) refuse("no tab between source term and target term");
      if (line.find('\t', tab + 1) != line.npos) refuse("more than two columns");
      auto const term = text::squeezed(normal_(line.substr(0, tab))), right = text::squeezed(line.substr(tab + 1));
      if (term.empty()) refuse("no source term");
      if (right.empty()) refuse("no target term");
      auto const wanted = [&] {
        try {
          return target(right);
        } catch (text::InputError const& error) {
          throw text::InputError(name + ":" + std::to_string(i + 1) + ": " + error.what());
        }
      }();
      auto const [entry, fresh] = known.try_emplace(text::with_first(term, text::lower), entries_.size());
      if (fresh) entries_.push_back({term, {}});
      if (pairs.emplace(entry->second, wanted).second) entries_[entry->second].targets.push_back({wanted, i + 1});
    }
    std::vector<std::vector<sluice::Token>> patterns;
    for (std::size_t e = 0; e < entries_.size(); ++e)
      for (auto const change : {text::lower, text::upper}) {
        auto& pattern = patterns.emplace_back();
        WordReader(WordReader::Before::space, WordReader::Sentence::inside)
            .phrase(text::with_first(entries_[e].term, change),
                    [&](sluice::Token symbol, std::size_t) { pattern.push_back(plain(symbol)); });
        owner_.push_back(e);
      }
    matcher_ = sluice::PhraseMatcher(patterns);
  }

  std::vector<Entry> const& entries() const { return entries_; }

  /// The entries whose terms are in `source`, each once, in the order of the source. Longer terms win, and terms that overlap
  /// with one already found are skipped.
  std::vector<Entry const*> find(std::string_view source) const {
    if (entries_.empty()) return {};
    struct Match {
      std::ptrdiff_t begin, end;
      std::size_t entry;
    };
    std::vector<Match> matches;
    auto node = sluice::PhraseMatcher::root;
    std::ptrdiff_t at = 0;
    auto const take = [&](sluice::Token symbol) {
      ++at, node = matcher_.next(node, plain(symbol));
      for (auto n = node; n != sluice::PhraseMatcher::root; n = matcher_.fallback(n))
        for (auto const p : matcher_.phrases(n))
          matches.push_back({at - matcher_.depth(n), at, owner_[static_cast<std::size_t>(p)]});
    };
    WordReader reader;
    for (auto const c : text::characters(text::squeezed(normal_(source)))) reader.read(c, take);
    reader.finish(take);
    std::ranges::sort(matches, {}, [](Match const& match) { return std::pair(match.begin - match.end, match.begin); });
    std::map<std::ptrdiff_t, Match> taken;  // by their ends; none overlap
    for (auto const& match : matches) {
      auto const after = taken.upper_bound(match.begin);  // the first that ends behind where this one begins
      if (after == taken.end() || after->second.begin >= match.end) taken.emplace(match.end, match);
    }
    std::vector<Entry const*> found;
    std::set<std::size_t> known;
    for (auto const& [end, match] : taken)
      if (known.insert(match.entry).second) found.push_back(&entries_[match.entry]);
    return found;
  }

 private:
  /// Where sentences begin does not matter.
  static sluice::Token plain(sluice::Token symbol) {
    return symbol == WordReader::sentence_begins ? WordReader::word_begins : symbol;
  }

  Normal normal_;
  std::vector<Entry> entries_;
  sluice::PhraseMatcher matcher_;
  std::vector<std::size_t> owner_;  // [pattern]
};

}  // namespace translate
