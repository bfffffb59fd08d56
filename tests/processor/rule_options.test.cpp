// SPDX-License-Identifier: Apache-2.0
// The limits of rule options: what is off by default, what is just allowed, what is refused by name.
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Text = std::vector<Token>;
constexpr auto infinity = std::numeric_limits<float>::infinity();
auto const no_number = std::numeric_limits<float>::quiet_NaN();
Vocabulary const usual{.size = 20, .bos = 2, .eos = {1}};

std::vector<Edit> edits_of(auto const& rule, Text const& output, Text const& prompt = {}) {
  std::vector<Edit> edits;
  auto state = rule.initial({.vocabulary = &usual, .prompt = prompt});
  for (auto const token : output) state = rule.next(state, token);
  rule.edit(state, {output, 0, usual}, edits);
  return edits;
}
bool same(std::vector<Edit> const& a, std::vector<Edit> const& b) {
  return std::ranges::equal(a, b, [](Edit const& x, Edit const& y) {
    return x.token == y.token && x.add == y.add && x.penalty == y.penalty;
  });
}
std::vector<Token> forbidden_by(auto const& rule, Text const& output) {
  std::vector<Token> tokens;
  for (auto const& edit : edits_of(rule, output)) {
    CHECK(edit.add == -infinity);
    tokens.push_back(edit.token);
  }
  return tokens;
}
void refused(auto const& rule, std::string const& name) {
  try {
    rule.check();
  } catch (std::invalid_argument const& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).starts_with("sluice: " + name + " = "));
    return;
  }
  FAIL("accepted: " << name);
}
void refused_at_begin(auto const& rule, std::string const& name) {
  INFO(name);
  try {
    static_cast<void>(rule.initial({.vocabulary = &usual}));
  } catch (std::invalid_argument const& error) {
    CHECK(std::string(error.what()).starts_with("sluice: " + name + " = "));
    return;
  }
  FAIL("accepted: " << name);
}

}  // namespace

TEST_CASE("rules do nothing by default", "[rules]") {
  Text const output{5, 6, 5, 6, 5, 6, 5};
  CHECK(edits_of(Dry{}, output).empty());
  CHECK(edits_of(Penalties{}, output).empty());
  CHECK(edits_of(ForbidTokens{}, output).empty());
  CHECK(edits_of(ForbidFirst{}, {}).empty());
  CHECK(edits_of(NoRepeatNgram{}, output).empty());
  CHECK(edits_of(RepetitionPenalty{}, output).empty());
  CHECK(edits_of(TokenBias{}, output).empty());
  CHECK(edits_of(Forbidden{}, output).empty());
  CHECK_NOTHROW(Dry{}.check());
  CHECK_NOTHROW(Penalties{}.check());
  CHECK_NOTHROW(NoRepeatNgram{}.check());
  CHECK_NOTHROW(RepetitionPenalty{}.check());
  CHECK((Forbidden{}.trivial() && Forbidden{}.phrases().empty()));
  CHECK_FALSE(Forbidden({{5}}).trivial());
}

TEST_CASE("what is not named is llama.cpp's", "[penalties][dry]") {
  std::mt19937_64 random(1);
  std::size_t some = 0;
  for (int round = 0; round < 200; ++round) {
    Text prompt(40), output(30 + random() % 40);
    for (auto* text : {&prompt, &output})
      for (auto& token : *text) token = static_cast<Token>(3 + random() % 6);
    CHECK(same(edits_of(Penalties{.frequency = 0.5f}, output, prompt),
               edits_of(Penalties{.repetition = 1, .frequency = 0.5f, .presence = 0, .window = 64, .prompt = true},
                        output, prompt)));
    auto const usual_dry = edits_of(Dry{.multiplier = 1}, output, prompt);
    CHECK(same(usual_dry,
               edits_of(Dry{.multiplier = 1, .base = 1.75f, .allowed_length = 2, .window = 64}, output, prompt)));
    some += usual_dry.size();
  }
  CHECK(some > 100);
  // Only the last 64 of these tokens count: 1 + 64, the first of which differs.
  Text text(65, 5);
  text.front() = 6;
  CHECK(edits_of(Penalties{.presence = 1}, text).size() == 1);
  CHECK(edits_of(Penalties{.presence = 1}, {text.begin(), text.end() - 1}).size() == 2);
  Text const pair{7, 8};
  text.assign(66, 5);
  std::copy(pair.begin(), pair.end(), text.end() - 2);
  for (std::ptrdiff_t at : {1, 2}) {  // 7 8 9 begins 65 and 64 tokens before the end
    auto before = text;
    before[static_cast<std::size_t>(at)] = 7, before[static_cast<std::size_t>(at) + 1] = 8;
    before[static_cast<std::size_t>(at) + 2] = 9;
    CHECK(edits_of(Dry{.multiplier = 1}, before).size() == (at == 1 ? 0u : 1u));
  }
}

TEST_CASE("DRY at the edges of its base, its lengths and its window", "[dry]") {
  Text const same_again(60, 5);
  for (auto const base : {1.0f, 1.000001f, 1.00001f}) {
    auto const edits = edits_of(Dry{.multiplier = 2, .base = base, .window = -1}, same_again);
    REQUIRE(edits.size() == 1);
    auto const expected = -2 * std::pow(static_cast<double>(base), 59 - 2);
    CHECK_THAT(static_cast<double>(edits[0].add), WithinRel(expected, 2e-7));
  }
  auto const steep = edits_of(Dry{.multiplier = 2, .base = 1e30f, .window = -1}, same_again);
  REQUIRE(steep.size() == 1);
  CHECK_THAT(static_cast<double>(steep[0].add), WithinRel(-2e30, 1e-6));  // at most the first power: a float
  CHECK(edits_of(Dry{.multiplier = 1, .allowed_length = 0, .window = 2}, same_again).size() == 1);
  CHECK(edits_of(Dry{.multiplier = 1, .allowed_length = 2, .window = 3}, same_again).size() == 1);
  CHECK(edits_of(Dry{.multiplier = 1, .allowed_length = 2, .window = 2}, same_again).empty());
  CHECK(edits_of(Dry{.multiplier = 0, .window = -1}, same_again).empty());
  // Long windows cost no more than one look at each token.
  Text const longer(150000, 5);
  CHECK(edits_of(Dry{.multiplier = 1, .base = 1, .window = -1}, longer).size() == 1);
  CHECK(detail::RecentTokens(longer, same_again, 0).size() == 0);
  CHECK(detail::RecentTokens(longer, same_again, -1).size() == longer.size() + same_again.size());
}

TEST_CASE("options just within their bounds are taken, those beyond are refused by name", "[rules]") {
  CHECK_NOTHROW(Dry{.base = 1}.check());
  CHECK_NOTHROW(Dry{.allowed_length = 0, .window = -1}.check());
  refused(Dry{.multiplier = infinity}, "dry.multiplier");
  refused(Dry{.base = infinity}, "dry.base");
  refused(Dry{.base = 0.99f}, "dry.base");
  CHECK_NOTHROW(Penalties{.repetition = 0.01f}.check());
  CHECK_NOTHROW(Penalties{.repetition = 4.4e-39f}.check());  // its inverse is finite, twice that is not
  for (auto const wrong : {-1.0f, -0.5f, 0.0f, 1e-39f, infinity, -infinity, no_number})
    refused(Penalties{.repetition = wrong}, "penalties.repetition");
  refused(Penalties{.frequency = infinity}, "penalties.frequency");
  refused(Penalties{.presence = -infinity}, "penalties.presence");
  CHECK_NOTHROW(RepetitionPenalty{0.5f}.check());
  for (auto const wrong : {-1.0f, 0.0f, infinity, no_number}) refused(RepetitionPenalty{wrong}, "repetition_penalty");
  CHECK_NOTHROW(NoRepeatNgram{0}.check());
  refused_at_begin(ForbidTokens{{3, 20}}, "forbidden token");
  refused_at_begin(ForbidFirst{{3, -1}}, "forbidden first token");
  refused_at_begin(TokenBias{{{3, 1}, {20, 1}}}, "token bias");
  for (auto const wrong : {infinity, no_number}) refused_at_begin(TokenBias{{{3, wrong}}}, "token bias");
  CHECK(forbidden_by(TokenBias{{{3, -infinity}}}, {}) == Text{3});
}

TEST_CASE("forbidden phrases are asked for as edits, as tokens and by state", "[rules]") {
  std::vector<Phrase> const phrases{{2, 7}, {5, 6}, {5, 8}, {9}};
  Forbidden const rule(phrases);
  CHECK(rule.phrases() == phrases);
  auto const sorted = [](Text tokens) {
    std::sort(tokens.begin(), tokens.end());
    return tokens;
  };
  CHECK(sorted(forbidden_by(rule, {})) == Text{7, 9});  // bos is the first token of one
  CHECK(sorted(forbidden_by(rule, {5})) == Text{6, 8, 9});
  CHECK(sorted(forbidden_by(rule, {5, 5, 3})) == Text{9});
  auto state = rule.initial({.vocabulary = &usual});
  for (Token const token : {5, 6, 3}) {
    state = rule.next(state, token);
    Text tokens{4}, output{5};
    rule.forbidden(state, tokens);
    CHECK(tokens.front() == 4);  // another rule's edit
    CHECK(sorted({tokens.begin() + 1, tokens.end()}) == (token == 5 ? Text{6, 8, 9} : Text{9}));
    CHECK(rule.dead(state) == (token == 6));
    CHECK((rule.complete(state) && rule.progress(state) == 0 && rule.total() == 0));
  }
  refused_at_begin(Forbidden({{5}, {}}), "forbidden[1]");
  refused_at_begin(Forbidden({{20}, {5}}), "forbidden[0]");
  refused_at_begin(Forbidden(std::vector<Phrase>{{5}, {5, 1, 5}}, "bad_words"), "bad_words[1]");
  refused_at_begin(Forbidden({{5, 2}}), "forbidden[0]");
}

TEST_CASE("breakers may be many, alike and long", "[dry]") {
  std::vector<Text> const many(40, Text{0, 4});
  SequenceBreakers const alike(many);
  Text const text{5, 0, 4, 6};
  CHECK(alike.behind(detail::RecentTokens({}, text, -1), 2) == 1);
  CHECK(alike.behind(detail::RecentTokens({}, text, -1), 1) == -1);
  CHECK_FALSE(alike.contains(0));
  SequenceBreakers const zero(std::vector<Text>{{0}});
  CHECK((zero.contains(0) && !zero.contains(1)));

  // Of a text 40 bytes count, and of the rest after a token's part of it 20 tokens.
  auto const forty = std::string(40, 'x');
  TokenBytes const bytes(std::vector<std::string>{"ax", forty, forty.substr(1), "b"});
  auto const each_byte = [](std::string_view rest) { return Text(rest.size(), 3); };
  auto const found = SequenceBreakers::from_text(bytes, std::vector<std::string>{forty + "yz", "a"}, each_byte);
  CHECK((found.contains(1) && found.contains(0) && !found.contains(2)));  // "a" is in token 0
  auto const rest = SequenceBreakers::from_text(bytes, std::vector<std::string>{forty}, each_byte);
  for (std::size_t n = 19; n <= 21; ++n) {
    Text spelt{0};  // "ax", and then the remaining x, one by one
    spelt.insert(spelt.end(), n, 3);
    CHECK(rest.behind(detail::RecentTokens({}, spelt, -1), n) == (n < 20 ? -1 : static_cast<std::ptrdiff_t>(n) - 20));
  }
}
