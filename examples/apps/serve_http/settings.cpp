// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <serve_http/settings.hpp>
#include <utility>

namespace serve {

namespace {

using translate::PresetName;
using translate::SearchName;
using translate::UtilityName;

std::map<std::string, SearchName> const searches{{"greedy", SearchName::greedy},
                                                 {"beam", SearchName::beam},
                                                 {"sample", SearchName::sample},
                                                 {"blockwise", SearchName::blockwise}};
std::map<std::string, PresetName> const presets{
    {"fairseq", PresetName::fairseq},         {"ctranslate2", PresetName::ctranslate2},
    {"huggingface", PresetName::huggingface}, {"sockeye", PresetName::sockeye},
    {"marian", PresetName::marian},           {"varstream", PresetName::varstream}};
std::map<std::string, UtilityName> const utilities{{"chrf", UtilityName::chrf}, {"bleu", UtilityName::bleu}};

using Names = std::initializer_list<char const*>;
constexpr Names of_beam{"preset",         "width",       "absolute_threshold", "relative_threshold", "max_per_parent",
                        "length_penalty", "constraints", "glossary",           "prune_finished",     "grid_base"};
constexpr Names of_samples{"temperature", "top_k", "top_p", "seed"};
constexpr Names of_lists{"n_best", "mbr"};
constexpr Names of_blocks{"block", "adaptive", "accept_top", "minimum"};

void useless(Fields const& fields, std::string const& with, Names names) {
  for (auto const* name : names)
    if (fields.has(name)) throw BadField(name, std::string(name) + " has no effect with " + with);
}

template <class T, class Value>
void set(T& option, std::optional<Value> const& value) {
  if (value) option = static_cast<T>(*value);
}

bool positive(double x) { return x > 0; }

/// Converts a JSON object of terms to lines of a glossary.
std::vector<std::string> read_glossary(Fields& fields) {
  std::vector<std::string> lines;
  auto const* const terms = fields.find("glossary");
  if (terms == nullptr) return lines;
  if (!terms->is_object()) Fields::refuse("glossary", *terms, "an object of terms");
  auto const add = [&](std::string const& term, Json const& target) {
    auto const name = "glossary." + text::shortened(term);
    if (!target.is_string()) Fields::refuse(name, target, "a string or a list of strings");
    auto line = term + '\t' + target.get<std::string>();
    if (line.find_first_of("\n\r") != line.npos || line.find('\t') != line.rfind('\t') || line.starts_with('#'))
      throw BadField(name, name + " has a tab or line end, or begins with #");
    lines.push_back(std::move(line));
  };
  for (auto const& [term, targets] : terms->items()) {
    if (!targets.is_array()) add(term, targets);
    else
      for (auto const& target : targets) add(term, target);
  }
  return lines;
}

void check_search(Fields const& fields, TranslationSettings const& settings, Offer const& offer) {
  switch (settings.search.search) {
    case SearchName::greedy:
      useless(fields, "greedy search", of_beam), useless(fields, "greedy search", of_lists);
      break;
    case SearchName::sample: useless(fields, "sampling", of_beam); break;
    case SearchName::blockwise:
      useless(fields, "blockwise search", of_beam), useless(fields, "blockwise search", of_lists);
      if (!offer.blockwise()) throw BadField("search", "search: this server has no proposer for blockwise search");
      break;
    default: break;
  }
  if (settings.search.search != SearchName::sample) useless(fields, "a search other than sample", of_samples);
  if (settings.search.search != SearchName::blockwise) useless(fields, "a search other than blockwise", of_blocks);
}

void read_search(Fields& fields, TranslationSettings& settings, Bounds const& bounds, Offer const& offer) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  auto& o = settings.search;
  o.search = fields.one_of("search", searches).value_or(SearchName::beam);
  check_search(fields, settings, offer);
  set(o.min_length, fields.integer("min_length", 0, bounds.length));
  o.max_length = std::min(o.max_length, bounds.length);
  set(o.max_length, fields.integer("max_length", 1, bounds.length));
  if (fields.has("min_length") && o.min_length >= o.max_length)
    throw BadField("min_length", "min_length " + std::to_string(o.min_length) +
                                     " leaves no room for the end in max_length " + std::to_string(o.max_length));

  o.preset = fields.one_of("preset", presets);
  o.length_penalty = fields.number(
      "length_penalty", [](double) { return true; }, "a number");
  o.absolute_threshold = fields.number("absolute_threshold", positive, "a number > 0");
  o.relative_threshold = fields.number(
      "relative_threshold", [](double x) { return x > 0 && x < 1; }, "a number between 0 and 1");
  if (auto const most = fields.integer("max_per_parent", 1, many)) o.max_per_parent = static_cast<std::int32_t>(*most);
  auto const demanding = fields.has("constraints") || fields.has("glossary");
  if (!demanding) useless(fields, "neither constraints nor glossary", {"prune_finished", "grid_base"});
  o.width = std::min(demanding ? 10 : 5, bounds.width);
  set(o.width, fields.integer("width", 1, bounds.width));
  if (auto const base = fields.integer("grid_base", 1, bounds.width)) {
    useless(fields, "grid_base", {"width", "max_per_parent"});
    o.grid_base = o.width = static_cast<std::int32_t>(*base);
  }
  set(o.prune_finished, fields.number(
                            "prune_finished", [](double x) { return x >= 0; }, "a number >= 0"));
  o.candidates = 1;
  auto const beam = o.search == SearchName::beam;
  o.mbr = fields.one_of("mbr", utilities);
  if (o.mbr) o.candidates = beam ? o.width : std::min(16, bounds.width);
  set(o.candidates, fields.integer("n_best", 1, beam ? o.width : bounds.width));
  if (o.mbr && o.candidates < 2)
    throw BadField("mbr", "mbr has no effect with one candidate: n_best must be 2 or more");

  set(o.temperature, fields.number("temperature", positive, "a number > 0"));
  set(o.top_k, fields.integer("top_k", 1, many));
  set(o.top_p, fields.number(
                   "top_p", [](double x) { return x > 0 && x <= 1; }, "a number in (0, 1]"));
  set(o.seed, fields.natural("seed"));

  auto const remembers = offer.blockwise() && !offer.guesses;  // guesses only as many tokens as it expects to be right
  if (remembers) o.block = 8;
  set(o.block, fields.integer("block", 1, 1024));
  if (auto const n = fields.integer("accept_top", 1, 10000)) o.accept_top = static_cast<std::int32_t>(*n);
  o.adaptive = fields.flag("adaptive").value_or(!fields.has("block") && !o.accept_top && !remembers);
  set(o.minimum, fields.integer("minimum", 1, o.block));
  if (o.minimum > 1 && !o.accept_top) throw BadField("minimum", "minimum keeps wrong guesses, which needs accept_top");

  set(o.no_repeat_ngram, fields.integer("no_repeat_ngram", 1, many));
  set(o.repetition_penalty, fields.number("repetition_penalty", positive, "a number > 0"));
  settings.forbid = fields.texts("forbid").value_or(std::vector<std::string>{});
  settings.bias = BiasField(fields);
  if (o.accept_top)
    useless(fields, "accept_top, which may keep a masked guess", {"no_repeat_ngram", "repetition_penalty", "forbid"});
  settings.stop = fields.texts("stop").value_or(std::vector<std::string>{});
  for (auto const& stop : settings.stop)
    if (stop.empty()) throw BadField("stop", "stop contains an empty string");
  settings.glossary = read_glossary(fields);
  settings.scores = o.search != SearchName::greedy && o.search != SearchName::blockwise;
  set(settings.scores, fields.flag("scores"));
  read_offers(fields, settings, offer, "search", o.mbr ? "mbr" : "n_best");
}

}  // namespace

void read_offers(Fields& fields, TranslationSettings& settings, Offer const& offer, std::string const& search,
                 std::string const& several) {
  auto const& o = settings.search;
  settings.watermark = offer.watermarking.of(fields);
  auto const samples = o.search == SearchName::sample;
  if (settings.watermark.on()) {
    if (!samples && offer.watermarking.draws())
      offer.watermarking.refuse(search, search + ": only sampling draws what the key could decide");
    if (o.accept_top) offer.watermarking.refuse("accept_top", "accept_top may keep a guess that has no mark");
    if (samples) offer.watermarking.check_samples(several, o.candidates);
  }
  auto const remember = offer.remembers(fields);
  if (remember && o.accept_top && fields.has("remember"))
    throw BadField("remember", "remember does not go with accept_top: outputs would depend on earlier ones");
  settings.remember = remember && !o.accept_top;
}

Task read_task(Fields& fields, Bounds const& bounds, Offer const& offer) {
  Task task;
  auto const texts = fields.texts("text");
  if (!texts) throw BadField("text", "text is missing: a sentence, or a list of them");
  if (texts->empty()) throw BadField("text", "text is an empty list");
  if (texts->size() > bounds.sentences)
    throw BadField(
        "text",
        "text has " + std::to_string(texts->size()) + " sentences, more than " + std::to_string(bounds.sentences), 413);
  TranslationSettings settings;
  read_search(fields, settings, bounds, offer);
  task.settings = std::make_shared<TranslationSettings const>(std::move(settings));

  // One for all, or one for each.
  auto const count = [&](char const* name, std::size_t size) {
    if (size != texts->size())
      throw BadField(name, std::string(name) + " is a list of " + std::to_string(size) + ", but text is one of " +
                               std::to_string(texts->size()));
  };
  auto const prefixes = fields.texts("prefix").value_or(std::vector<std::string>{});
  if (auto const* const prefix = fields.find("prefix"); prefix != nullptr && prefix->is_array())
    count("prefix", prefixes.size());
  auto const* const demands = fields.find("constraints");
  if (demands != nullptr && demands->is_array()) count("constraints", demands->size());
  else if (demands != nullptr && !demands->is_object())
    Fields::refuse("constraints", *demands, "an object, or a list of them");

  // What is given once is there once.
  auto const shared = [](std::string text) { return std::make_shared<std::string const>(std::move(text)); };
  std::shared_ptr<std::string const> prefix, constraints;
  if (prefixes.size() == 1) prefix = shared(prefixes[0]);
  if (demands != nullptr && demands->is_object()) constraints = shared(demands->dump());
  for (std::size_t i = 0; i < texts->size(); ++i) {
    auto& ask = task.asks.emplace_back(Ask{.number = i + 1, .text = (*texts)[i]});
    ask.prefix = prefix != nullptr || prefixes.empty() ? prefix : shared(prefixes[i]);
    ask.constraints = constraints != nullptr || demands == nullptr ? constraints : shared((*demands)[i].dump());
  }
  auto const most = bounds.time.count();
  task.time = std::chrono::milliseconds(fields.integer("deadline_ms", 1, most).value_or(most));
  task.stream = fields.flag("stream").value_or(false);
  fields.finish();
  return task;
}

}  // namespace serve
