// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rules of a grammar before it is compiled, and how a JSON schema is read into them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/utf8.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Limits on the size of a grammar.
struct GrammarLimits {
  std::size_t text = std::size_t{4} << 20;  ///< bytes of source
  std::int32_t nesting = 200;               ///< of groups, of values in a schema
  std::int32_t repetition = 1'000'000'000;  ///< of {m,n}, minItems and the like
  std::int32_t size = 2'000'000;            ///< places in the rules, of some 40 bytes; a repetition {m,n} counts once

  void check() const {
    require(nesting >= 1 && nesting <= 1000, "limits.nesting", nesting, "must be between 1 and 1000");
    require(repetition >= 0, "limits.repetition", repetition, "must not be negative");
    require(size >= 1 && size <= 1 << 27, "limits.size", size, "must be between 1 and 2^27");
  }
};

namespace detail {

class Automaton;

/// A deterministic automaton over bytes. It begins in state 0; edges of a state are sorted and disjoint.
struct ByteAutomaton {
  struct Edge {
    std::uint8_t first, last;  // bytes
    std::int32_t to;
  };
  struct State {
    std::int32_t first_edge = 0, edges = 0;
    bool accepts = false;
  };
  std::vector<State> states;
  std::vector<Edge> edges;
  std::int32_t most = -1;       // characters of a text; -1: any number
  std::int32_t characters = 0;  // with `most`: the states before this one are between characters, others within one
  std::string tokens{};  // what `most` counts is whole tokens, wherever they end: for messages; empty: characters
};

/// One token out of a set, whatever its bytes are. The set is known when a vocabulary is.
struct TokenTerminal {
  std::string written{};                                        // as the source has it, for messages
  std::vector<std::string> names{};                             // of tokens
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges{};  // first and last
  bool complement = false;                                      // any token but these, but not one that ends the output
  bool optional = false;                                        // no token, if the vocabulary lacks the name
};

/// Rules and their expressions over bytes: parsers write them and compile() reads them. Expressions are referred to by
/// number.
class Expressions {
 public:
  using Id = std::int32_t;
  enum class Kind : std::uint8_t { nothing, bytes, sequence, choice, repeat, call, automaton, token };
  struct Expression {
    Kind kind = Kind::nothing;
    ByteRange range{};                       // bytes
    std::int32_t first = 0, count = 0;       // of the parts; a repeat has one
    std::int32_t minimum = 0, maximum = -1;  // for repeat; -1: any number
    std::int32_t rule = 0;                   // for call; the number of an automaton or a terminal
  };
  struct Rule {
    std::string name;
    Id expression = -1;                        // -1: undefined
    std::size_t place = 0;                     // position in the source
    std::shared_ptr<Automaton const> other{};  // its texts, compiled before; then there is no expression
    bool captured = false;
    std::string capture{};            // its name; empty: what is ignored, and left out at the ends of others
    std::int32_t capture_suffix = 0;  // bytes at its end that are left out
    bool defined() const { return expression >= 0 || other != nullptr; }
  };

  explicit Expressions(GrammarLimits limits) : limits_(limits) { bytes_.fill(-1); }

  /// Matches no text, not even the empty one.
  SLUICE_LAZY Id nothing() { return add({}); }
  SLUICE_LAZY Id empty() { return sequence({}); }
  SLUICE_LAZY Id byte(std::uint8_t first, std::uint8_t last) {
    return add({.kind = Kind::bytes, .range = {first, last}});
  }
  SLUICE_LAZY Id text(std::string_view bytes) {
    std::vector<Id> parts;
    parts.reserve(bytes.size());
    for (auto const c : bytes) parts.push_back(letter(c));
    return sequence(parts);
  }
  /// One byte of a text; always the same expression.
  SLUICE_LAZY Id letter(char c) {
    auto const one = static_cast<std::uint8_t>(c);
    auto& known = bytes_[one];
    if (known < 0) known = byte(one, one);
    return known;
  }
  /// One character, as UTF-8.
  SLUICE_LAZY Id characters(std::vector<CharacterRange> ranges) {
    normalise(ranges);
    std::vector<Id> choices, parts;
    for (auto const range : ranges)
      for_each_utf8_sequence(range, [&](std::span<ByteRange const> bytes) {
        parts.clear();
        for (auto const b : bytes) parts.push_back(byte(b.first, b.last));
        choices.push_back(sequence(parts));
      });
    return choice(choices);
  }
  SLUICE_LAZY Id sequence(std::span<Id const> parts) {
    return parts.size() == 1 ? parts[0] : add_parts(Kind::sequence, parts);
  }
  SLUICE_LAZY Id choice(std::span<Id const> parts) {
    return parts.empty() ? nothing() : parts.size() == 1 ? parts[0] : add_parts(Kind::choice, parts);
  }
  SLUICE_LAZY Id sequence(std::initializer_list<Id> parts) { return sequence(std::span(parts.begin(), parts.size())); }
  SLUICE_LAZY Id choice(std::initializer_list<Id> parts) { return choice(std::span(parts.begin(), parts.size())); }
  /// \param maximum  -1: any number
  SLUICE_LAZY Id repeat(Id part, std::int32_t minimum, std::int32_t maximum) {
    auto const id = add_parts(Kind::repeat, {&part, 1});
    all_[index(id)].minimum = minimum, all_[index(id)].maximum = maximum;
    return id;
  }
  SLUICE_LAZY Id optional(Id part) { return repeat(part, 0, 1); }
  SLUICE_LAZY Id call(std::int32_t rule) { return add({.kind = Kind::call, .rule = rule}); }
  /// A text that the automaton accepts. \param automaton  with at least one state
  SLUICE_LAZY Id automaton(ByteAutomaton automaton) {
    auto const states = static_cast<std::int64_t>(automaton.states.size());
    require(states <= limits_.size, "limits.size", limits_.size, "the grammar has more places than that");
    automata_.push_back(std::move(automaton));
    return add({.kind = Kind::automaton, .rule = static_cast<std::int32_t>(automata_.size()) - 1});
  }

  SLUICE_LAZY Id token(TokenTerminal terminal) {
    terminals_.push_back(std::move(terminal));
    return add({.kind = Kind::token, .rule = static_cast<std::int32_t>(terminals_.size()) - 1});
  }

  SLUICE_LAZY std::int32_t add_rule(std::string name) {
    rules.push_back({std::move(name)});
    return static_cast<std::int32_t>(rules.size()) - 1;
  }

  /// A rule that was compiled before. \param other  null: any text
  template <class Other>
  std::int32_t add_rule(std::string name, std::shared_ptr<Other const> other) {
    for (auto const& rule : rules) require(rule.name != name, "grammars", name, "comes twice");
    require(other == nullptr || !other->behind_space, "grammars", name,
            "is behind a space: it cannot be part of others");
    auto const rule = add_rule(std::move(name));
    if (other == nullptr) rules.back().expression = repeat(byte(0, 255), 0, -1);
    rules.back().other = std::move(other);
    return rule;
  }

  /// Takes over the rules of others; returns the number to add to theirs.
  SLUICE_LAZY std::int32_t include(Expressions const& other) {
    require(std::int64_t{size()} + other.size() <= limits_.size, "limits.size", limits_.size,
            "the grammar has more places than that");
    auto const ids = size(), parts = static_cast<std::int32_t>(parts_.size());
    auto const automata = static_cast<std::int32_t>(automata_.size());
    auto const terminals = static_cast<std::int32_t>(terminals_.size()),
               first = static_cast<std::int32_t>(rules.size());
    for (auto one : other.all_) {
      one.first += parts;
      if (one.kind == Kind::call) one.rule += first;
      if (one.kind == Kind::automaton) one.rule += automata;
      if (one.kind == Kind::token) one.rule += terminals;
      all_.push_back(one);
    }
    parts_.reserve(parts_.size() + other.parts_.size());
    for (auto const part : other.parts_) parts_.push_back(part + ids);
    automata_.insert(automata_.end(), other.automata_.begin(), other.automata_.end());
    terminals_.insert(terminals_.end(), other.terminals_.begin(), other.terminals_.end());
    for (auto const& rule : other.rules) {
      rules.push_back(rule);
      if (rule.expression >= 0) rules.back().expression += ids;
    }
    return first;
  }

  Expression const& operator[](Id id) const { return all_[index(id)]; }
  SLUICE_LAZY std::span<Id const> parts(Id id) const {
    auto const& e = all_[index(id)];
    return std::span(parts_).subspan(index(e.first), index(e.count));
  }
  /// Of an expression of kind `automaton`.
  ByteAutomaton const& automaton_of(Expression const& e) const { return automata_[index(e.rule)]; }
  std::vector<TokenTerminal> const& terminals() const { return terminals_; }
  std::int32_t size() const { return static_cast<std::int32_t>(all_.size()); }
  GrammarLimits const& limits() const { return limits_; }

  std::vector<Rule> rules;
  std::string_view source{};  // of the rules, for messages; empty: the rules are generated

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  SLUICE_LAZY Id add(Expression e) {
    require(size() < limits_.size, "limits.size", limits_.size, "the grammar has more places than that");
    all_.push_back(e);
    return size() - 1;
  }
  SLUICE_LAZY Id add_parts(Kind kind, std::span<Id const> parts) {
    auto const first = static_cast<std::int32_t>(parts_.size());
    auto const id = add({.kind = kind, .first = first, .count = static_cast<std::int32_t>(parts.size())});
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    return id;
  }

  GrammarLimits limits_;
  std::vector<Expression> all_;
  std::vector<Id> parts_;
  std::array<Id, 256> bytes_{};  // of texts; -1: not yet made
  std::vector<ByteAutomaton> automata_;
  std::vector<TokenTerminal> terminals_;
};

}  // namespace detail

/// In which order the members of an object come.
enum class JsonOrder : std::uint8_t {
  schema,  ///< that of the schema; other members come last
  any  ///< any, as far as that takes few states: with up to 10 required members (10 members, where minProperties and
       ///< the like count them, 6 in const and enum), otherwise as `schema`
};

/// Which characters of strings that a schema constrains may be written as escapes.
enum class JsonEscapes : std::uint8_t {
  usual,  ///< those that must be, and /, <, >, &, ' and all beyond ASCII, as writers of JSON do it
  any     ///< all, such as \\u0061 for a
};

/// Options for reading a JSON schema.
struct JsonSchemaOptions {
  std::int32_t white_space = 0;  ///< maximum number of white-space characters wherever JSON allows white space; 0:
                                 ///< compact; -1: any number
  bool tidy =
      false;  ///< white space only where writers put it: behind brackets, commas and colons, and before a closing
              ///< bracket; one space, or a new line and spaces or tabs
  std::int32_t indent =
      -1;  ///< not -1: lines as `json.dumps(value, indent=N)` writes them: N blanks a level, one element
           ///< or member a line, ": " unless `key_separator` says otherwise; nothing deeper than 24
           ///< levels, and no other white space
  GrammarLimits limits{};
  std::string item_separator = ",";  ///< a comma, with white space that must be written; `white_space` comes on top
  std::string key_separator = ":";   ///< a colon, in the same way
  JsonOrder order = JsonOrder::any;
  JsonEscapes escapes = JsonEscapes::usual;
  bool plain_numbers =
      false;                ///< numbers as most models write them: without exponents, and without zeros at the end of a
                            ///< fraction; else equal numbers are accepted however they are written (5, 5.00, 50e-1)
  std::int32_t digits = 0;  ///< numbers that the schema leaves open have at most so many digits before the point, and
                            ///< all numbers behind it; 0: any number. Models that ramble write digits without end
  std::int32_t characters = 0;  ///< strings, and names, that the schema leaves open have at most so many; 0: any number
  bool lenient = false;  ///< ignore keywords that constrain and are not supported, instead of refusing the schema
};

/// How JSON is written within tags and tool calls: as models write it, with white space where writers put it.
inline JsonSchemaOptions tag_json() {
  return {.white_space = 21, .tidy = true, .order = JsonOrder::schema, .plain_numbers = true};
}

}  // namespace sluice::inline v0
