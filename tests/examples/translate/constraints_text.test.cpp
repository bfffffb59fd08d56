// SPDX-License-Identifier: Apache-2.0
// What examples/apps/translate makes of --constraints and --glossary: demands, terms, whole words.
#include <sluice/search/constraints.hpp>

#include <support/catch.hpp>
#include <translate/demands.hpp>
#include <translate/glossary.hpp>
#include <translate/whole_words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace translate;
using sluice::Token;

static_assert(sluice::ConstraintAutomaton<WholeWords>);

namespace {

/// The longest piece that fits, always: one for each ASCII character and byte, some words.
Pieces pieces() {
  Pieces p;
  p.texts = {"", " "};
  p.eos = 0;
  for (char c = '!'; c <= '~'; ++c) p.texts.push_back({c});
  for (int byte = 0x80; byte < 0x100; ++byte) p.texts.push_back({static_cast<char>(byte)});
  for (auto const* const text : {" cat", " cats", " the", " The", " new", " york", "at", "cat", "the", " (", " \""})
    p.texts.emplace_back(text);
  auto const cut = [texts = p.texts](std::string_view text) {
    std::vector<Token> tokens;
    while (!text.empty()) {
      std::size_t best = 0;
      for (std::size_t t = 0; t < texts.size(); ++t)
        if (text.starts_with(texts[t]) && texts[t].size() > texts[best].size()) best = t;
      tokens.push_back(static_cast<Token>(best)), text.remove_prefix(texts[best].size());
    }
    return tokens;
  };
  p.inside = cut;
  p.begin = [cut](std::string_view text) { return cut(" " + std::string(text)); };
  return p;
}
auto const spellings = std::make_shared<Spellings const>(pieces());
auto const* const vocabulary = &spellings->pieces();

WholeWords words(WholeWords::Lists lists) { return {std::move(lists), spellings}; }
WholeWords all(std::vector<std::string> const& phrases) {
  WholeWords::Lists lists;
  for (auto const& phrase : phrases) lists.some.push_back({phrase});
  return words(lists);
}
WholeWords none(std::vector<std::string> const& phrases) { return words({.none = phrases}); }
WholeWords exact(std::vector<std::string> const& phrases) { return words({.exact = phrases}); }
bool met(WholeWords const& w, std::string const& text) {
  auto const verdict = w.judge(text);
  return verdict.met == verdict.total && verdict.forbidden.empty();
}
WholeWords::State after(WholeWords const& w, std::vector<Token> const& tokens) {
  auto state = w.initial({});
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

TEST_CASE("a sentence begins with a capital unless the word has its own", "[whole_words]") {
  for (auto const* const name : {"eBay", "iPhone 3", "eBay's", "p\xC3\x84s"}) {
    auto const capital = text::with_first(name, text::upper);
    CHECK(met(all({name}), std::string(name) + " is"));
    CHECK_FALSE(met(all({name}), capital + " is"));
    CHECK(met(none({name}), capital + " is"));
    CHECK(wanted(all({name}), after(all({}), "")).size() == 1);  // only as written
  }
  CHECK(met(all({"the New York"}), "The New York"));
  CHECK(met(all({"anti-EU"}), "Anti-EU"));
  CHECK(met(all({"c3"}), "C3"));
  CHECK(met(exact({"cat"}), "a cat"));
  CHECK(met(exact({"cat"}), "cat"));
  CHECK_FALSE(met(exact({"cat"}), "Cat is"));
  CHECK(met(exact({"Cat"}), "a Cat"));
  CHECK(exact({"cat"}).judge("Cat").missing == Texts{"'cat'"});
  auto const both = words({.some = {{"cat"}}, .exact = {"cat"}});
  CHECK(both.count() == 2);
  CHECK(both.judge("Cat").met == 1);
  CHECK(both.judge("cat").met == 2);
}

TEST_CASE("punctuation may stand right behind a word", "[whole_words]") {
  for (auto const* const text : {"a cat.", "cat .", "...", ".", "cat.\"", "a.b"}) {
    CHECK(met(all({"."}), text));
    CHECK_FALSE(met(none({"."}), text));
  }
  CHECK_FALSE(met(all({"."}), "a cat"));
  CHECK(met(none({"."}), "a cat!"));
  CHECK(met(all({"'s"}), "the cat's"));
  CHECK_FALSE(met(all({"'s"}), "the cat'so"));
  CHECK(met(all({"cat."}), "a cat."));
  CHECK_FALSE(met(all({"cat."}), "a hotcat."));
  CHECK(met(all({"C++"}), "C++17"));
  CHECK_FALSE(met(all({"C++"}), "AC++"));
  CHECK(met(all({"\"so\""}), "is\"so\"it"));
  CHECK(met(all({"\xE7\x8C\xAB"}), "a\xE7\x8C\xAB"));
  CHECK(met(words({.ordered = {"cat", ".", "."}}), "cat.."));
  CHECK_FALSE(met(words({.ordered = {".", "cat", "."}}), "cat.."));
  auto const dot = all({"."});
  CHECK(dot.complete(after(dot, "cat.")));
  CHECK(wanted(dot, after(dot, "cat")) == Texts{" ", "."});
  CHECK(wanted(all({"(zyx)"}), after(dot, "cat")) == Texts{" ("});
  auto const ban = none({".", "\xE2\x80\xA6"});
  CHECK(ban.dead(ban.next(after(ban, "cat"), vocabulary->inside(".")[0])));
  CHECK(ban.forbidden_in("cat.") == 0);
  CHECK(ban.forbidden_in("cat") == -1);
}

TEST_CASE("each text is spelled once", "[whole_words]") {
  auto counted = pieces();
  auto calls = std::make_shared<int>(0);
  counted.inside = [calls, inside = counted.inside](std::string_view text) { return ++*calls, inside(text); };
  auto const known = std::make_shared<Spellings const>(counted);
  WholeWords const first({.some = {{"new york"}, {"zyx"}}}, known);
  CHECK(*calls == 8 + 1 + 3 + 1);  // a capital has an end that is known
  WholeWords const second({.some = {{"zyx", "new york"}}, .ordered = {"zyx"}, .exact = {"zyx"}}, known);
  CHECK(*calls == 8 + 1 + 3 + 1);
  CHECK(wanted(second, after(second, "the")) == wanted(first, after(first, "the")));
  CHECK(known->of("the")->length() == 1);
  CHECK(known->of("The", known->of("the").get())->first() == Spelling(counted, counted.bytes(), "The").first());
  for (int i = 0; i < 3; ++i) CHECK(known->of(std::string(20, static_cast<char>('a' + i)))->length() == 21);
}

TEST_CASE("a long phrase takes time in proportion", "[whole_words]") {
  auto counted = pieces();
  auto bytes = std::make_shared<std::size_t>(0);
  counted.inside = [bytes, inside = counted.inside](std::string_view text) {
    CHECK(text::valid_utf8(text));
    *bytes += text.size();
    return inside(text);
  };
  std::string phrase = "cat";
  while (phrase.size() < 10'000) phrase += " the \xE2\x98\x83\xF0\x9F\x98\x80 new york";
  Spelling const spelling(counted, counted.bytes(), phrase);
  CHECK(*bytes < 70 * phrase.size());
  CHECK(spelling.length() == std::ssize(vocabulary->begin(phrase)));
  auto i = std::size_t{0};
  for (auto const token : vocabulary->inside(phrase)) {
    REQUIRE(spelling.next(i) == token);
    i += vocabulary->texts[static_cast<std::size_t>(token)].size();
  }
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
  CHECK(wanted(w, w.initial({})) == Texts{" ", " cat", " new"});  // " " begins the tokenizer's " Cat"
  CHECK(wanted(w, after(w, "")) == Texts{"C", "N", "cat", "n"});  // behind a space
  CHECK(wanted(w, after(w, "the (")) == Texts{" cat", " new", "cat", "n"});
  CHECK(wanted(w, after(w, "the new")) == Texts{" cat", " new", " york"});
  CHECK(wanted(w, after(w, "the n")) == Texts{" cat", " new", "e"});
  CHECK(wanted(w, after(w, "cat new york")).empty());
  CHECK(wanted(all({"the"}), after(w, "cat. The")).empty());
  CHECK(wanted(all({"the"}), all({"the"}).initial({})) == Texts{" The", " the"});
}

TEST_CASE("whatever is wanted is followed until all is met", "[whole_words]") {
  auto const w = words({.some = {{"new york"}, {"cat", "the"}, {"\xE2\x98\x83!"}, {"(zyx)"}, {"cat"}, {"."}, {"'s"}},
                        .ordered = {"xyz", "cat", "?"},
                        .exact = {"york"},
                        .none = {"x", ","}});
  std::uint32_t seed = 1;
  for (int round = 0; round < 300; ++round) {
    auto state = w.initial({});
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
  auto const ordered = words({.ordered = {"the", "cat", "cat"}});
  CHECK(met(ordered, "the cat and a cat"));
  CHECK_FALSE(met(ordered, "cat the cat"));
  CHECK_FALSE(met(ordered, "the cat"));
  CHECK_FALSE(met(words({.ordered = {"the cat", "cat"}}), "the cat"));        // an occurrence serves one
  CHECK(met(words({.some = {{"cat"}}, .ordered = {"the cat"}}), "the cat"));  // of those in order
  CHECK(met(all({"cat", "the cat"}), "the cat"));
  CHECK(met(all({"cat", "cat"}), "cat, cat"));
  CHECK_FALSE(met(all({"cat", "cat"}), "cat"));
  CHECK(met(words({.some = {{"cat", "new york"}}}), "new york"));
  CHECK(all({"cat", "cat", "the"}).judge("the").missing == Texts{"'cat'", "'cat'"});
  CHECK(words({.some = {{"cat", "the"}}}).judge("").missing == Texts{"'cat' or 'the'"});
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
  CHECK(fault([] { words({.some = std::vector<Texts>(WholeWords::most, Texts{"cat"}), .exact = {"cat"}}); }) ==
        "more than 256 phrases");
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
  CHECK(parse_demands(R"({"exact": ["x"]})").exact == Texts{"x"});
  CHECK_FALSE(parse_demands(R"({"exact": ["x"]})").empty());
  CHECK(fault([] { parse_demands(R"({"al": []})"); }) == "unknown key 'al': not one of all, any, exact, none, ordered");
  CHECK(fault([] { parse_demands(R"({"any": "a"})"); }) == "any is not a list of lists of phrases: \"a\"");
}

TEST_CASE("lines of demands that are meant to hurt", "[demands]") {
  auto const deep = [](std::size_t depth) {
    return R"({"all": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(fault([&] { parse_demands(deep(300'000)); }) == "nested too deeply");
  CHECK(fault([&] { parse_demands(std::string(300'000, '{')); }) == "nested too deeply");
  CHECK(fault([&] { parse_demands(deep(3)); }) == "all[0] is not a text: [[]]");
  CHECK(parse_demands(R"({"all": ["[[[[[[[[[[[[", "\"[[[[[[[[[", "\\"]})").all.size() == 3);
  CHECK(fault([] { parse_demands(R"({"all": ["a"], "all": ["b"]})"); }) == "key \"all\" comes twice");
  CHECK(fault([] { parse_demands(R"({"none": [], "all": ["a"], "none": []})"); }) == "key \"none\" comes twice");
  CHECK(fault([] { parse_demands(R"({"all": [1e999]})"); }) == "a number is too large");
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "\xC3\xA4";
  for (auto const& line : {R"({"all": ")" + umlauts + "\"}", R"({"all": "x)" + umlauts + "\"}",
                           "{\"" + umlauts + "\": 1}", R"({"all": [[")" + umlauts + "\"]]}", "[\"" + umlauts + "\"]"}) {
    auto const message = fault([&] { parse_demands(line); });
    CHECK(message.size() < 160);
    CHECK(message.find("...") != message.npos);
    CHECK(text::valid_utf8(message));
  }
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

TEST_CASE("terms and sources are made alike", "[glossary]") {
  // As a tokenizer would: two ways to write the same letter.
  auto const normal = [](std::string_view text) {
    std::string out(text);
    for (std::size_t at = 0; (at = out.find("u\xCC\x88")) != out.npos;) out.replace(at, 3, "\xC3\xBC");
    return out;
  };
  auto const target = [](std::string_view text) {
    if (text == "?") throw text::InputError("no such word");
    return text::squeezed(text);
  };
  for (auto const* const term : {"B\xC3\xBCro\toffice", "Bu\xCC\x88ro\toffice"}) {
    Glossary const glossary({term, "C++\tC", "B\xC3\xBCro\t office"}, "terms", normal, target);
    for (auto const* const source : {"Das B\xC3\xBCro.", "Das Bu\xCC\x88ro.", "b\xC3\xBCro", "bu\xCC\x88ro"}) {
      REQUIRE(glossary.find(source).size() == 1);
      CHECK(glossary.find(source)[0]->term == "B\xC3\xBCro");
    }
    CHECK(glossary.entries()[0].targets.size() == 1);
    CHECK(glossary.find("C++17").size() == 1);
  }
  CHECK(fault([&] { Glossary({"", "a\t?"}, "terms", normal, target); }) == "terms:2: no such word");
}

TEST_CASE("many phrases take little more than twice as long for twice as many", "[whole_words][glossary]") {
  auto const seconds = [](auto const& work) {
    auto best = 1e9;
    for (int i = 0; i < 3; ++i) {
      auto const begin = std::clock();  // of this process: others on the machine do not count
      work();
      best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return best;
  };
  auto const numbers = [](int count) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back(std::to_string(i * 7));
    return texts;
  };
  auto const few = numbers(2000), many = numbers(16000);
  CHECK(seconds([&] { none(many); }) < 20 * seconds([&] { none(few); }));  // 64 if each is compared with each
  // One phrase whose beginnings are all ends of others.
  auto const repeated = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += i == 0 ? "a" : " a";
    return text;
  };
  CHECK(seconds([&] { none({repeated(8000)}); }) < 20 * seconds([&] { none({repeated(1000)}); }));
  auto const glossary = [](int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) lines.push_back("a\t" + std::to_string(i));
    return Glossary(lines, "glossary");
  };
  CHECK(seconds([&] { glossary(16000); }) < 20 * seconds([&] { glossary(2000); }));
  auto const one = glossary(1);
  CHECK(seconds([&] { CHECK(one.find(repeated(16000)).size() == 1); }) <
        20 * seconds([&] { CHECK(one.find(repeated(2000)).size() == 1); }));
}

TEST_CASE("what must come is at most a thousand phrases", "[whole_words]") {
  std::vector<std::string> phrases(1025, "cat");
  for (std::size_t i = 0; i < phrases.size(); ++i) phrases[i] += std::to_string(i);
  CHECK_THROWS_WITH(words({.some = {phrases}}), "more than 1024 phrases, alternatives included");
  CHECK_THROWS_WITH(words({.ordered = phrases}), "more than 1024 phrases, alternatives included");
  phrases.pop_back();
  auto const w = words({.some = {phrases}});
  CHECK((met(w, "a cat77 here") && !met(w, "a cat7777 here")));
  CHECK(words({.none = phrases}).judge("a cat77 here").forbidden.size() == 1);
}
