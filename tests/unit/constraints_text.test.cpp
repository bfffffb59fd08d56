// SPDX-License-Identifier: Apache-2.0
// What examples/translate makes of --constraints and --glossary: demands, terms, whole words.
#include <sluice/search/automaton.hpp>

#include <support/catch.hpp>
#include <translate/demands.hpp>
#include <translate/glossary.hpp>
#include <translate/whole_words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace translate;
using sluice::Token;

static_assert(sluice::ConstraintAutomaton<WholeWords>);

namespace {

/// The longest piece that fits, always: one for each ASCII character and byte, some words.
std::shared_ptr<Pieces const> pieces() {
  auto p = std::make_shared<Pieces>();
  p->texts = {"", " "};
  p->eos = 0;
  for (char c = '!'; c <= '~'; ++c) p->texts.push_back({c});
  for (int byte = 0x80; byte < 0x100; ++byte) p->texts.push_back({static_cast<char>(byte)});
  for (auto const* const text : {" cat", " cats", " the", " The", " new", " york", "at", "cat", "the", " (", " \""})
    p->texts.emplace_back(text);
  auto const cut = [texts = p->texts](std::string_view text) {
    std::vector<Token> tokens;
    while (!text.empty()) {
      std::size_t best = 0;
      for (std::size_t t = 0; t < texts.size(); ++t)
        if (text.starts_with(texts[t]) && texts[t].size() > texts[best].size()) best = t;
      tokens.push_back(static_cast<Token>(best)), text.remove_prefix(texts[best].size());
    }
    return tokens;
  };
  p->inside = cut;
  p->begin = [cut](std::string_view text) { return cut(" " + std::string(text)); };
  return p;
}
auto const vocabulary = pieces();

WholeWords words(WholeWords::Lists lists) { return {std::move(lists), vocabulary}; }
WholeWords all(std::vector<std::string> const& phrases) {
  WholeWords::Lists lists;
  for (auto const& phrase : phrases) lists.some.push_back({phrase});
  return words(lists);
}
WholeWords none(std::vector<std::string> const& phrases) { return words({{}, {}, phrases}); }
bool met(WholeWords const& w, std::string const& text) {
  auto const verdict = w.judge(text);
  return verdict.met == verdict.total && verdict.forbidden.empty();
}
WholeWords::State after(WholeWords const& w, std::vector<Token> const& tokens) {
  auto state = w.start({});
  for (auto const token : tokens) state = w.next(state, token);
  return state;
}
WholeWords::State after(WholeWords const& w, std::string const& text) { return after(w, vocabulary->begin(text)); }
std::vector<std::string> wanted(WholeWords const& w, WholeWords::State const& state) {
  std::vector<Token> tokens;
  w.wanted(state, tokens);
  std::vector<std::string> texts;
  for (auto const token : tokens) texts.push_back(vocabulary->texts[static_cast<std::size_t>(token)]);
  std::ranges::sort(texts);
  return texts;
}
using Texts = std::vector<std::string>;

std::string fault(auto&& call) {
  try {
    call();
  } catch (text::InputError const& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("characters of UTF-8 come byte by byte", "[words]") {
  CHECK(text::characters("a\xC3\xA9\xE2\x98\x83\xF0\x9F\x98\x80") == U"a\u00E9\u2603\U0001F600");
  CHECK(text::characters("\xC3"
                         "a\x80") == U"\uFFFDa\uFFFD");
  CHECK(text::to_utf8(U"a\u00E9\u2603\U0001F600") == "a\xC3\xA9\xE2\x98\x83\xF0\x9F\x98\x80");
  for (char32_t c = 1; c < 0x2000; ++c)
    if (text::upper(c) != c) {
      CHECK(text::lower(text::upper(c)) == c);
      CHECK(text::upper(text::upper(c)) == text::upper(c));
    }
  CHECK(text::with_first("\xC3\xA4rzte", text::upper) == "\xC3\x84rzte");
  CHECK(text::squeezed("\t a\xC2\xA0 b ") == "a b");
}

TEST_CASE("a phrase counts as whole words", "[whole_words]") {
  auto const cat = all({"cat"});
  for (auto const* const text : {"cat", "a cat", "cat.", "(cat)", "\"cat\"", "cat's", "hot-cat", "a cat, too", "Cat is",
                                 "No. Cat is", "No! (Cat is)", "He said, \"Cat is"})
    CHECK(met(cat, text));
  for (auto const* const text : {"", "cats", "scat", "category", "cat_", "cat9", "a Cat", "CAT", "c at", "cat\xC3\xA9",
                                 "3.Cat", "a \xE2\x80\x93 Cat"})
    CHECK_FALSE(met(cat, text));
  CHECK(met(all({"Cat"}), "a Cat"));
  CHECK_FALSE(met(all({"Cat"}), "a cat"));
  CHECK(met(all({"the cat"}), "The cat"));
  CHECK_FALSE(met(all({"the cat"}), "the Cat"));
  CHECK(met(all({"C++"}), "in C++, C"));
  CHECK(met(all({"\"so\""}), "is \"so\""));
  CHECK(met(all({"\"so\""}), "\"so\""));
  CHECK(met(all({"\xE7\x8C\xAB"}), "\xE9\xBB\x91\xE7\x8C\xAB\xE3\x81\xAF"));  // a cat among characters without spaces
}

TEST_CASE("how the output is cut into pieces does not matter", "[whole_words]") {
  auto const cat = all({"cat"});
  CHECK(cat.complete(after(cat, "the cat")));
  auto const token = [](std::string_view text) {
    return static_cast<Token>(std::ranges::find(vocabulary->texts, text) - vocabulary->texts.begin());
  };
  for (auto const& tokens :
       std::vector<std::vector<Token>>{{token(" cat")},
                                       {token(" "), token("cat")},
                                       {token(" "), token("c"), token("at")},
                                       {token(" the"), token(" "), token("c"), token("a"), token("t")}}) {
    CHECK(cat.complete(after(cat, tokens)));
    auto with_eos = tokens, longer = tokens;
    with_eos.push_back(vocabulary->eos), longer.push_back(token("s"));
    CHECK(cat.complete(after(cat, with_eos)));
    CHECK_FALSE(cat.complete(after(cat, longer)));
    CHECK(cat.progress(after(cat, longer)) == 0);
  }
}

TEST_CASE("progress counts the tokenizer's pieces, and can be lost", "[whole_words]") {
  auto const w = all({"new york", "cat"});
  CHECK(w.total() == 3);
  CHECK(w.count() == 2);
  CHECK(w.progress(after(w, "")) == 0);
  CHECK(w.progress(after(w, "new")) == 1);
  CHECK(w.progress(after(w, "new york")) == 2);
  CHECK(w.progress(after(w, "new yorks")) == 0);
  CHECK(w.progress(after(w, "new the")) == 0);
  CHECK(w.progress(after(w, "cat new")) == 2);
  CHECK(w.progress(after(w, "cat new york")) == 3);
  CHECK(w.met(after(w, "cat new york")) == 2);
  CHECK(w.progress(after(w, "cat new yorks")) == 1);
}

TEST_CASE("what is wanted leads to the phrases", "[whole_words]") {
  auto const w = all({"new york", "cat"});
  CHECK(wanted(w, after(w, "the")) == Texts{" cat", " new"});
  CHECK(wanted(w, w.start({})) == Texts{" ", " cat", " new"});    // " " begins the tokenizer's " Cat"
  CHECK(wanted(w, after(w, "")) == Texts{"C", "N", "cat", "n"});  // behind a space
  CHECK(wanted(w, after(w, "the (")) == Texts{" cat", " new", "cat", "n"});
  CHECK(wanted(w, after(w, "the new")) == Texts{" cat", " new", " york"});
  CHECK(wanted(w, after(w, "the n")) == Texts{" cat", " new", "e"});
  CHECK(wanted(w, after(w, "cat new york")).empty());
  CHECK(wanted(all({"the"}), after(w, "cat. The")).empty());
  CHECK(wanted(all({"the"}), all({"the"}).start({})) == Texts{" The", " the"});
}

TEST_CASE("whatever is wanted is followed until all is met", "[whole_words]") {
  auto const w = words({{{"new york"}, {"cat", "the"}, {"\xE2\x98\x83!"}, {"(zyx)"}, {"cat"}}, {"xyz", "cat"}, {"x"}});
  std::uint32_t seed = 1;
  for (int round = 0; round < 300; ++round) {
    auto state = w.start({});
    for (int step = 0; step < 200 && !w.complete(state); ++step) {
      std::vector<Token> tokens;
      w.wanted(state, tokens);
      if (tokens.empty()) tokens = vocabulary->inside("q");  // "x" is about to come: the word must go on
      auto copy = tokens;
      std::ranges::sort(copy);
      CHECK(std::ranges::adjacent_find(copy) == copy.end());
      seed = seed * 1664525 + 1013904223;
      auto const random = seed >> 8;
      // At first anything, so that phrases break off; then what goes on with the one that is nearest to its end.
      auto const token = step >= 40        ? tokens[0]
                         : random % 7 == 0 ? static_cast<Token>(random / 7 % vocabulary->texts.size())
                                           : tokens[random / 7 % tokens.size()];
      state = w.next(state, token == vocabulary->eos ? 1 : token);
      CHECK(w.progress(state) >= 0);
      CHECK(w.progress(state) <= w.total());
    }
    REQUIRE(w.complete(state));
  }
}

TEST_CASE("the order of phrases, and how often they come", "[whole_words]") {
  auto const ordered = words({{}, {"the", "cat", "cat"}, {}});
  CHECK(met(ordered, "the cat and a cat"));
  CHECK_FALSE(met(ordered, "cat the cat"));
  CHECK_FALSE(met(ordered, "the cat"));
  CHECK_FALSE(met(words({{}, {"the cat", "cat"}, {}}), "the cat"));  // an occurrence serves one
  CHECK(met(words({{{"cat"}}, {"the cat"}, {}}), "the cat"));        // of those in order
  CHECK(met(all({"cat", "the cat"}), "the cat"));
  CHECK(met(all({"cat", "cat"}), "cat, cat"));
  CHECK_FALSE(met(all({"cat", "cat"}), "cat"));
  CHECK(met(words({{{"cat", "new york"}}, {}, {}}), "new york"));
  CHECK(all({"cat", "cat", "the"}).judge("the").missing == Texts{"'cat'", "'cat'"});
  CHECK(words({{{"cat", "the"}}, {}, {}}).judge("").missing == Texts{"'cat' or 'the'"});
}

TEST_CASE("what must not come kills when the word has ended", "[whole_words]") {
  auto const w = none({"cat"});
  CHECK_FALSE(w.trivial());
  CHECK(met(w, "cats and Cats"));
  CHECK_FALSE(met(w, "a cat."));
  CHECK_FALSE(met(w, "Cat"));
  CHECK(met(w, "a Cat"));
  auto const cat = after(w, "cat");
  CHECK_FALSE(w.dead(cat));
  CHECK_FALSE(w.complete(cat));
  CHECK(w.progress(cat) == 0);
  CHECK(w.progress(after(w, "cats")) == 1);
  CHECK(w.dead(w.next(cat, vocabulary->eos)));
  CHECK(w.dead(w.next(cat, vocabulary->begin("the")[0])));
  CHECK_FALSE(w.dead(w.next(cat, vocabulary->inside("s")[0])));
  CHECK(w.forbidden_in("the cat") == 0);
  CHECK(w.forbidden_in("the Cat") == -1);
  CHECK(w.judge("cat").forbidden == Texts{"'cat'"});
}

TEST_CASE("a lack of demands is trivial", "[whole_words]") {
  CHECK(WholeWords().trivial());
  CHECK(words({}).trivial());
  CHECK(met(words({}), ""));
  CHECK(fault([] {
          words({std::vector<Texts>(WholeWords::most + 1, Texts{"cat"}), {}, {}});
        }) == "more than 256 phrases");
}

TEST_CASE("lines of demands", "[demands]") {
  CHECK(parse_demands("").empty());
  CHECK(parse_demands(" \t").empty());
  CHECK(parse_demands("{}").empty());
  auto const d = parse_demands(R"({"all": ["a"], "ordered": ["b", "c"], "any": [["d", "e"], ["f"]], "none": ["g"]})");
  CHECK(d.all == Texts{"a"});
  CHECK(d.ordered == Texts{"b", "c"});
  CHECK(d.any == std::vector<Texts>{{"d", "e"}, {"f"}});
  CHECK(d.none == Texts{"g"});
  CHECK(fault([] { parse_demands("{"); }) == "not JSON, from byte 2 on");
  CHECK(fault([] { parse_demands("3"); }) == "not an object {...}: 3");
  CHECK(fault([] { parse_demands(R"({"al": []})"); }) == "unknown key 'al': not one of all, any, none, ordered");
  CHECK(fault([] { parse_demands(R"({"any": "a"})"); }) == "any is not a list of lists of phrases: \"a\"");
}

TEST_CASE("terms of a glossary", "[glossary]") {
  Glossary const glossary({"# comment", "", "Hund\tdog", "hund\thound",
                           "gro\xC3\x9F"
                           "e Stadt \t  big  city",
                           "Stadt\ttown", "der Hund\tthe dog", "\xC3\x84rztin\tdoctor"},
                          "terms");
  CHECK(glossary.entries().size() == 5);
  auto const terms = [&](std::string_view source) {
    Texts found;
    for (auto const* const entry : glossary.find(source)) found.push_back(entry->term);
    return found;
  };
  CHECK(glossary.entries()[0].targets.size() == 2);
  CHECK(glossary.entries()[1].targets[0].text == "big city");
  CHECK(glossary.entries()[1].targets[0].line == 5);
  CHECK(terms("Ein Hund.") == Texts{"Hund"});
  CHECK(terms("hund, Hund; hund") == Texts{"Hund"});
  CHECK(terms("Hunde HUND Hofhund").empty());
  CHECK(terms("Der  Hund") == Texts{"der Hund"});
  CHECK(terms("Stadt, Hund") == Texts{"Stadt", "Hund"});
  CHECK(terms("Die gro\xC3\x9F"
              "e Stadt") == Texts{"gro\xC3\x9F"
                                  "e Stadt"});
  CHECK(terms("Eine \xC3\xA4rztin") == Texts{"\xC3\x84rztin"});
  CHECK(Glossary().find("Hund").empty());
  CHECK(fault([] { Glossary({"", "a b"}, "terms"); }) == "terms:2: no tab between source term and target term: 'a b'");
}
