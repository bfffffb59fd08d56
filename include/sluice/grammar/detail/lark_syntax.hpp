// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grammars in Lark's syntax, read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/gbnf_elements.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// What stands in brackets behind the name of a rule.
struct LarkAttributes {
  bool lazy = false;
  std::int32_t suffix = -1, stop = -1;                // nodes
  std::int32_t max_tokens = -1, max_characters = -1;  // -1: any number
  bool captured = false;
  std::string capture{};  // empty: the name of the rule
  /// Whether the rule must be a set of texts.
  bool regular() const { return lazy || suffix >= 0 || stop >= 0 || max_tokens >= 0 || max_characters >= 0; }
};

/// What a grammar in Lark's syntax says. Nodes refer to each other by number.
struct LarkGrammar {
  enum class Kind : std::uint8_t {
    text,
    regex,
    range,
    name,
    sequence,
    choice,
    repeat,
    both,
    but,
    token,
    json,
    parts,
    grammar
  };
  struct Node {
    Kind kind = Kind::sequence;
    std::size_t place = 0;
    std::string text{};                      // text, regex, name, grammar; json: the schema
    std::string flags{};                     // text: i or none; regex
    std::vector<std::int32_t> parts{};       // of sequence, choice, both; one of repeat and but
    std::int32_t minimum = 0, maximum = -1;  // repeat
    char32_t first = 0, last = 0;            // range
    TokenTerminal token{};
    std::vector<std::string> chunks{};  // parts: any neighbours of these
  };
  struct Definition {
    std::string name;
    std::size_t place = 0;
    std::int32_t body = -1;
    LarkAttributes attributes{};
  };
  std::vector<Node> nodes{};
  std::vector<Definition> definitions{};
  std::unordered_map<std::string, std::int32_t> numbers{};  // of definitions
  std::vector<std::int32_t> ignored{};
  bool ignore_once = false, ignore_first = false;

  Node const& operator[](std::int32_t i) const { return nodes[static_cast<std::size_t>(i)]; }
  /// Terminals are upper case.
  static bool is_terminal(std::string_view name) {
    auto const first = name.find_first_not_of('_');
    return first != std::string_view::npos && name[first] >= 'A' && name[first] <= 'Z';
  }
};

/// Terminals that can be imported, as Lark's common.lark has them.
inline constexpr std::pair<std::string_view, std::string_view> lark_common[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[a-fA-F0-9]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"_EXP", "[eE][+-]?[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"NUMBER", "[0-9]+([eE][+-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+([eE][+-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", R"("([^"\\\n]|\\[^\n])*")"},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[_A-Za-z][_A-Za-z0-9]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", R"([ \t\f\r\n]+)"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", R"(/\*([^*]|\*+[^*/])*\*+/)"},
    {"SQL_COMMENT", "--[^\\n]*"}};

class LarkReader {
 public:
  /// \throws std::invalid_argument  with line and column
  SLUICE_LAZY static LarkGrammar read(std::string_view text, GrammarLimits const& limits) {
    LarkReader reader(text, limits);
    reader.whole();
    return std::move(reader.out_);
  }

 private:
  using Kind = LarkGrammar::Kind;
  using Node = LarkGrammar::Node;
  LarkReader(std::string_view text, GrammarLimits const& limits) : text_(text), in_("grammar", text, limits) {}

  SLUICE_LAZY void whole() {
    in_.take("\xEF\xBB\xBF");  // a byte order mark
    for (space(true); !in_.end(); space(true)) {
      if (in_.peek() == '%') statement();
      else definition();
      if (!in_.end() && in_.peek() != '\n' && in_.peek() != '\r')
        in_.fail(std::string("expected the end of the line, not ") + in_.peek());
    }
  }

  SLUICE_LAZY std::int32_t add(Node node) {
    out_.nodes.push_back(std::move(node));
    return static_cast<std::int32_t>(out_.nodes.size()) - 1;
  }
  SLUICE_LAZY std::int32_t add(Kind kind, std::size_t place, std::vector<std::int32_t> parts) {
    if (parts.size() == 1 && kind != Kind::but) return parts[0];
    return add({.kind = kind, .place = place, .parts = std::move(parts)});
  }
  /// Skips blanks and comments, and line ends too where they say nothing.
  SLUICE_LAZY void space(bool lines) {
    for (;; in_.skip()) {
      if (in_.peek() == '#' || in_.at("//"))
        while (!in_.end() && in_.peek() != '\n' && in_.peek() != '\r') in_.skip();
      auto const c = in_.peek();
      if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r'))) return;
    }
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }
  SLUICE_LAZY std::string name(std::string_view what) {
    auto const place = in_.place();
    auto out = in_.at_digit() ? std::string() : std::string(in_.take_while(is_word));
    if (out.ends_with('-') && in_.peek() == '>') out.pop_back(), in_.go_to(in_.place() - 1);  // an alias follows
    auto const lower = out.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos;
    auto const upper = out.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos;
    if (out.empty()) in_.fail("expected " + std::string(what));
    if (lower == upper) in_.fail_at(place, out + ": a rule's name is lower case, and a terminal's upper case");
    return out;
  }

  // Statements and definitions.
  SLUICE_LAZY void statement() {
    auto const place = in_.place();
    in_.skip();
    auto const kind = in_.take_while(is_word);
    space(false);
    if (kind == "ignore") out_.ignored.push_back(alternatives(0, false));
    else if (kind == "import") import(place);
    else if (kind == "llguidance") options();
    else
      in_.fail_at(place, "%" + std::string(kind) +
                             " is not supported: expected a rule, a terminal, %ignore, %import or "
                             "%llguidance");
  }
  SLUICE_LAZY void import(std::size_t place) {
    if (!in_.take("common")) in_.fail("expected common: nothing else can be imported");
    space(false);
    auto const one = [&](bool alias) {
      auto const at = in_.place();
      auto const imported = name("the name of a terminal");
      std::string_view pattern;
      std::string all;
      for (auto const& [known, its] : lark_common) {
        if (known == imported) pattern = its;
        all.append(all.empty() ? "" : ", ").append(known);
      }
      if (pattern.empty()) in_.fail_at(at, "common." + imported + " is not known: expected one of " + all);
      space(false);
      auto own = imported;
      if (alias && in_.take("->")) space(false), own = name("a name");
      define(std::move(own), place,
             add({.kind = Kind::regex, .place = place, .text = std::string(pattern), .flags = ""}));
    };
    if (in_.take(".")) one(true);
    else if (in_.take("(")) {
      do space(true), one(false), space(true);
      while (in_.take(","));
      if (!in_.take(")")) in_.fail("expected , or )");
    } else in_.fail("expected . or (");
    space(false);
  }
  SLUICE_LAZY void options() {
    auto const place = in_.place();
    auto const value = JsonReader::parse("%llguidance", json(), in_.limits());
    for (auto const& [option, its] : value.members) {
      if (!its.is(JsonValue::Kind::boolean)) in_.fail_at(place, option + ": must be true or false");
      if (option == "ignore_once") out_.ignore_once = its.truth;
      else if (option == "allow_initial_skip") out_.ignore_first = its.truth;
      else if (option != "no_forcing" && (option != "allow_invalid_utf8" || its.truth))
        in_.fail_at(place, option + " is not supported");
    }
    space(false);
  }
  SLUICE_LAZY void define(std::string name, std::size_t place, std::int32_t body) {
    auto const number = static_cast<std::int32_t>(out_.definitions.size());
    if (!out_.numbers.try_emplace(name, number).second) in_.fail_at(place, name + " is defined twice");
    out_.definitions.push_back({std::move(name), place, body});
  }
  SLUICE_LAZY void definition() {
    auto const place = in_.place();
    while (in_.take("!") || in_.take("?")) continue;  // how trees are made
    auto own = name("a rule, a terminal or a statement");
    auto const terminal = LarkGrammar::is_terminal(own);
    if (in_.at("::") || in_.at("{")) in_.fail("parameters of rules are not supported");
    if (in_.take(".")) {  // a priority, which chooses among readings of one text
      in_.take("-");
      static_cast<void>(in_.count());
    }
    LarkAttributes attributes;
    space(false);
    if (!terminal && in_.take("[")) attributes = read_attributes();
    space(false);
    if (!in_.take(":")) in_.fail("expected :");
    space(false);
    define(std::move(own), place, alternatives(0, false));
    out_.definitions.back().attributes = attributes;
  }
  SLUICE_LAZY LarkAttributes read_attributes() {
    LarkAttributes out;
    do {
      space(true);
      auto const place = in_.place();
      std::string const key(in_.take_while(is_word));
      auto const with = key == "suffix" || key == "stop" || key == "max_tokens" || key == "max_chars";
      space(true);
      if (with && !in_.take("=")) in_.fail("expected =");
      space(true);
      if (key == "lazy") out.lazy = true;
      else if (key == "suffix") out.suffix = atom(0);
      else if (key == "stop") out.stop = atom(0);
      else if (key == "max_tokens") out.max_tokens = in_.count();
      else if (key == "max_chars") out.max_characters = in_.count();
      else if (key == "capture") {
        out.captured = true;
        if (in_.take("=")) {
          space(true);
          if (in_.peek() != '"') in_.fail("expected a name in quotation marks");
          out.capture = string().first;
        }
      } else
        in_.fail_at(place, "[" + key +
                               "] is not supported: expected capture, lazy, suffix=, stop=, max_tokens= or max_chars=");
      if (out.suffix >= 0 && out.stop >= 0) in_.fail_at(place, "[suffix, stop]: a rule ends by one of them");
      space(true);
    } while (in_.take(","));
    if (!in_.take("]")) in_.fail("expected , or ]");
    return out;
  }

  // Bodies.
  SLUICE_LAZY std::int32_t alternatives(std::int32_t nesting, bool nested) {
    auto const place = in_.place();
    if (nesting > in_.limits().nesting)
      in_.fail("groups are nested deeper than limits.nesting = " + std::to_string(in_.limits().nesting));
    std::vector<std::int32_t> choices;
    for (;;) {
      choices.push_back(conjunction(nesting, nested));
      auto const end = in_.place();
      space(true);
      if (!in_.take("|")) {
        in_.go_to(end);
        return add(Kind::choice, place, std::move(choices));
      }
      space(nested);
    }
  }
  SLUICE_LAZY std::int32_t conjunction(std::int32_t nesting, bool nested) {
    auto const place = in_.place();
    std::vector<std::int32_t> parts;
    do space(nested), parts.push_back(sequence(nesting, nested));
    while (in_.take("&"));
    if (in_.take("->")) space(false), static_cast<void>(name("an alias")), space(nested);  // how trees are made
    return add(Kind::both, place, std::move(parts));
  }
  SLUICE_LAZY std::int32_t sequence(std::int32_t nesting, bool nested) {
    auto const place = in_.place();
    std::vector<std::int32_t> parts;
    for (;; space(nested)) {
      auto const c = in_.peek();
      auto const begins = c == '"' || c == '/' || c == '(' || c == '[' || c == '<' || c == '~' || c == '@' ||
                          c == '%' || (is_word(c) && c != '-');
      if (in_.end() || !begins) return add(Kind::sequence, place, std::move(parts));
      parts.push_back(item(nesting));
    }
  }
  SLUICE_LAZY std::int32_t item(std::int32_t nesting) {
    auto const place = in_.place();
    auto const negative = in_.take("~");
    if (negative) space(false);
    auto part = atom(nesting);
    if (negative) part = add(Kind::but, place, {part});
    auto const end = in_.place();
    space(false);
    auto const at = in_.place();
    auto const repeat = [&](std::int32_t minimum, std::int32_t maximum) {
      if (maximum >= 0 && maximum < minimum) in_.fail_at(at, "a repetition of less than its minimum");
      return add({.kind = Kind::repeat, .place = place, .parts = {part}, .minimum = minimum, .maximum = maximum});
    };
    if (in_.take("*")) return repeat(0, -1);
    if (in_.take("+")) return repeat(1, -1);
    if (in_.take("?")) return repeat(0, 1);
    if (in_.take("{")) {
      space(false);
      auto const minimum = in_.peek() == ',' ? 0 : in_.count();
      auto maximum = minimum;
      space(false);
      if (in_.take(",")) space(false), maximum = in_.at_digit() ? in_.count() : -1, space(false);
      if (!in_.take("}")) in_.fail("expected }");
      return repeat(minimum, maximum);
    }
    if (in_.take("~")) {
      space(false);
      if (in_.at_digit()) {
        auto const minimum = in_.count();
        space(false);
        auto const range = in_.take("..");
        if (range) space(false);
        return repeat(minimum, range ? in_.count() : minimum);
      }
    }
    in_.go_to(end);
    return part;
  }

  SLUICE_LAZY std::int32_t atom(std::int32_t nesting) {
    auto const place = in_.place();
    auto const c = in_.peek();
    if (c == '(' || c == '[') {
      in_.skip();
      space(true);
      auto const body = alternatives(nesting + 1, true);
      space(true);
      if (!in_.take(c == '(' ? ")" : "]")) in_.fail(c == '(' ? "expected | or )" : "expected | or ]");
      return c == '(' ? body : add({.kind = Kind::repeat, .place = place, .parts = {body}, .minimum = 0, .maximum = 1});
    }
    if (c == '"') return literal();
    if (c == '/') return regex();
    if (c == '<') return add({.kind = Kind::token, .place = place, .token = read_token(in_)});
    if (in_.take("@"))
      return add({.kind = Kind::grammar, .place = place, .text = std::string(in_.take_while(is_word))});
    if (in_.take("%json")) {
      space(true);
      return add({.kind = Kind::json, .place = in_.place(), .text = std::string(json())});
    }
    if (in_.take("%regex")) return neighbours(place);
    if (c == '%') in_.fail("expected %json or %regex: no other is supported within a rule");
    auto own = name("a name, a text or a regular expression");
    if (in_.at("::") || (in_.at("{") && in_.peek(1) != ',' && (in_.peek(1) < '0' || in_.peek(1) > '9')))
      in_.fail("parameters of rules are not supported");
    return add({.kind = Kind::name, .place = place, .text = std::move(own)});
  }
  /// An object, up to its end.
  SLUICE_LAZY std::string_view json() {
    if (in_.peek() != '{') in_.fail("expected {");
    JsonValue value;
    value.place = in_.place();
    auto const source = json_source(text_, value);
    in_.skip(source.size());
    return source;
  }
  SLUICE_LAZY std::int32_t neighbours(std::size_t place) {
    space(true);
    auto const value = JsonReader::parse("%regex", json(), in_.limits());
    Node node{.kind = Kind::parts, .place = place};
    auto const one = value.members.size() == 1;
    auto const kind = one ? value.members[0].first : std::string();
    auto const of = one ? value.members[0].second : JsonValue();
    auto const words = kind == "substring_words";
    if (kind == "substring_chunks" && of.is(JsonValue::Kind::array))
      for (auto const& item : of.items) node.chunks.push_back(item.text);
    else if ((words || kind == "substring_chars") && of.is(JsonValue::Kind::string))
      for (auto rest = std::string_view(of.text); !rest.empty();) {
        auto const size = (std::max)(read_utf8(rest).second, std::size_t{1});
        auto const in_word = [](char c) { return static_cast<unsigned char>(c) >= 0x80 || (is_word(c) && c != '-'); };
        if (words && !node.chunks.empty() && in_word(rest[0]) && in_word(node.chunks.back()[0]))
          node.chunks.back() += rest.substr(0, size);
        else node.chunks.emplace_back(rest.substr(0, size));
        rest.remove_prefix(size);
      }
    else
      in_.fail_at(place,
                  "expected substring_chunks with an array, substring_words or substring_chars with a string, and no "
                  "other");
    if (node.chunks.size() > 300) in_.fail_at(place, "%regex has more than 300 parts");
    return add(std::move(node));
  }

  SLUICE_LAZY std::int32_t literal() {
    auto const place = in_.place();
    auto const first = string();
    auto const end = in_.place();
    space(false);
    if (!in_.take("..")) {
      in_.go_to(end);
      return add({.kind = Kind::text, .place = place, .text = first.first, .flags = first.second ? "i" : ""});
    }
    space(false);
    auto const from = in_.place();
    if (in_.peek() != '"') in_.fail("expected a character in quotation marks");
    auto const last = string();
    auto const one = [&](std::pair<std::string, bool> const& text, std::size_t at) {
      auto const [c, size] = read_utf8(text.first);
      if (size == 0 || size != text.first.size() || text.second)
        in_.fail_at(at, R"(a range is of characters, such as "a".."z")");
      return c;
    };
    auto const low = one(first, place), high = one(last, from);
    if (high < low) in_.fail_at(place, "a range whose last character comes before its first");
    return add({.kind = Kind::range, .place = place, .first = low, .last = high});
  }
  /// \returns  whether it ignores case, too
  SLUICE_LAZY std::pair<std::string, bool> string() {
    auto const place = in_.place();
    std::string out;
    for (in_.skip(); !in_.take("\"");) {
      if (in_.end() || in_.peek() == '\n') in_.fail_at(place, "expected a \" at the end of the text");
      append_utf8(out, in_.take("\\") ? escape() : in_.character());
    }
    auto const ignore_case = in_.peek() == 'i' && !is_word(in_.peek(1));
    if (ignore_case) in_.skip();
    return {std::move(out), ignore_case};
  }
  SLUICE_LAZY char32_t escape() {
    auto const place = in_.place() - 1;
    auto const c = in_.peek();
    constexpr std::string_view names = "nrtfbv\\\"/'";
    constexpr std::string_view values = "\n\r\t\f\b\v\\\"/'";
    in_.skip();
    if (auto const known = names.find(c); known != std::string_view::npos)
      return static_cast<unsigned char>(values[known]);
    if (c != 'x' && c != 'u' && c != 'U') in_.fail_at(place, "an unknown escape");
    auto const value = in_.hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (value > last_character || is_surrogate(value)) in_.fail_at(place, "is no Unicode character");
    return value;
  }
  SLUICE_LAZY std::int32_t regex() {
    auto const place = in_.place();
    for (in_.skip(); in_.peek() != '/'; in_.skip()) {
      if (in_.peek() == '\\') in_.skip();
      if (in_.end() || in_.peek() == '\n') in_.fail_at(place, "expected a / at the end of the expression");
    }
    std::string pattern(in_.from(place + 1));
    in_.skip();
    auto const at = in_.place();
    std::string flags(in_.take_while([](char c) { return c >= 'a' && c <= 'z'; }));
    if (auto const other = flags.find_first_not_of("isu"); other != std::string::npos)
      in_.fail_at(at + other, std::string("the flag ") + flags[other] + " is not supported");
    std::erase(flags, 'u');  // all are Unicode's
    return add({.kind = Kind::regex, .place = place, .text = std::move(pattern), .flags = std::move(flags)});
  }

  std::string_view text_;
  SourceReader in_;
  LarkGrammar out_;
};

}  // namespace sluice::inline v0::detail
