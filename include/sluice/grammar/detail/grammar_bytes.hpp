// SPDX-License-Identifier: Apache-2.0
/// \file
/// A compiled grammar as bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/file_words.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/automaton_check.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

// The format, version 1. All numbers are little-endian.
//
//   8 bytes   "SLUICEGR"
//   uint32    version
//   uint32    1: a grammar follows; 0: it allows any text
//   uint64    bytes of the file, a multiple of 64
//   24 bytes  0
//   uint64    hash of everything after the first 64 bytes
//   uint64    hash of the first 56 bytes
//   what was ignored: a list of texts
//   the members of an Automaton, in the order in which GrammarBytes::members() names them, without its classes
//
// A list is a uint32, its length, and its elements; their members are int32 each, those of a byte together in one. A text
// is its length in bytes, and the bytes, with zeros up to a multiple of 4. Zeros follow the end.

constexpr char grammar_magic[] = "SLUICEGR";
constexpr std::uint32_t grammar_version = 1;
constexpr std::size_t grammar_head = 64;

/// Names what is stored to a writer or a reader, both of which have number(int32&), text(string&) and list(vector&, least
/// words of an element, take).
struct GrammarBytes {
  template <class File, class Strings>
  static void strings(File& file, Strings& all) {
    file.list(all, 1, [&](auto& one) { file.text(one); });
  }
  template <class File, class A>
  static void members(File& file, A& a) {
    auto const whole = [&](auto& one) { file.number(one); };
    file.list(a.places, 5, [&](auto& one) {
      file.bytes(one.kind, one.low, one.high);
      file.number(one.to), file.number(one.first), file.number(one.count), file.number(one.within);
    });
    file.list(a.targets, 1, whole);
    file.list(a.edges, 2, [&](auto& one) { file.bytes(one.first, one.last), file.number(one.to); });
    file.list(a.loops, 6, [&](auto& one) {
      file.number(one.body), file.number(one.to), file.number(one.minimum), file.number(one.maximum);
      file.number(one.again), file.number(one.reach);
    });
    file.list(a.left, 1, whole);
    file.list(a.texts, 2, [&](auto& one) { file.number(one.first), file.number(one.count); });
    file.list(a.token_places, 3,
              [&](auto& one) { file.number(one.place), file.number(one.terminal), file.number(one.to); });
    file.list(a.token_texts, 4, [&](auto& one) {
      file.number(one.place), file.number(one.count), file.number(one.loop), file.text(one.written);
    });
    file.list(a.terminals, 4, [&](auto& one) {
      file.text(one.written), strings(file, one.names);
      file.list(one.ranges, 2, [&](auto& range) { file.number(range.first), file.number(range.second); });
      file.bytes(one.complement, one.optional);
    });
    file.list(a.start, 1, whole), file.list(a.rank, 1, whole);
    file.list(a.nullable, 1, [&](auto& one) { file.bytes(one); });
    file.list(a.captures, 3, [&](auto& one) { file.number(one.rule), file.number(one.suffix), file.text(one.name); });
    file.number(a.root), file.bytes(a.behind_space);
  }
};

class GrammarWriter {
 public:
  /// \param automaton  null: any text
  SLUICE_LAZY static std::vector<std::byte> write(Automaton const* automaton, std::vector<std::string> const& ignored) {
    GrammarWriter file;
    file.to_.resize(grammar_head);
    GrammarBytes::strings(file, ignored);
    if (automaton != nullptr) GrammarBytes::members(file, *automaton);
    auto& all = file.to_;
    all.resize(aligned_64(all.size()));
    std::memcpy(all.data(), grammar_magic, 8);
    store_little(all.data() + 8, grammar_version);
    store_little(all.data() + 12, std::uint32_t{automaton != nullptr});
    store_little(all.data() + 16, std::uint64_t{all.size()});
    store_little(all.data() + 48, hash_words(std::span<std::byte const>(all).subspan(grammar_head)));
    store_little(all.data() + 56, hash_words(std::span<std::byte const>(all).first(56)));
    return std::move(all);
  }

  SLUICE_LAZY void number(std::int32_t number) {
    to_.resize(to_.size() + 4);
    store_little(to_.data() + to_.size() - 4, static_cast<std::uint32_t>(number));
  }
  template <class... Bytes>
  void bytes(Bytes... all) {
    std::uint32_t word = 0, shift = 0;
    ((word |= static_cast<std::uint32_t>(all) << shift, shift += 8), ...);
    number(static_cast<std::int32_t>(word));
  }
  SLUICE_LAZY void text(std::string const& text) {
    number(static_cast<std::int32_t>(text.size()));
    auto const at = to_.size();
    to_.resize(at + (text.size() + 3) / 4 * 4);
    std::ranges::transform(text, to_.begin() + static_cast<std::ptrdiff_t>(at),
                           [](char c) { return static_cast<std::byte>(c); });
  }
  template <class List, class Take>
  void list(List const& all, std::size_t words, Take const& take) {
    number(static_cast<std::int32_t>(all.size()));
    to_.reserve(to_.size() + all.size() * words * 4);
    for (auto const& one : all) take(one);
  }

 private:
  std::vector<std::byte> to_;
};

class GrammarReader {
 public:
  /// \returns  null: any text; and what was ignored
  /// \throws std::runtime_error  for bytes that are cut off, damaged, of another version, or no grammar
  SLUICE_LAZY static std::pair<std::shared_ptr<Automaton const>, std::vector<std::string>>
  read(std::span<std::byte const> bytes) {
    auto const present = check_head(bytes);
    GrammarReader file(bytes.subspan(grammar_head));
    std::vector<std::string> ignored;
    GrammarBytes::strings(file, ignored);
    auto made = present ? std::make_shared<Automaton>() : nullptr;
    if (present) GrammarBytes::members(file, *made);
    if (file.from_.size() >= 64 || std::ranges::any_of(file.from_, [](std::byte b) { return b != std::byte{0}; }))
      fail_grammar("something follows the end");
    if (!present) return {nullptr, std::move(ignored)};
    AutomatonCheck::all(*made);
    made->classify();
    return {std::move(made), std::move(ignored)};
  }

  SLUICE_LAZY void number(std::int32_t& number) { number = static_cast<std::int32_t>(word()); }
  template <class... Bytes>
  void bytes(Bytes&... all) {
    auto rest = word();
    auto const take = [&](auto& one) {
      using Byte = std::remove_cvref_t<decltype(one)>;
      auto const byte = rest % 256;
      if (std::is_same_v<Byte, bool> && byte > 1) fail_grammar(std::to_string(byte) + " is no truth value");
      one = static_cast<Byte>(byte), rest /= 256;
    };
    (take(all), ...);
    if (rest != 0) fail_grammar("a byte is larger than 255");
  }
  SLUICE_LAZY void text(std::string& text) {
    auto const size = std::size_t{word()}, padded = (size + 3) / 4 * 4;
    if (padded > from_.size()) cut();
    text.resize(size);
    std::ranges::transform(from_.first(size), text.begin(),
                           [](std::byte b) { return static_cast<char>(std::to_integer<unsigned char>(b)); });
    from_ = from_.subspan(padded);
  }
  template <class List, class Take>
  void list(List& all, std::size_t words, Take const& take) {
    auto const size = std::size_t{word()};
    if (size > from_.size() / 4 / words) cut();
    all.resize(size);
    for (auto& one : all) take(one);
  }

 private:
  explicit GrammarReader(std::span<std::byte const> bytes) : from_(bytes) {}
  [[noreturn]] static void cut() { fail_grammar("a list is longer than the grammar"); }

  /// \returns  whether it is not any text
  SLUICE_LAZY static bool check_head(std::span<std::byte const> bytes) {
    if (bytes.empty()) fail_grammar("there is nothing to read");
    if (std::memcmp(bytes.data(), grammar_magic, (std::min<std::size_t>)(bytes.size(), 8)) != 0)
      fail_grammar("these bytes are no compiled grammar");
    auto const cut_off = [&] { fail_grammar("cut off after " + std::to_string(bytes.size()) + " bytes"); };
    if (bytes.size() < grammar_head) cut_off();
    auto const* const from = bytes.data();
    if (auto const version = load_little<std::uint32_t>(from + 8); version != grammar_version)
      fail_grammar("version " + std::to_string(version) + " of the format is unknown; only 1 is known");
    if (load_little<std::uint64_t>(from + 56) != hash_words(bytes.first(56)))
      fail_grammar("damaged: the checksum of the head is wrong");
    auto const size = load_little<std::uint64_t>(from + 16);
    if (size > bytes.size()) cut_off();
    if (size < bytes.size()) fail_grammar("something follows the end");
    if (size % 64 != 0) fail_grammar(std::to_string(size) + " bytes are no multiple of 64");
    if (load_little<std::uint64_t>(from + 48) != hash_words(bytes.subspan(grammar_head)))
      fail_grammar("damaged: the checksum is wrong");
    auto const present = load_little<std::uint32_t>(from + 12);
    if (present > 1) fail_grammar(std::to_string(present) + " is no kind of grammar");
    for (std::size_t i = 24; i < 48; ++i)
      if (from[i] != std::byte{0}) fail_grammar("the head has more than is known");
    return present == 1;
  }
  SLUICE_LAZY std::uint32_t word() {
    if (from_.size() < 4) fail_grammar("it ends too early");
    auto const out = load_little<std::uint32_t>(from_.data());
    from_ = from_.subspan(4);
    return out;
  }

  std::span<std::byte const> from_;
};

}  // namespace sluice::inline v0::detail
