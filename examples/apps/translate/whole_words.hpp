// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whole words that the output's text must or must not contain.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/phrase.hpp>

#include <text/lines.hpp>
#include <text/words.hpp>
#include <translate/spelling.hpp>
#include <translate/word_reader.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace translate {

/// A sluice::ConstraintAutomaton that follows the text which the tokens spell, not the tokens: a phrase counts however it
/// is cut into pieces, and only as whole words, as written or, at the beginning of a sentence, with a capital if its first
/// word has none. It is met when what follows does not go on with the word; until then it counts for progress and may be
/// lost again.
///
/// The tokenizer's pieces serve to lead there: they are what wanted() asks for, and progress is counted in them. A text
/// that ends in what must not come is one lower than others, so that the beam holds others when the next word begins and
/// that one dies.
class WholeWords {
 public:
  static constexpr std::size_t most = 256;  ///< of Lists::some and Lists::exact
  /// Of all that must come, alternatives included: each is looked at in every step.
  static constexpr std::size_t most_phrases = 1024;

  struct Lists {
    std::vector<std::vector<std::string>> some{};  ///< of each of these one phrase; equal ones: at as many places
    std::vector<std::string> ordered{};            ///< all of these, in this order
    std::vector<std::string> exact{};              ///< all of these, nowhere with another capital
    std::vector<std::string> none{};
  };

  struct State {
    std::array<std::uint64_t, most / 64> met{};
    sluice::PhraseMatcher::State node = sluice::PhraseMatcher::root;
    std::int32_t items = 0;    // met
    std::int32_t credit = 0;   // tokens of those
    std::int32_t ordered = 0;  // the next of them
    std::int32_t since = 0;    // symbols since the one before it
    std::int32_t bad = -1;     // of `none`: the last that came, while the token was read that is the last
    WordReader reader;
    text::Utf8 utf8;
  };

  /// What a text has.
  struct Verdict {
    std::int32_t met = 0, total = 0;
    std::vector<std::string> missing{}, forbidden{};
  };

  WholeWords() = default;
  /// \param lists  texts as the tokenizer would write them
  /// \throws text::InputError  for a phrase that it cannot write; more than `most` items or `most_phrases`
  WholeWords(Lists lists, std::shared_ptr<Spellings const> spellings) {
    if (lists.some.empty() && lists.ordered.empty() && lists.none.empty() && lists.exact.empty()) return;
    if (lists.some.size() + lists.exact.size() > most)
      throw text::InputError("more than " + std::to_string(most) + " phrases");
    auto phrases = lists.ordered.size() + lists.exact.size();
    for (auto const& item : lists.some) phrases += item.size();
    if (phrases > most_phrases)
      throw text::InputError("more than " + std::to_string(most_phrases) + " phrases, alternatives included");
    auto data = std::make_shared<Data>();
    data->lists = std::move(lists), data->tokenizer = std::move(spellings);
    Builder(*data).build();
    data_ = std::move(data);
  }

  State initial(sluice::Sentence const&) const { return {}; }
  State next(State state, sluice::Token token) const {
    state.bad = -1;
    if (data_ == nullptr) return state;
    auto const& pieces = data_->tokenizer->pieces();
    if (token == pieces.eos) return ended(state);
    for (auto const byte : pieces.texts[at(token)]) read(state, byte);
    return state;
  }
  std::int32_t progress(State const& state) const {
    if (data_ == nullptr) return 0;
    auto const there = open_tokens(state);
    auto const end = ended(state);
    auto const clean = !data_->lists.none.empty() && (end.bad < 0 || there > 0);
    return std::max(end.credit, state.credit + there) + (clean ? 1 : 0);
  }
  std::int32_t total() const { return data_ == nullptr ? 0 : data_->total; }
  bool complete(State const& state) const {
    auto const end = ended(state);
    return end.items == count() && end.bad < 0;
  }
  bool dead(State const& state) const { return state.bad >= 0; }

  /// The next token of everything that has begun and of all that may begin here.
  void wanted(State const& state, std::vector<sluice::Token>& tokens) const {
    if (data_ == nullptr || ended(state).items == count()) return;
    auto const clean = data_->lists.none.empty();
    std::vector<bool> seen(data_->tokenizer->pieces().texts.size());
    leads(state, [&](Lead const&, std::int32_t, sluice::Token token) {
      if (token < 0 || seen[at(token)]) return;
      seen[at(token)] = true;
      if (clean || !dead(next(state, token))) tokens.push_back(token);
    });
  }

  bool trivial() const { return data_ == nullptr; }
  std::int32_t met(State const& state) const { return ended(state).items; }
  std::int32_t count() const { return data_ == nullptr ? 0 : data_->count; }
  /// No request is refused: one that is too short gives what it can.
  std::int32_t remaining(State const&) const { return 0; }

  Verdict judge(std::string_view text) const {
    Verdict verdict{.total = count()};
    if (data_ == nullptr) return verdict;
    State state;
    std::vector<std::int32_t> bad;
    auto const note = [&] {
      if (state.bad >= 0 && std::ranges::find(bad, state.bad) == bad.end()) bad.push_back(state.bad);
      state.bad = -1;
    };
    for (auto const byte : text) read(state, byte), note();
    state = ended(state), note();
    verdict.met = state.items;
    for (auto const& kind : data_->kinds)
      for (auto bit = kind.first; bit < kind.first + kind.copies; ++bit)
        if (!has(state, bit)) verdict.missing.push_back(kind.name);
    for (auto i = at(state.ordered); i < data_->lists.ordered.size(); ++i)
      verdict.missing.push_back("'" + data_->lists.ordered[i] + "'");
    for (auto const b : bad) verdict.forbidden.push_back("'" + data_->lists.none[at(b)] + "'");
    return verdict;
  }

  /// The number in Lists::none of a phrase that is in `phrase`, wherever in a sentence that comes; -1 if none is.
  std::int32_t forbidden_in(std::string_view phrase) const {
    if (data_ == nullptr) return -1;
    State state;
    state.reader = WordReader(WordReader::Before::space, WordReader::Sentence::inside);
    for (auto const byte : phrase) {
      read(state, byte);
      if (state.bad >= 0) return state.bad;
    }
    return ended(state).bad;
  }

 private:
  /// Items with the same phrases, or one of the ordered phrases.
  struct Kind {
    std::vector<std::string> phrases;  // ascending, each once
    std::string name{};
    std::int32_t first = 0, copies = 0;
    std::int32_t order = -1;  // among the ordered
    bool exact = false;
    std::int32_t cost = 0;  // tokens
  };
  /// A phrase that may go on, or begin, here.
  struct Lead {
    std::int32_t kind, spelling;
    std::size_t byte;
    bool capital, word;  // whether it has got a capital; whether it begins with a word
    bool closes;         // whether it directly follows a word
    friend bool operator==(Lead const&, Lead const&) = default;
  };
  struct End {
    std::int32_t kind, length;
    friend auto operator<=>(End const&, End const&) = default;
  };
  struct Node {
    std::vector<Lead> leads;
    std::vector<End> ends;
    std::int32_t bad = -1;
  };
  struct Data {
    Lists lists;
    std::shared_ptr<Spellings const> tokenizer;
    std::vector<Kind> kinds;
    std::vector<std::shared_ptr<Spelling const>> spellings;
    sluice::PhraseMatcher matcher;
    std::vector<Node> nodes;
    std::int32_t total = 0, count = 0;
  };

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static bool has(State const& state, std::int32_t bit) { return (state.met[at(bit) / 64] >> (at(bit) % 64) & 1) != 0; }

  /// Makes lists into patterns of symbols.
  class Builder {
   public:
    explicit Builder(Data& data) : d_(data) {}

    void build() {
      for (auto const& item : d_.lists.some) add_item(item, false);
      for (auto const& phrase : d_.lists.exact) add_item({phrase}, true);
      auto bits = std::int32_t{0};
      for (auto& kind : d_.kinds) kind.first = bits, bits += kind.copies;
      for (auto const& phrase : d_.lists.ordered)
        d_.kinds.push_back(
            {.phrases = {phrase}, .order = static_cast<std::int32_t>(&phrase - d_.lists.ordered.data())});
      for (auto& kind : d_.kinds) price(kind);
      d_.count = static_cast<std::int32_t>(d_.lists.some.size() + d_.lists.exact.size() + d_.lists.ordered.size());
      d_.total += d_.lists.none.empty() ? 0 : 1;
      for (std::size_t k = 0; k < d_.kinds.size(); ++k)
        for (auto const& phrase : d_.kinds[k].phrases)
          add_phrase(phrase, static_cast<std::int32_t>(k), false, d_.kinds[k].exact);
      for (std::size_t n = 0; n < d_.lists.none.size(); ++n)
        add_phrase(d_.lists.none[n], static_cast<std::int32_t>(n), true, false);
      link();
    }

   private:
    struct Pattern {
      std::vector<sluice::Token> symbols{};
      std::vector<std::size_t> bytes{};  // [symbol]: of the text, once that symbol has been read
      std::int32_t owner = 0;            // kind or number in Lists::none
      bool bad = false;
      std::int32_t spelling = -1;
      bool capital = false;
    };

    void add_item(std::vector<std::string> phrases, bool exact) {
      std::ranges::sort(phrases);
      phrases.erase(std::unique(phrases.begin(), phrases.end()), phrases.end());
      auto kind = std::ranges::find_if(
          d_.kinds, [&](Kind const& known) { return known.phrases == phrases && known.exact == exact; });
      if (kind == d_.kinds.end()) kind = d_.kinds.insert(kind, Kind{.phrases = std::move(phrases), .exact = exact});
      ++kind->copies;
    }

    void price(Kind& kind) {
      for (auto const& phrase : kind.phrases) {
        kind.name.append(kind.name.empty() ? "'" : " or '").append(phrase + "'");
        auto const length = d_.tokenizer->of(phrase)->length();
        if (phrase.empty() || length >= Spelling::impossible)
          throw text::InputError("'" + phrase + "' cannot be written in the model's pieces");
        kind.cost = std::max(kind.cost, length);
      }
      d_.total += kind.cost * (kind.order < 0 ? kind.copies : 1);
    }

    /// As written, and with a capital.
    void add_phrase(std::string const& phrase, std::int32_t owner, bool bad, bool exact) {
      auto const capital = text::with_first(phrase, text::upper);
      auto const spelling = bad ? nullptr : d_.tokenizer->of(phrase);
      add_text(phrase, owner, spelling, false);
      if (capital != phrase && !exact && small(phrase))
        add_text(capital, owner, bad ? nullptr : d_.tokenizer->of(capital, spelling.get()), true);
    }
    /// Whether the first word is without capitals: others, as in eBay, are written so wherever they stand.
    static bool small(std::string_view phrase) {
      for (auto const c : text::characters(phrase)) {
        if (!text::is_word(c)) break;
        if (text::lower(c) != c) return false;
      }
      return true;
    }

    /// Symbols depend on what is before the text.
    /// \param written  null: it must not come
    void add_text(std::string const& text, std::int32_t owner, std::shared_ptr<Spelling const> const& written,
                  bool capital) {
      using enum WordReader::Before;
      using enum WordReader::Sentence;
      auto const bad = written == nullptr;
      auto spelling = std::int32_t{-1};
      if (!bad) spelling = static_cast<std::int32_t>(d_.spellings.size()), d_.spellings.push_back(written);
      for (auto const before : {space, other})
        for (auto const sentence : {inside, ended, opening}) {
          if (capital && sentence != opening) continue;
          Pattern pattern{.owner = owner, .bad = bad, .spelling = spelling, .capital = capital};
          WordReader(before, sentence).phrase(text, [&](sluice::Token symbol, std::size_t bytes) {
            pattern.symbols.push_back(symbol), pattern.bytes.push_back(bytes);
          });
          patterns_.push_back(std::move(pattern));
          if (!known_.insert(patterns_.size() - 1).second) patterns_.pop_back();
        }
    }

    void link() {
      std::vector<std::vector<sluice::Token>> symbols;
      for (auto const& pattern : patterns_) symbols.push_back(pattern.symbols);
      auto const& matcher = d_.matcher = sluice::PhraseMatcher(symbols);
      d_.nodes.resize(at(matcher.states()));
      for (auto const& pattern : patterns_) {
        if (pattern.bad) continue;
        auto const word = pattern.symbols[0] < 0;
        auto const closes = WordReader::closes(static_cast<char32_t>(pattern.symbols[0]));
        auto node = sluice::PhraseMatcher::root;
        add_lead(node, {pattern.owner, pattern.spelling, 0, pattern.capital, word, closes});
        for (std::size_t i = 0; i + 1 < pattern.symbols.size(); ++i) {
          node = matcher.next(node, pattern.symbols[i]);
          auto const byte = pattern.bytes[i];
          if (byte < d_.spellings[at(pattern.spelling)]->text().size() && pattern.symbols[i] >= 0)
            add_lead(node, {pattern.owner, pattern.spelling, byte, pattern.capital, word, closes});
        }
      }
      // What ends with a state's fallback ends with the state: fallbacks come first.
      for (sluice::PhraseMatcher::State node = 1; node < matcher.states(); ++node) {
        auto& here = d_.nodes[at(node)];
        auto const bad_of = [&](std::int32_t p) { return patterns_[at(p)].bad; };
        auto const& phrases = matcher.phrases(node);
        auto const bad = std::ranges::find_if(phrases, bad_of);
        auto const& shorter = d_.nodes[at(matcher.fallback(node))];
        here.bad = bad != phrases.end() ? patterns_[at(*bad)].owner : shorter.bad;
        for (auto const p : phrases)
          if (!bad_of(p)) here.ends.push_back({patterns_[at(p)].owner, matcher.depth(node)});
        here.ends.insert(here.ends.end(), shorter.ends.begin(), shorter.ends.end());
        std::ranges::sort(here.ends);
        auto const again = std::ranges::unique(here.ends, {}, &End::kind);  // of each kind the shortest stays
        here.ends.erase(again.begin(), again.end());
      }
    }

    /// Patterns of one text come one after the other.
    void add_lead(sluice::PhraseMatcher::State node, Lead const& lead) {
      auto& leads = d_.nodes[at(node)].leads;
      for (auto known = leads.rbegin(); known != leads.rend() && known->spelling == lead.spelling; ++known)
        if (*known == lead) return;
      leads.push_back(lead);
    }
    /// Orders patterns, by their numbers.
    struct Before {
      std::vector<Pattern> const& patterns;
      bool operator()(std::size_t a, std::size_t b) const {
        auto const key = [](Pattern const& p) { return std::tie(p.bad, p.owner, p.capital, p.symbols); };
        return key(patterns[a]) < key(patterns[b]);
      }
    };

    Data& d_;
    std::vector<Pattern> patterns_;
    std::set<std::size_t, Before> known_{Before{patterns_}};
  };

  void read(State& state, char byte) const {
    state.utf8.read(byte,
                    [&](char32_t c) { state.reader.read(c, [&](sluice::Token symbol) { take(state, symbol); }); });
  }

  void take(State& state, sluice::Token symbol) const {
    auto const& d = *data_;
    ++state.since;
    state.node = d.matcher.next(state.node, symbol);
    auto const& node = d.nodes[at(state.node)];
    if (node.bad >= 0) state.bad = node.bad;
    for (auto const& end : node.ends) {
      auto const& kind = d.kinds[at(end.kind)];
      if (kind.order >= 0) {
        if (kind.order != state.ordered || end.length > state.since) continue;
        ++state.ordered, state.since = 0, ++state.items, state.credit += kind.cost;
        continue;
      }
      for (auto bit = kind.first; bit < kind.first + kind.copies; ++bit)
        if (!has(state, bit)) {
          state.met[at(bit) / 64] |= std::uint64_t{1} << (at(bit) % 64);
          ++state.items, state.credit += kind.cost;
          break;
        }
    }
  }

  /// If the text ended here.
  State ended(State state) const {
    state.bad = -1;
    if (data_ == nullptr) return state;
    if (!state.utf8.partial().empty()) {
      state.utf8 = {};
      state.reader.read(text::replacement, [&](sluice::Token symbol) { take(state, symbol); });
    }
    state.reader.finish([&](sluice::Token symbol) { take(state, symbol); });
    return state;
  }

  /// Whether `kind` is yet to come, of which `depth` symbols may have.
  bool unmet(State const& state, Kind const& kind, std::int32_t depth) const {
    if (kind.order >= 0) return kind.order == state.ordered && depth <= state.since;
    for (auto bit = kind.first; bit < kind.first + kind.copies; ++bit)
      if (!has(state, bit)) return true;
    return false;
  }

  /// Calls f(lead, tokens left, next token) for all phrases that the text ends in the beginning of, or that may begin here
  /// (left = impossible: nothing of it has come).
  template <class F>
  void leads(State const& state, F&& f) const {
    auto const& d = *data_;
    auto const part = state.utf8.partial();
    auto const go_on = [&](Lead const& lead) {
      auto const& spelling = *d.spellings[at(lead.spelling)];
      if (spelling.text().compare(lead.byte, part.size(), part) != 0) return;
      f(lead, spelling.left(lead.byte + part.size()), spelling.next(lead.byte + part.size()));
    };
    for (auto node = state.node; node != sluice::PhraseMatcher::root; node = d.matcher.fallback(node))
      for (auto const& lead : d.nodes[at(node)].leads)
        if (unmet(state, d.kinds[at(lead.kind)], d.matcher.depth(node))) go_on(lead);
    using enum WordReader::Before;
    auto const before = state.reader.before();
    for (auto const& lead : d.nodes[sluice::PhraseMatcher::root].leads) {
      if ((lead.capital && !state.reader.opening()) || !unmet(state, d.kinds[at(lead.kind)], 0)) continue;
      auto const& spelling = *d.spellings[at(lead.spelling)];
      if (part.empty() && before != space) f(lead, Spelling::impossible, spelling.first());
      if (before == space || (!part.empty() && (before != word || !lead.word))) go_on(lead);
      else if (before == opener || (before == other && !lead.word) || (before == word && lead.closes))
        f(lead, Spelling::impossible, spelling.next(0));
    }
  }

  /// Tokens of the phrase that has begun and is nearest to its end.
  std::int32_t open_tokens(State const& state) const {
    auto best = std::int32_t{0};
    leads(state, [&](Lead const& lead, std::int32_t left, sluice::Token) {
      best = std::max(best, data_->kinds[at(lead.kind)].cost - left);
    });
    return best;
  }

  std::shared_ptr<Data const> data_;
};

}  // namespace translate
