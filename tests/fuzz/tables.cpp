// SPDX-License-Identifier: Apache-2.0
// Tables that the library writes, and reads again; the first byte says which. 'a': a text as ARPA. 't': sentences to train n-grams of.
// 'b': a mapped file of n-grams, whose lengths and checksums are made right. 'c': sequences of tokens for a catalogue.
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include <fuzz/demand.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace sluice;
using test::demand;

bool same(std::span<std::byte const> a, std::span<std::byte const> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Some probabilities are numbers.
void walk(NGramTable const& table) {
  auto state = table.start();
  double sum = 0;
  for (Word i = 0; i < 40; ++i) {
    sum += static_cast<double>(table.advance(state, i * 7 % (table.size() + 1)));
    table.line(
        state, [&](float x) { sum += static_cast<double>(x); },
        [&](Word word, float x) { sum += static_cast<double>(x) + static_cast<double>(word); });
  }
  demand(std::isfinite(sum), "a probability that is no number");
}

/// What write_arpa() writes is read again.
/// \returns  whether it was written
bool round_trip(NGramTable const& table, bool exactly) {
  std::stringstream text;
  try {
    write_arpa(table, text);
  } catch (std::invalid_argument const& e) {
    demand(text.str().empty(), "something was written before it was refused", text.str());
    demand(std::string_view(e.what()).starts_with("sluice: write_arpa: "), "a message that does not say of what",
           e.what());
    return false;
  }
  auto const once = text.str();
  try {
    auto const again = read_arpa(text);
    demand(!exactly || same(again.bytes(), table.bytes()), "n-grams that are read are not those that were written",
           once);
    std::ostringstream twice;
    write_arpa(again, twice);
    demand(!exactly || twice.str() == once, "n-grams are written in two ways", once);
  } catch (std::runtime_error const& e) {
    demand(false, e.what(), once);
  }
  return true;
}

void arpa(std::string_view text) {
  try {
    std::istringstream stream{std::string(text)};
    auto const table = read_arpa(stream, {.unknown = -3});
    walk(table);
    // "a\rb" and "a\0b" are words to the reader, and none to others
    demand(round_trip(table, true) || text.find_first_of(std::string_view("\r\0", 2)) != std::string_view::npos,
           "what is read cannot be written", text);
    demand(same(NGramTable::from_bytes(table.bytes()).bytes(), table.bytes()), "bytes that are others");
    auto const coded = quantise(table);
    walk(coded);
    round_trip(coded, false);
  } catch (std::runtime_error const& e) {
    std::string_view const what = e.what();
    demand(what.starts_with("arpa: line ") || what.starts_with("arpa: \\1-grams: "), "a message without its line",
           what);
  }
}

/// A sentence for each line, with ; between words, which may hold anything else.
void trained(std::string_view text) {
  if (text.empty()) return;
  NGramTrainer trainer({.order = 1 + static_cast<unsigned char>(text.front()) % 4, .fallback = true});
  text.remove_prefix(1);
  std::set<std::string_view> words;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::vector<std::string_view> sentence;
    for (auto more = true; more;) {
      auto const end = std::min(line.find(';'), line.size());
      more = end < line.size();
      sentence.push_back(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    try {
      trainer.add(sentence);
      words.insert(sentence.begin(), sentence.end());
    } catch (std::invalid_argument const&) {  // <s> or </s> within it
    }
  }
  if (words.empty()) return;
  auto const table = trainer.build();
  walk(table);
  auto const writable = std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return !word.empty() && word != "<UNK>" &&
           word.find_first_of(std::string_view(" \t\r\0", 4)) == std::string_view::npos;
  });
  demand(round_trip(table, true) == writable, "words that ARPA holds are refused, or others taken");
}

void mapped(std::string_view text) {
  auto const bytes = std::as_bytes(std::span(text));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  file.resize(std::max<std::size_t>((file.size() + 63) / 64 * 64, sluice::detail::ngram_head));
  std::memcpy(file.data(), sluice::detail::ngram_magic, 8);
  auto const put = [&](std::size_t at, auto number) { std::memcpy(file.data() + at, &number, sizeof number); };
  put(8, sluice::detail::ngram_version), put(16, static_cast<std::uint64_t>(file.size()));
  sluice::detail::seal_ngrams(file);
  try {
    auto const table = NGramTable::from_bytes(file);
    auto state = table.start();
    for (Word i = 0; i < 20; ++i) (void)table.advance(state, i % (table.size() + 1));
    round_trip(table, false);
  } catch (std::runtime_error const& e) {
    demand(std::string_view(e.what()).starts_with("n-grams: "), "a message that does not say of what", e.what());
  }
}

/// Bytes are tokens, 255 ends a sequence.
void catalogue(std::string_view text) {
  CatalogueBuilder builder{Duplicates::count};
  std::set<std::vector<Token>> sequences;
  std::vector<Token> sequence;
  for (auto const c : text) {
    auto const token = static_cast<unsigned char>(c);
    if (token != 255) sequence.push_back(token * 1001);
    else if (!sequence.empty()) builder.add(sequence), sequences.insert(sequence), sequence.clear();
  }
  if (sequences.empty()) return;
  auto const built = builder.build();
  std::stringstream stream;
  built.write(stream);
  auto const file = stream.str();
  auto const read = Catalogue::from_bytes(std::as_bytes(std::span(file.data(), file.size())), CatalogueCheck::all);
  demand(static_cast<std::size_t>(read.size()) == sequences.size(), "another number of items than were written");
  Item item = 0;
  for (auto const& one : sequences) demand(read.tokens(item) == one && read.find(one) == item, "another item"), ++item;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a': arpa(text); break;
    case 't': trained(text); break;
    case 'b': mapped(text); break;
    case 'c': catalogue(text); break;
    default: return -1;  // not to be kept
  }
  return 0;
}
