// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/constraints.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace translate {

namespace {

Pieces make_pieces(Tokenizer const& tokenizer) {
  Pieces pieces;
  for (sluice::Token token = 0; token < tokenizer.size(); ++token) pieces.texts.push_back(tokenizer.text(token));
  pieces.eos = tokenizer.eos();
  pieces.begin = [&tokenizer](std::string_view text) { return tokenizer.encode(text); };
  pieces.inside = [&tokenizer](std::string_view text) { return tokenizer.encode_inside(text); };
  return pieces;
}

/// One or several phrases, and where they are demanded.
struct Item {
  std::string where;
  std::vector<std::string> phrases;
  bool exact = false;
};

}  // namespace

Constraints::Constraints(Options const& options, std::vector<std::string> lines, Tokenizer const& tokenizer)
    : tokenizer_(tokenizer),
      file_(options.constraints.string()),
      glossary_file_(options.glossary.string()),
      lines_(std::move(lines)) {
  if (!options.constrained()) return;
  spellings_ = spellings(tokenizer);
  if (!options.glossary.empty()) read_glossary(text::read_lines(options.glossary));
}

Constraints::Constraints(Names names, std::vector<std::string> lines, std::vector<std::string> const& glossary,
                         Tokenizer const& tokenizer, std::shared_ptr<Spellings const> shared)
    : tokenizer_(tokenizer),
      file_(std::move(names.constraints)),
      glossary_file_(std::move(names.glossary)),
      lines_(std::move(lines)),
      spellings_(std::move(shared)) {
  read_glossary(glossary);
}

std::shared_ptr<Spellings const> Constraints::spellings(Tokenizer const& tokenizer) {
  return std::make_shared<Spellings>(make_pieces(tokenizer));
}

void Constraints::read_glossary(std::vector<std::string> const& lines) {
  glossary_ = Glossary(
      lines, glossary_file_, [&tokenizer = tokenizer_](std::string_view text) { return tokenizer.normal(text); },
      [this](std::string_view target) { return normal(std::string(target)); });
}

WholeWords Constraints::of(std::size_t number, std::string const& where, std::string_view source,
                           std::vector<sluice::Token> const& prefix) const {
  return of(number, where, terms(source), prefix);
}

WholeWords Constraints::of(std::size_t number, std::string const& where,
                           std::vector<Glossary::Entry const*> const& terms,
                           std::vector<sluice::Token> const& prefix) const {
  WholeWords::Lists lists;
  std::vector<Item> items;  // what must come
  auto const here = file_ + ":" + std::to_string(number) + ": ";
  auto const read = [&](std::string const& place, std::vector<std::string> const& phrases) {
    Item item{place, {}};
    for (std::size_t i = 0; i < phrases.size(); ++i) try {
        item.phrases.push_back(normal(phrases[i]));
      } catch (text::InputError const& error) {
        throw text::InputError(place + (phrases.size() > 1 ? "[" + std::to_string(i) + "]: " : ": ") + error.what());
      }
    return item;
  };
  auto const each = [&](char const* name, std::vector<std::string> const& phrases, auto&& use) {
    for (std::size_t i = 0; i < phrases.size(); ++i)
      use(read(here + name + "[" + std::to_string(i) + "]", {phrases[i]}));
  };

  if (number <= lines_.size()) {
    auto const demands = [&] {
      try {
        return parse_demands(lines_[number - 1]);
      } catch (text::InputError const& error) {
        throw text::InputError(here + error.what());
      }
    }();
    each("all", demands.all, [&](Item item) { items.push_back(std::move(item)); });
    for (std::size_t i = 0; i < demands.any.size(); ++i)
      items.push_back(read(here + "any[" + std::to_string(i) + "]", demands.any[i]));
    each("exact", demands.exact, [&](Item item) { items.push_back(std::move(item)), items.back().exact = true; });
    each("ordered", demands.ordered, [&](Item const& item) { lists.ordered.push_back(item.phrases[0]); });
    each("none", demands.none, [&](Item const& item) { lists.none.push_back(item.phrases[0]); });
  }
  auto const sorted = [](std::vector<std::string> phrases) {
    std::ranges::sort(phrases);
    return phrases;
  };
  std::set<std::vector<std::string>> demanded;
  for (auto const& item : items) demanded.insert(sorted(item.phrases));
  for (auto const* const entry : terms) {
    Item item{where + glossary_file_ + ":" + std::to_string(entry->targets.front().line) + ": '" + entry->term + "'",
              {}};
    for (auto const& target : entry->targets) item.phrases.push_back(target.text);
    // What the constraints demand anyway is not demanded twice.
    if (demanded.insert(sorted(item.phrases)).second) items.push_back(std::move(item));
  }
  for (auto const& item : items) {
    if (item.exact) lists.exact.push_back(item.phrases[0]);
    else lists.some.push_back(item.phrases);
  }
  for (std::size_t i = 0; i < lists.ordered.size(); ++i)
    items.push_back({here + "ordered[" + std::to_string(i) + "]", {lists.ordered[i]}});

  auto const words = [&] {
    try {
      return WholeWords(lists, spellings_);
    } catch (text::InputError const& error) {
      throw text::InputError((lines_.empty() ? where + glossary_file_ + ": " : here) + error.what());
    }
  }();
  for (auto const& item : items) {
    auto bad = std::int32_t{-1};
    if (std::ranges::all_of(item.phrases, [&](auto const& phrase) { return (bad = words.forbidden_in(phrase)) >= 0; }))
      throw text::InputError(item.where + ": " + both(item.phrases.back()) + " is demanded, but " +
                             both(lists.none[static_cast<std::size_t>(bad)]) + " forbidden");
  }
  if (auto const found = words.judge(tokenizer_.decode(prefix)).forbidden; !found.empty())
    throw text::InputError(here + found.front() + " is forbidden, but the prefix has it");
  return words;
}

/// As the model would write it.
std::string Constraints::normal(std::string const& phrase) const {
  auto const tokens = tokenizer_.encode(phrase);
  if (tokens.empty()) throw text::InputError("'" + detail::shortened(phrase) + "' is no token: []");
  if (std::ranges::find(tokens, tokenizer_.unk()) != tokens.end())
    throw text::InputError(both(phrase) + " has a character that the model cannot write");
  return tokenizer_.decode(tokens);
}

/// 'words' [pieces].
std::string Constraints::both(std::string const& phrase) const {
  std::string pieces;
  for (auto const token : tokenizer_.encode(phrase))
    pieces.append(pieces.empty() ? "" : " ").append(tokenizer_.piece(token));
  std::string text = "'";
  text.append(detail::shortened(phrase)).append("' [").append(detail::shortened(pieces)).append("]");
  return text;
}

}  // namespace translate
