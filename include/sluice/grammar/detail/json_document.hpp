// SPDX-License-Identifier: Apache-2.0
/// \file
/// The schemas of a document, and what refers to them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_keywords.hpp>
#include <sluice/grammar/detail/json_uri.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Reads schemas keyword by keyword. A document may hold several resources, each with a URI and a draft of its own.
class JsonDocument {
 public:
  using Kind = JsonValue::Kind;
  using Word = JsonWord;
  /// A keyword and its value; for a group of keywords, the first of them.
  struct Part {
    Word word;
    JsonValue const* value;
    std::int32_t place;  // among the keywords
  };
  struct Schema {
    JsonValue const* source;
    std::int32_t resource;
    std::vector<Part> parts{};
  };
  /// A schema that a value must, or must not, fit. A scope is a list of the resources that led there, where that
  /// matters.
  struct Literal {
    JsonValue const* schema;
    bool negated = false;
    std::int32_t scope = 0;
    friend auto operator<=>(Literal const&, Literal const&) = default;  // NOLINT(modernize-use-nullptr)
  };
  using Literals = std::vector<Literal>;

  /// What is thrown for a keyword that cannot be obeyed.
  struct Unsupported : std::invalid_argument {
    Unsupported(JsonValue const* keyword, std::string const& why) : std::invalid_argument(why), value(keyword) {}
    JsonValue const* value;
  };

  SLUICE_LAZY JsonDocument(std::string_view text, GrammarLimits const& limits)
      : reader_("schema", text, limits),
        root_(JsonReader::parse("schema", text, limits)),
        most_(4'000'000 + 64 * text.size()) {
    resources_.push_back({"", 2020, &root_, {}, {}, false});
    if (auto const* const dialect = root_.find("$schema")) resources_[0].draft = draft_of(*dialect);
    else any_draft_ = true;
    many_ = false;
    for (auto const* const name : {"\"$id\"", "\"id\"", "nchor\"", "\"$schema\""})
      many_ = many_ || text.find(name) != std::string_view::npos;
    scopes_.push_back({0});
    scope_numbers_[{0}] = 0;
    if (many_) collect(root_, 0);
  }

  JsonValue const& root() const { return root_; }
  /// Keywords that are no keywords, and formats that are none.
  std::set<std::string> const& ignored() const { return ignored_; }
  /// Ignores a keyword from now on.
  SLUICE_LAZY void drop(JsonValue const* keyword) {
    dropped_.insert(keyword);
    schemas_.clear();
  }

  SLUICE_LAZY [[noreturn]] void fail(JsonValue const& value, std::string const& why) const {
    reader_.fail_at(value.place, why);
  }
  SLUICE_LAZY [[noreturn]] void unsupported(JsonValue const& value, std::string const& why) const {
    try {
      fail(value, why);
    } catch (std::invalid_argument const& e) {
      throw Unsupported(&value, e.what());
    }
  }

  SLUICE_LAZY Schema const& schema(JsonValue const& value) {
    // References that meet again and again double the ways at each: forty of them never end.
    if (++looked_ > most_) unsupported(value, "is met too often: references lead to too many ways");
    auto const [it, fresh] = schemas_.try_emplace(&value);
    if (fresh) it->second = read(value);
    return it->second;
  }
  /// A keyword that its draft knows.
  SLUICE_LAZY JsonValue const* own(Schema const& of, std::string_view name) const {
    auto const* const value = of.source->find(name);
    if (value == nullptr || dropped_.contains(value)) return nullptr;
    auto const& known = json_keywords().at(name);
    return any_draft_ || (draft(of) >= known.from && draft(of) <= known.until) ? value : nullptr;
  }
  /// The scope behind a schema's resource.
  SLUICE_LAZY std::int32_t enter(std::int32_t scope, Schema const& of) {
    if (!dynamic_) return 0;
    auto list = scopes_[at(scope)];
    if (std::find(list.begin(), list.end(), of.resource) != list.end()) return scope;
    list.push_back(of.resource);
    auto const [it, fresh] = scope_numbers_.try_emplace(list, static_cast<std::int32_t>(scopes_.size()));
    if (fresh) scopes_.push_back(list);
    return it->second;
  }
  /// What a reference of a schema leads to.
  SLUICE_LAZY JsonValue const& target(Schema const& of, Part const& part, std::int32_t scope) {
    auto const& ref = *part.value;
    if (!ref.is(Kind::string)) fail(ref, "$ref must be a string");
    auto const& value = follow(ref, of.resource);
    if (part.word == Word::recursive_ref) {
      if (!resources_[at(resource_of(value))].recursive) return value;
      for (auto const one : scopes_[at(scope)])
        if (resources_[at(one)].recursive) return *resources_[at(one)].root;
    }
    if (part.word != Word::dynamic_ref) return value;
    auto const hash = ref.text.find('#');
    auto const anchor = hash == std::string::npos ? std::string() : ref.text.substr(hash + 1);
    if (auto const* const name = value.find("$dynamicAnchor"); name == nullptr || name->text != anchor) return value;
    for (auto const one : scopes_[at(scope)])
      if (auto const it = resources_[at(one)].dynamic_anchors.find(anchor);
          it != resources_[at(one)].dynamic_anchors.end())
        return *it->second;
    return value;
  }
  int draft(Schema const& of) const { return resources_[at(of.resource)].draft; }
  /// Whether the document leaves its draft open.
  bool any_draft() const { return any_draft_; }
  bool several() const { return resources_.size() > 1; }
  /// Reads a schema that is not of the document.
  SLUICE_LAZY JsonValue const& made(JsonValue const& value) {
    if (made_ < 0) {
      made_ = static_cast<std::int32_t>(resources_.size());
      resources_.push_back({"", 2019, &root_, {}, {}, false});
    }
    resource_of_[&value] = made_;
    return value;
  }
  SLUICE_LAZY void ignore(std::string name) { ignored_.insert(std::move(name)); }

  SLUICE_LAZY std::vector<JsonValue> const& list(JsonValue const& value) const {
    if (!value.is(Kind::array) || value.items.empty()) fail(value, "must be an array of schemas");
    return value.items;
  }
  /// Members of a value that must be an object.
  SLUICE_LAZY std::vector<std::pair<std::string, JsonValue>> const& map(JsonValue const& value) const {
    if (!value.is(Kind::object)) fail(value, "must be an object");
    return value.members;
  }
  GrammarLimits const& limits() const { return reader_.limits(); }

 protected:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

 private:
  struct Resource {
    std::string uri;
    int draft;
    JsonValue const* root;
    std::map<std::string, JsonValue const*, std::less<>> anchors, dynamic_anchors;
    bool recursive;
  };

  SLUICE_LAZY int draft_of(JsonValue const& dialect) {
    if (!dialect.is(Kind::string)) fail(dialect, "$schema must be a string");
    auto const& name = dialect.text;
    if (name.find("json-schema.org/") != std::string::npos) {
      for (auto const& [part, draft] : {std::pair("draft-04", 4), std::pair("draft-06", 6), std::pair("draft-07", 7),
                                        std::pair("2019-09", 2019), std::pair("2020-12", 2020)})
        if (name.find(part) != std::string::npos) return draft;
      if (name.find("draft-0") != std::string::npos)
        unsupported(dialect, "$schema: the dialect " + json_quoted(name) + " is not supported");
    }
    if (&dialect == root_.find("$schema")) any_draft_ = true;
    ignored_.insert("$schema " + json_quoted(name));
    return 2020;
  }

  /// Names of what stands within a schema, by how it holds schemas.
  static std::array<std::string_view, 6> maps() {
    return {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};
  }
  static std::array<std::string_view, 18> places() {
    return {"additionalProperties",
            "items",
            "additionalItems",
            "contains",
            "propertyNames",
            "not",
            "if",
            "then",
            "else",
            "unevaluatedItems",
            "contentSchema",
            "allOf",
            "anyOf",
            "oneOf",
            "unevaluatedProperties",
            "prefixItems",
            "items",
            "extends"};
  }

  /// Finds resources and anchors within a schema.
  SLUICE_LAZY void collect(JsonValue const& value, std::int32_t resource) {
    if (value.is(Kind::array))
      for (auto const& item : value.items) collect(item, resource);
    if (!value.is(Kind::object) || !resource_of_.try_emplace(&value, resource).second) return;
    auto const draft = resources_[at(resource)].draft;
    auto const text = [&](std::string_view name) -> std::string {
      auto const* const own = value.find(name);
      return own != nullptr && own->is(Kind::string) ? own->text : "";
    };
    auto const beside_ref = draft <= 7 && !any_draft_ && value.find("$ref") != nullptr;
    if (auto const id = text(draft == 4 && !any_draft_ ? "id" : "$id"); !id.empty() && !beside_ref) {
      auto const hash = (std::min)(id.find('#'), id.size());
      if (hash > 0) {
        auto own = draft;
        if (auto const* const dialect = value.find("$schema"); dialect != nullptr && &value != &root_)
          own = draft_of(*dialect);
        auto const uri = resolved_uri(resources_[at(resource)].uri, std::string_view(id).substr(0, hash));
        if (&value == &root_) resources_[0].uri = uri;
        else {
          resource = static_cast<std::int32_t>(resources_.size());
          resources_.push_back({uri, own, &value, {}, {}, false});
          resource_of_[&value] = resource;
        }
        by_uri_.try_emplace(uri, resource);
      }
      if (hash + 1 < id.size()) resources_[at(resource)].anchors.try_emplace(id.substr(hash + 1), &value);
    }
    auto& own = resources_[at(resource)];
    if (auto const name = text("$anchor"); !name.empty()) own.anchors.try_emplace(name, &value);
    if (auto const name = text("$dynamicAnchor"); !name.empty()) {
      own.anchors.try_emplace(name, &value), own.dynamic_anchors.try_emplace(name, &value);
      dynamic_ = true;
    }
    if (auto const* const recursive = value.find("$recursiveAnchor"); recursive != nullptr && recursive->truth)
      own.recursive = true, dynamic_ = true;
    for (auto const name : maps())
      if (auto const* const all = value.find(name); all != nullptr && all->is(Kind::object))
        for (auto const& [key, one] : all->members) collect(one, resource);
    for (auto const name : places())
      if (auto const* const one = value.find(name)) collect(*one, resource);
  }
  SLUICE_LAZY std::int32_t resource_of(JsonValue const& value) const {
    auto const it = resource_of_.find(&value);
    return it == resource_of_.end() ? 0 : it->second;
  }

  SLUICE_LAZY JsonValue const& follow(JsonValue const& ref, std::int32_t resource) {
    auto const [it, fresh] = followed_.try_emplace(&ref, nullptr);
    if (!fresh) return *it->second;
    std::string_view const text = ref.text;
    auto const hash = (std::min)(text.find('#'), text.size());
    if (hash > 0) {
      auto const uri = resolved_uri(resources_[at(resource)].uri, text.substr(0, hash));
      auto const known = by_uri_.find(uri);
      if (known == by_uri_.end() && uri != resources_[0].uri)
        unsupported(ref, "$ref to another document is not supported: " + ref.text);
      resource = known == by_uri_.end() ? 0 : known->second;
    }
    auto const* value = resources_[at(resource)].root;
    auto const fragment = uri_decoded(text.substr((std::min)(hash + 1, text.size())));
    if (!fragment.empty() && fragment[0] != '/') {
      auto const& anchors = resources_[at(resource)].anchors;
      auto const anchor = anchors.find(fragment);
      if (anchor == anchors.end()) fail(ref, "$ref leads nowhere: " + ref.text);
      value = anchor->second;
    } else value = &pointed(ref, *value, fragment, resource);
    if (many_) collect(*value, resource);
    return *(followed_[&ref] = value);
  }
  SLUICE_LAZY JsonValue const& pointed(JsonValue const& ref, JsonValue const& from, std::string_view pointer,
                                       std::int32_t& resource) {
    auto const* value = &from;
    while (!pointer.empty()) {
      pointer.remove_prefix(1);
      std::string name;
      for (; !pointer.empty() && pointer[0] != '/'; pointer.remove_prefix(1)) {
        if (pointer[0] == '~' && pointer.size() > 1) name += pointer[1] == '0' ? '~' : '/', pointer.remove_prefix(1);
        else name += pointer[0];
      }
      if (value->is(Kind::array)) {
        auto const index = name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos
                               ? value->items.size()
                               : std::stoul(name);
        value = index < value->items.size() ? &value->items[index] : nullptr;
      } else value = value->find(name);
      if (value == nullptr) fail(ref, "$ref leads nowhere: " + ref.text);
      if (auto const it = resource_of_.find(value); it != resource_of_.end()) resource = it->second;
    }
    return *value;
  }

  SLUICE_LAZY Schema read(JsonValue const& value) {
    Schema out{&value, resource_of(value)};
    if (!value.is(Kind::object)) fail(value, "a schema must be an object, true or false");
    auto const own_draft = draft(out);
    auto const* const ref = value.find("$ref");
    auto const only_ref = ref != nullptr && own_draft <= 7 && !any_draft_;
    std::array<bool, static_cast<std::size_t>(Word::note) + 1> seen{};
    std::int32_t place = 0;
    for (auto const& [name, own] : value.members) {
      ++place;
      if (dropped_.contains(&own)) continue;
      auto const it = json_keywords().find(name);
      if (it == json_keywords().end() ||
          (!any_draft_ && (own_draft < it->second.from || own_draft > it->second.until))) {
        if (it == json_keywords().end() || it->second.word != Word::note) ignored_.insert(name);
        continue;
      }
      auto const word = it->second.word;
      if (word == Word::note || word == Word::part || (only_ref && word != Word::ref)) continue;
      auto const grouped = word == Word::properties || word == Word::items;
      if (grouped && seen[static_cast<std::size_t>(word)]) continue;
      seen[static_cast<std::size_t>(word)] = true;
      out.parts.push_back({word, &own, place});
    }
    return out;
  }

  SourceReader reader_;  // for source positions
  JsonValue root_;
  std::vector<Resource> resources_;
  std::map<std::string, std::int32_t, std::less<>> by_uri_;
  std::unordered_map<JsonValue const*, std::int32_t> resource_of_;
  std::unordered_map<JsonValue const*, JsonValue const*> followed_;
  std::unordered_map<JsonValue const*, Schema> schemas_;
  std::size_t looked_ = 0, most_;  // at schemas
  std::set<JsonValue const*> dropped_;
  std::set<std::string> ignored_;
  std::vector<std::vector<std::int32_t>> scopes_;
  std::map<std::vector<std::int32_t>, std::int32_t> scope_numbers_;
  std::int32_t made_ = -1;  // a resource
  bool any_draft_ = false;  // the schema leaves it open: all keywords of all drafts
  bool many_ = false;       // resources or anchors
  bool dynamic_ = false;    // references depend on the scope
};

}  // namespace sluice::inline v0::detail
