// SPDX-License-Identifier: Apache-2.0
// Texts as tokens; the first byte says which: strings that end an output, SentencePiece's pieces of a text, its text of any pieces.
#include <sluice/core/result.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include <fuzz/demand.hpp>
#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

struct Cut {
  std::size_t stop, begin, end;
};

/// What ends a text first, if only its last token is new: the end counts, then the longest, then the lowest.
inline std::optional<Cut> first_stop(std::string_view text, std::size_t last, std::span<std::string const> stops) {
  std::optional<Cut> best;
  for (std::size_t i = 0; i < stops.size(); ++i)
    for (auto at = text.find(stops[i]); at != text.npos; at = text.find(stops[i], at + 1)) {
      auto const end = at + stops[i].size();
      if (end <= last) continue;
      if (!best || end < best->end || (end == best->end && at < best->begin)) best = Cut{i, at, end};
    }
  return best;
}

/// The first line's bytes are the tokens' lengths (0: a mark), the last line is the output, those between are stops.
inline void stops(std::string_view text) {
  std::vector<std::string> lines(1);
  for (auto const c : text)
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
  if (lines.size() < 2 || lines[0].empty()) return;
  auto const lengths = lines.front(), output = lines.back();
  std::vector<std::string> strings(lines.begin() + 1, lines.end() - 1), chunks;
  std::erase(strings, "");
  for (std::size_t at = 0, marks = 0, i = 0; at < output.size() && marks < 20; ++i) {
    auto const length = static_cast<unsigned char>(lengths[i % lengths.size()]) % 6u;
    chunks.push_back(output.substr(at, length));
    at += chunks.back().size(), marks += chunks.back().empty();
  }

  if (chunks.empty()) return;
  StopSequences const rule({.strings = strings, .bytes = TokenBytes(chunks)});
  Vocabulary const vocabulary{.size = static_cast<Token>(chunks.size()) + 1,
                              .eos = {static_cast<Token>(chunks.size())}};
  for (auto const kept : {IncludeStop::no, IncludeStop::yes}) {
    TextStream stream(rule, kept);
    StopSequences::State state;
    Hypothesis hypothesis;
    std::string shown, all, expected;
    for (Token token = 0; token < std::ssize(chunks) && hypothesis.stop < 0; ++token) {
      auto const last = all.size();
      all += chunks[static_cast<std::size_t>(token)];
      hypothesis.tokens.push_back(token);
      state = rule.next(state, token);
      hypothesis.stop = rule.stop(state, {hypothesis.tokens, 0, vocabulary});
      auto const cut = first_stop(all, last, strings);
      demand((hypothesis.stop >= 0) == cut.has_value(), "a stop that is none, or none where there is one", text);
      expected = all;
      if (cut) {
        demand(strings[static_cast<std::size_t>(hypothesis.stop)] == strings[cut->stop], "another stop", text);
        expected.resize(kept == IncludeStop::no ? cut->begin : cut->end);
      }
      shown += stream.append({&hypothesis.tokens.back(), 1});
    }
    demand(rule.text(hypothesis, kept) == expected, "another text", text);
    demand(expected.starts_with(shown), "shown what is not there", text);
    demand(shown + stream.end(hypothesis) == expected, "the pieces are not the text", text);
  }
}

/// The shipped model.
inline translate::Tokenizer const& tokenizer() {
  static translate::Tokenizer const one(SLUICE_SOURCE_DIR "/examples/apps/translate/model/spm.model");
  return one;
}

inline void pieces(std::string_view text) {
  auto const tokens = tokenizer().encode(text);
  for (auto const token : tokens) demand(token >= 0 && token < tokenizer().size(), "a token that there is not", text);
  auto const decoded = tokenizer().decode(tokens);
  demand(text::valid_utf8(decoded), "what is decoded is not UTF-8", text);
  // Of other bytes SentencePiece makes what it likes.
  auto const plain = text::valid_utf8(text) && std::ranges::none_of(text, [](char c) { return c >= 0 && c < ' '; }) &&
                     std::ranges::find(tokens, tokenizer().unk()) == tokens.end();
  demand(!plain || tokenizer().normal(text) == decoded, "normal text is not what is decoded", text);
  demand(!plain || tokenizer().encode(decoded) == tokens, "what is decoded has other pieces", text);
  auto const inside = tokenizer().encode_inside(text);
  for (auto const token : inside) demand(token >= 0 && token < tokenizer().size(), "a token that there is not", text);
}

/// Two bytes a token.
inline void any_pieces(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    tokens.push_back((static_cast<unsigned char>(text[i]) << 8 | static_cast<unsigned char>(text[i + 1])) %
                     tokenizer().size());
  auto const whole = tokenizer().decode(tokens);
  demand(text::valid_utf8(whole), "what is decoded is not UTF-8", text);
  demand(whole.find('\n') == whole.npos, "more than a line", text);
  static auto const bytes = tokenizer().bytes();
  for (auto const token : tokens)
    if (bytes.bytes(token).empty() && !tokenizer().text(token).empty()) return;  // what it says that it leaves out
  // A mark between two bytes of a character parts them for SentencePiece.
  std::erase_if(tokens, [](Token token) { return bytes.bytes(token).empty(); });
  auto all = bytes.text(tokens);
  all.erase(0, all.find_first_not_of(' '));  // the space before the first word; SentencePiece takes away more of them
  demand(!text::valid_utf8(all) || all == tokenizer().decode(tokens),
         "tokens write one by one what they do not write together", text);
}

}  // namespace sluice::test

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice::test;
  if (size == 0) return 0;
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  switch (data[0]) {
    case 's': stops(text); break;
    case 'p': pieces(text); break;
    case 'd': any_pieces(text); break;
    default: return -1;  // not to be kept
  }
  return 0;
}
