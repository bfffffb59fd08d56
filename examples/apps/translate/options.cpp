// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed_matrix.hpp>

#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace translate {

namespace {

std::map<std::string, SearchName> const searches{{"best-first", SearchName::best_first},
                                                 {"greedy", SearchName::greedy},
                                                 {"beam", SearchName::beam},
                                                 {"sample", SearchName::sample},
                                                 {"blockwise", SearchName::blockwise}};
std::map<std::string, PresetName> const presets{
    {"fairseq", PresetName::fairseq},         {"ctranslate2", PresetName::ctranslate2},
    {"huggingface", PresetName::huggingface}, {"sockeye", PresetName::sockeye},
    {"marian", PresetName::marian},           {"varstream", PresetName::varstream}};
std::map<std::string, UtilityName> const utilities{{"chrf", UtilityName::chrf}, {"bleu", UtilityName::bleu}};
std::map<std::string, ScheduleName> const schedules{{"batched", ScheduleName::batched},
                                                    {"streaming", ScheduleName::streaming}};
std::map<std::string, ProjectionName> const projections{{"logits", ProjectionName::logits},
                                                        {"dense", ProjectionName::dense},
                                                        {"bfloat16", ProjectionName::dense},
                                                        {"int8", ProjectionName::dense},
                                                        {"clustered", ProjectionName::clustered}};
std::map<std::string, sluice::Precision> const precisions{{"float32", sluice::Precision::float32},
                                                          {"bfloat16", sluice::Precision::bfloat16},
                                                          {"int8", sluice::Precision::int8}};
/// Of --precision, where it is not a precision.
std::string const automatic = "auto";
std::map<std::string, sluice::Precision> const precisions_or_automatic = [] {
  auto all = precisions;
  all.emplace(automatic, sluice::automatic_precision());
  return all;
}();
std::map<std::string, Proposers> const proposers{{"heads", {.heads = true}},
                                                 {"draft", {.draft = true}},
                                                 {"ngram", {.ngram = true}},
                                                 {"ngram,heads", {.heads = true, .ngram = true}},
                                                 {"ngram,draft", {.draft = true, .ngram = true}}};
using Order = sluice::Streaming::Order;
std::map<std::string, Order> const orders{{"shortest_only", Order::shortest_only},
                                          {"oldest_first", Order::oldest_first}};

CLI::Validator any_number() {
  return text::number<float>([](float x) { return std::isfinite(x); }, "");
}
CLI::Validator positive() {
  return text::number<float>([](float x) { return x > 0 && std::isfinite(x); }, " > 0");
}

CLI::Validator number_or_none() {
  return CLI::Validator(
      [](std::string const& value) {
        float x = 0;
        auto const good = value == "none" || (CLI::detail::lexical_cast(value, x) && std::isfinite(x) && x >= 0);
        return good ? "" : "'" + value + "' is neither a number >= 0 nor none";
      },
      "");
}

/// The N of top:N, nothing for exact.
/// \throws text::InputError  for anything else
std::optional<std::int32_t> accepted(std::string const& rule) {
  if (rule == "exact") return std::nullopt;
  std::int32_t n = 0;
  auto const* const end = rule.data() + rule.size();
  auto const top = rule.starts_with("top:");
  auto const [rest, error] = std::from_chars(rule.data() + (top ? 4 : 0), end, n);
  if (!top || rest != end || error != std::errc() || n < 1 || n > 10000)
    throw text::InputError("--accept: '" + rule + "' is neither exact nor top:N with N in 1 to 10000");
  return n;
}

/// \throws text::InputError  unless it is I/N with I < N
Shard parse_shard(std::string const& text) {
  Shard shard;
  auto const* const end = text.data() + text.size();
  auto const [slash, error] = std::from_chars(text.data(), end, shard.index);
  auto const cut = error == std::errc() && slash != end && *slash == '/';
  auto const [rest, wrong] = std::from_chars(cut ? slash + 1 : end, end, shard.count);
  if (!cut || wrong != std::errc() || rest != end || shard.index >= shard.count || shard.count > 1'000'000'000)
    throw text::InputError("--shard: '" + text + "' is not I/N with I from 0 to N - 1");
  return shard;
}

/// \throws text::InputError  for options that cannot be combined with parts or --resume
void check_parts(Options const& options, bool mpi) {
  auto const need = [&](std::string const& flag) {
    if (options.input.empty()) throw text::InputError(flag + " needs --input: what can be read again");
    if (options.output.empty() && flag != "--shard") throw text::InputError(flag + " needs --output");
  };
  if (mpi) need("translate_mpi");
  if (!options.trace.empty() && (mpi || options.resume))
    throw text::InputError(std::string("--trace does not go with ") + (mpi ? "translate_mpi" : "--resume") +
                           ": the trace would be incomplete");
  if (options.shard) need("--shard");
  if (!options.resume) return;
  need("--resume");
  if (!options.trace.empty())
    throw text::InputError("--resume does not go with --trace: the earlier run would be missing from the trace");
  if (options.explain && options.adaptive)
    throw text::InputError("--resume does not go with --explain without --block: the blocks depend on the clock, and "
                           "would differ");
}

/// The options that were given, except those that only change the speed.
std::map<std::string, std::string> said(CLI::App const& app) {
  std::map<std::string, std::string> all;
  for (auto const* option : app.get_options()) {
    std::string value;
    for (auto const& part : option->results()) value += (value.empty() ? "" : " ") + part;
    if (option->count() > 0) all.emplace(option->get_name(), value);
  }
  for (auto const* const speed : {"--input", "--output", "--stats", "--trace", "--progress", "--resume", "--threads",
                                  "--batch", "--window", "--encode-ahead", "--schedule", "--refill-below", "--order",
                                  "--max-rows", "--drain-after", "--audit", "--remember"})
    all.erase(speed);
  return all;
}

/// What --alignments says, or what is wrong with it.
std::pair<AlignmentFormat, std::string> alignment_format(std::string const& value) {
  if (value == "hard") return {};
  if (value == "soft") return {{.soft = true}, ""};
  float threshold = 0;
  auto const* const end = value.data() + value.size();
  auto const [read, error] = std::from_chars(value.data(), end, threshold);
  if (error != std::errc() || read != end || !(threshold > 0 && threshold <= 1))
    return {{}, "'" + value + "' is neither hard, soft nor a number in (0, 1]"};
  return {{.threshold = threshold}, ""};
}

std::vector<std::filesystem::path> split(std::string const& list) {
  std::vector<std::filesystem::path> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.emplace_back(part);
  if (parts.size() < 2) throw text::InputError("--ensemble: '" + list + "' must name two models or more: DIR,DIR");
  return parts;
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv, bool mpi) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  Options options;
  std::string model, ensemble, input, output, prefix, score, stats, trace, forbid, bias, constraints, glossary,
      prune_finished;
  std::string search = "beam", preset, utility, schedule = "batched", order, projection = "dense", layers,
              precision = "float32", language_model, clusters, proposer = "heads", heads, draft, remember,
              accept = "exact";
  std::int32_t n_best = 0;

  std::string const program = mpi ? "translate_mpi" : "translate";
  text::CommandLine app("Translates German to English, one sentence per line.", program);
  // Options of one group, so that it can be refused as a whole.
  using Group = std::vector<CLI::Option*>;
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add(name, value, type, what);
  };

  auto* const one_model = add("--model", model, "DIR|FILE", "folder of model.safetensors and spm.model, or the former");
  auto* const models = add("--ensemble", ensemble, "DIR,DIR", "average the probabilities of several models");
  add("--input", input, "FILE", "text to translate (standard input)");
  add("--output", output, "FILE", "where the translations go (standard output)");
  Group const language{
      add("--language-model", language_model, "FILE", "add the scores of n-grams of pieces (build_ngram)"),
      add("--language-weight", options.model_options.language_weight, "A", "weight of these scores (0.2)")
          ->check(text::number<double>([](double x) { return std::isfinite(x); }, "")),
      add("--word-bonus", options.model_options.word_bonus, "B", "added for each word (0)")
          ->check(text::number<double>([](double x) { return std::isfinite(x); }, ""))};
  auto* const searching = add("--search", search, "NAME", "greedy, beam, best-first, sample or blockwise (beam)")
                              ->check(text::one_of(searches));
  auto* const nbest = add("--n-best", n_best, "N", "print N hypotheses per line: index ||| text ||| score")
                          ->check(text::whole(1, 10000));
  auto* const mbr =
      add("--mbr", utility, "NAME", "minimum Bayes risk: print the hypothesis closest to the others by chrf or bleu")
          ->check(text::one_of(utilities));
  Group const lengths{add("--min-length", options.min_length, "N", "minimum number of tokens before eos (1)")
                          ->check(text::whole(0, many)),
                      add("--max-length", options.max_length, "N", "maximum number of generated tokens (256)")
                          ->check(text::whole(1, many))};
  Group const beam{
      add("--preset", preset, "NAME", "rules of fairseq, ctranslate2, huggingface, sockeye, marian or varstream")
          ->check(text::one_of(presets)),
      add("--width", options.width, "K", "hypotheses in the beam (5; 10 with constraints)")
          ->check(text::whole(1, 10000)),
      add("--absolute-threshold", options.absolute_threshold, "D", "drop hypotheses D below the best log-probability")
          ->check(positive()),
      add("--relative-threshold", options.relative_threshold, "R",
          "drop hypotheses less than R times as probable as the best")
          ->check(text::number<float>([](float x) { return x > 0 && x < 1; }, " between 0 and 1")),
      add("--max-per-parent", options.max_per_parent, "M", "maximum number of children of one hypothesis in a step")
          ->check(text::whole(1, many))};
  auto* const penalty = add("--length-penalty", options.length_penalty, "A", "score = log-probability / length^A (1)")
                            ->check(any_number());
  auto& samplers = options.samplers;
  auto sampling = samplers.add_by<CLI::Option>(add);
  sampling.insert(
      sampling.end(),
      {add("--temperature", options.temperature, "T", "temperature of sampling (1)")->check(positive()),
       add("--top-k", options.top_k, "K", "sample from the K most probable tokens")->check(text::whole(1, many)),
       add("--top-p", options.top_p, "P", "sample from the most probable tokens that hold P")
           ->check(text::number<float>([](float x) { return x > 0 && x <= 1; }, " in (0, 1]")),
       add("--min-p", samplers.sample.min_p, "P", "sample from tokens at least P times as probable as the best"),
       add("--typical", samplers.sample.typical, "P", "sample from the most typical tokens that hold P"),
       add("--seed", options.seed, "S", "seed of sampling (1)")->check(text::whole(0))});
  Group const blockwise{
      add("--block", options.block, "K", "maximum number of tokens settled in one round (4)")
          ->check(text::whole(1, 1024)),
      app.add_flag("--adaptive", options.adaptive,
                   "guess less where it does not pay (default without --block or a relaxed --accept)"),
      add("--proposer", proposer, "NAME", "source of guesses: heads, draft or ngram; ngram,heads: ngram first (heads)")
          ->check(text::one_of(proposers)),
      add("--heads", heads, "FILE", "weights of --proposer heads (heads.safetensors beside the model)"),
      add("--draft-model", draft, "DIR|FILE", "model of --proposer draft"),
      add("--accept", accept, "RULE", "which guesses to keep: exact or top:N (exact)"),
      add("--minimum", options.minimum, "N", "tokens that every round keeps at least, with --accept top:N (1)")
          ->check(text::whole(1, 1024)),
      app.add_flag("--explain", options.explain, "print the blocks instead of the translation"),
      add("--branches", options.branches, "B", "guess trees of at most B paths (1: a chain)")
          ->check(text::whole(1, 1024)),
      add("--tree-nodes", options.tree_nodes, "N", "maximum number of guesses in a tree ((K - 1) * B)")
          ->check(text::whole(1, 1024)),
      add("--remember", remember, "FILE", "guess from earlier translations too (suffix decoding), which FILE keeps")};
  Group const masks{add("--no-repeat-ngram", options.no_repeat_ngram, "N", "do not repeat any N tokens in a row")
                        ->check(text::whole(1, many)),
                    add("--repetition-penalty", options.repetition_penalty, "P",
                        "make tokens that occurred before less likely, if P > 1")
                        ->check(positive()),
                    add("--forbid", forbid, "FILE", "forbidden phrases, one per line")};
  Group const biasing{
      add("--bias", bias, "FILE", "phrases that translations should rather contain: phrase, tab, boost in nats"),
      app.add_flag("--bias-once", options.bias_once, "count each such phrase only once in a translation")};
  auto const marking = options.watermark.add_by<CLI::Option>(
      add, [](auto const& names) { return text::one_of(names); },
      [](auto low, auto high) { return text::whole(low, high); });
  std::string grammar, json_schema, regex;
  Group const structures{add("--grammar", grammar, "FILE", "GBNF grammar that each translation matches"),
                         add("--json-schema", json_schema, "FILE", "each translation is JSON that this schema accepts"),
                         add("--regex", regex, "RE", "each translation matches as a whole")};
  Group const constraining{
      add("--constraints", constraints, "FILE", "required and forbidden phrases, one JSON object per line"),
      add("--glossary", glossary, "FILE", "source term, tab, target term: required if the source has the source term")};
  Group const constrained{
      add("--prune-finished", prune_finished, "D", "drop hypotheses D below the best complete one; or none (20)")
          ->check(number_or_none()),
      add("--grid-base", options.grid_base, "B", "grid beam search: B hypotheses per number of constraint tokens met")
          ->check(text::whole(1, 10000))};
  std::string alignments;
  auto* const aligning =
      add("--alignments", alignments, "KIND", "print word alignments: hard, soft, or those above a share")
          ->check(CLI::Validator([](std::string const& value) { return alignment_format(value).second; }, ""));
  Group const doubting{
      app.add_flag("--confidence", options.confidence, "print the probability of each word"),
      add("--alternatives", options.alternatives, "N", "print the N best pieces at each position, for any search")
          ->check(text::whole(1, 1000))};
  auto* const begin = add("--prefix", prefix, "FILE", "forced prefixes of the translations, one per line");
  add("--score", score, "FILE", "print scores of these translations, one per line");
  auto* const projecting = add("--projection", projection, "NAME",
                               "output layer: dense, logits or clustered; bfloat16, int8: dense, rounded (dense)")
                               ->check(text::one_of(projections));
  Group const clustering{
      add("--clusters", clusters, "FILE", "file for --projection clustered and heads (clusters.bin beside the model)"),
      add("--direction", options.model_options.direction, "NAME", "which clusters of that file, if it has several"),
      add("--nearest", options.model_options.nearest, "N", "number of clusters used for each hypothesis (2)")
          ->check(text::whole(1, many)),
      add("--audit", options.model_options.audit, "N", "also project every Nth step in full, for --stats")
          ->check(text::whole(1, many))};
  add("--precision", precision, "NAME",
      "precision of products: float32, bfloat16, int8, or auto: bfloat16 if fast (float32)")
      ->check(text::one_of(precisions_or_automatic));
  auto* const layering =
      add("--layers", layers, "NAME", "precision of encoder and decoder: float32, bfloat16 or int8 (--precision)")
          ->check(text::one_of(precisions));
  add("--schedule", schedule, "NAME", "batched or streaming (batched)")->check(text::one_of(schedules));
  add("--batch", options.batch, "N", "sentences decoded at a time (64)")->check(text::whole(1, 1000000));
  add("--window", options.window, "N", "sort N lines by length (64 batches; 4 of a pipe; 0 = do not)")
      ->check(text::whole(0, 10000000));
  add("--encode-ahead", options.encode_ahead, "N", "encode up to N sentences beside the decoder (0)")
      ->check(text::whole(0, 1000000));
  Group const streaming{
      add("--refill-below", options.refill_below, "F", "refill when at most this fraction of the batch is left (1/6)")
          ->check(text::number<float>([](float x) { return x >= 0 && x <= 1; }, " in [0, 1]")),
      add("--order", order, "NAME", "which sentences step: shortest_only or oldest_first (oldest_first)")
          ->check(text::one_of(orders)),
      add("--max-rows", options.max_rows, "N", "maximum number of rows in one step (0 = no bound)")
          ->check(text::whole(0, many)),
      add("--drain-after", options.drain_after, "N",
          "admit none while a sentence is older than N steps (500; 0 = never)")
          ->check(text::whole(0, many))};
  add("--threads", options.threads, "N", "number of decoders, each with a thread (1)")->check(text::whole(1, 1024));
  add("--stats", stats, "FILE", "write counts, memory and times as JSON");
  auto* const tracing = add("--trace", trace, "FILE", "write a trace of the decoder: a page (.html) or lines (.jsonl)");
  app.add_flag("--progress", options.progress, "show progress even if standard error is not a terminal");
  std::string shard;
  app.add_flag("--resume", options.resume, "continue an earlier run with these options, using OUTPUT.journal");
  if (mpi)
    add("--shard-size", options.shard_size, "BYTES", "size of the shards of the input that ranks get (262144)")
        ->check(text::whole(1, many));
  else add("--shard", shard, "I/N", "translate only part I of N parts of the input, I from 0");

  if (!app.read(argc, argv)) return std::nullopt;

  auto const useless = [](std::string const& with, auto const&... groups) {
    auto const refuse = [&](Group const& group) {
      for (auto const* option : group)
        if (option->count() > 0) throw text::InputError(option->get_name() + " has no effect with " + with);
    };
    (refuse(groups), ...);
  };
  if (models->count() > 0) useless("--ensemble", Group{one_model});
  if (language_model.empty()) useless("no --language-model", Group{language[1], language[2]});
  options.search = score.empty() ? searches.at(search) : SearchName::score;
  switch (options.search) {
    case SearchName::score:
      useless("--score", Group{searching, nbest, mbr, begin, aligning}, doubting, lengths, beam, sampling, blockwise,
              masks, biasing, marking, constraining, constrained);
      break;
    case SearchName::greedy:
      useless("--search greedy", Group{nbest, mbr, penalty}, beam, sampling, blockwise, constraining, constrained);
      break;
    case SearchName::beam: useless("--search beam", sampling, blockwise); break;
    case SearchName::best_first:
      useless("--search best-first", sampling, blockwise, constraining, constrained);
      if (!bias.empty())
        throw text::InputError("--bias does not go with --search best-first, which takes for granted that scores only "
                               "fall: choose --search beam");
      if (options.watermark.on())
        throw text::InputError("--watermark-key does not go with --search best-first, which takes for granted that "
                               "scores only fall: choose --search beam");
      if (options.model_options.language_weight < 0 || options.model_options.word_bonus > 0)
        throw text::InputError(
            "--language-weight < 0 and --word-bonus > 0 do not go with --search best-first, which takes "
            "for granted that scores only fall: choose --search beam");
      break;
    case SearchName::sample:
      useless("--search sample", Group{penalty}, beam, blockwise, constraining, constrained);
      break;
    case SearchName::blockwise:
      useless("--search blockwise", Group{nbest, mbr, penalty}, beam, sampling, constraining, constrained);
      break;
  }
  options.watermark.check_effects(marking);
  if (options.watermark.on() && options.watermark.draws() && options.search != SearchName::sample)
    throw text::InputError("--watermark " + options.watermark.scheme + " does not go with --search " + search +
                           ", which draws nothing: choose --search sample, or --watermark red_green");
  auto& sample = options.samplers.sample;
  sample.temperature = options.temperature, sample.top_k = options.top_k, sample.top_p = options.top_p;
  if (options.search == SearchName::sample) options.samplers.check_effects(sampling), options.samplers.check();
  if (options.explain) useless("--explain", Group{aligning}, doubting);
  if (models->count() > 0) useless("--ensemble", Group{aligning});
  if (aligning->count() > 0)
    options.alignments = alignment_format(alignments).first, options.model_options.attention = true;
  std::string said_before;
  for (auto const* option : structures) {
    if (option->count() == 0) continue;
    if (!said_before.empty()) throw text::InputError(option->get_name() + " does not go with " + said_before);
    said_before = option->get_name();
  }
  options.structure.grammar = grammar, options.structure.json_schema = json_schema;
  if (structures[2]->count() > 0) options.structure.regex = regex;
  if (bias.empty() && options.bias_once) throw text::InputError("--bias-once has no effect without --bias");
  options.constraints = constraints, options.glossary = glossary;
  if (!options.constrained()) useless("neither --constraints nor --glossary", constrained);
  auto* const width = beam[1];
  if (options.grid_base) {  // every sentence has its own width; only the base is known here
    useless("--grid-base", Group{width, beam[4]});
    options.width = *options.grid_base;
  } else if (options.constrained() && width->count() == 0) {
    options.width = 10;
  }
  if (prune_finished == "none") options.prune_finished = std::numeric_limits<double>::infinity();
  else if (!prune_finished.empty()) options.prune_finished = std::stod(prune_finished);
  if ((options.search == SearchName::beam || options.search == SearchName::best_first) && n_best > options.width)
    throw text::InputError("--n-best " + std::to_string(n_best) + " is more than " +
                           (options.grid_base ? "--grid-base " : "--width ") + std::to_string(options.width));
  if (lengths[0]->count() > 0 && options.min_length >= options.max_length)
    throw text::InputError("--min-length " + std::to_string(options.min_length) +
                           " leaves no room for the end in --max-length " + std::to_string(options.max_length));

  options.model_options.projection = projections.at(projection);
  auto const all = precisions_or_automatic.at(precision);
  options.model_options.layers = layering->count() > 0 ? precisions.at(layers) : all;
  options.model_options.output = precisions.contains(projection) ? precisions.at(projection) : all;
  options.model_options.clusters = clusters, options.model_options.language_model = language_model;
  if (options.model_options.projection != ProjectionName::clustered) {
    // The heads guess among the tokens of clusters, too, so --clusters and --direction are allowed.
    auto const guessing = options.search == SearchName::blockwise && proposers.at(proposer).heads;
    useless("--projection " + projection, guessing ? Group{clustering[2], clustering[3]} : clustering);
  }
  if (projection == "logits" || projection == "clustered") {
    if (models->count() > 0) useless("--ensemble", Group{projecting});
    if (!language_model.empty()) useless("--language-model", Group{projecting});
  }

  options.accept_top = accepted(accept);
  // The tokens that a relaxed rule keeps depend on the blocks, and must not depend on a clock.
  if (blockwise[0]->count() == 0 && !options.accept_top) options.adaptive = true;
  if (options.search == SearchName::blockwise) {
    auto const who = proposers.at(proposer);
    options.model_options.proposers = who, options.model_options.heads = heads, options.model_options.draft = draft;
    auto *const heads_file = blockwise[3], *const draft_model = blockwise[4];
    auto *const branches = blockwise[8], *const tree_nodes = blockwise[9];
    if (!who.heads) useless("--proposer " + proposer, Group{heads_file});
    if (!who.draft) useless("--proposer " + proposer, Group{draft_model});
    if (who.draft && draft.empty()) throw text::InputError("--proposer " + proposer + " needs --draft-model");
    if (who.heads && !language_model.empty())
      throw text::InputError("--language-model does not go with heads: --proposer must be draft or ngram, not " +
                             proposer);
    if (who.heads && models->count() > 0)
      throw text::InputError("--ensemble has no heads: --proposer must be draft or ngram, not " + proposer);
    if (options.model_options.projection == ProjectionName::clustered)
      throw text::InputError("--projection clustered does not go with --search blockwise: the tokens it omits would "
                             "depend on the guesses");
    options.model_options.remember = remember;
    if (!remember.empty() && options.accept_top)
      throw text::InputError("--remember does not go with --accept top:N: translations would depend on earlier ones");
    if (!remember.empty() && mpi)
      throw text::InputError("--remember does not go with translate_mpi: ranks would write one file");
    if (options.block == 1) useless("--block 1", Group{branches, tree_nodes});
    if (options.tree_nodes > 0 && options.branches == 1)
      throw text::InputError("--tree-nodes " + std::to_string(options.tree_nodes) +
                             " without --branches: a chain has none");
    if (options.minimum > options.block)
      throw text::InputError("--minimum " + std::to_string(options.minimum) + " is more than --block " +
                             std::to_string(options.block));
    if (options.minimum > 1 && !options.accept_top)
      throw text::InputError("--minimum " + std::to_string(options.minimum) +
                             " keeps guesses that are wrong, --accept exact none: choose --accept top:N");
    if (options.watermark.on() && options.accept_top)
      throw text::InputError("--watermark-key does not go with --accept " + accept +
                             ", which may keep a guess without the mark");
    for (auto const* mask : masks)
      if (mask->count() > 0 && options.accept_top)
        throw text::InputError(mask->get_name() + " does not go with --accept " + accept +
                               ", which may keep a masked guess");
  }

  if (!utility.empty()) options.mbr = utilities.at(utility);
  if (!preset.empty()) options.preset = presets.at(preset);
  options.schedule = schedules.at(schedule);
  if (options.schedule != ScheduleName::streaming) useless("--schedule " + schedule, streaming);
  if (!order.empty()) options.order = orders.at(order);
  options.list = n_best > 0 && !options.mbr;
  if (n_best > 0) options.candidates = n_best;
  else if (options.mbr) options.candidates = options.search == SearchName::sample ? 16 : options.width;
  if (options.mbr && options.candidates < 2)
    throw text::InputError("--mbr has no effect with one candidate: " +
                           std::string(n_best > 0          ? "--n-best"
                                       : options.grid_base ? "--grid-base"
                                                           : "--width") +
                           " must be 2 or more");

  if (models->count() > 0) options.models = split(ensemble);
  else options.models = {model.empty() ? default_model() : std::filesystem::path(model)};
  options.trace = trace;
  if (tracing->count() > 0 && models->count() == 0) options.model_options.attention = true;  // to be looked at
  if (tracing->count() > 0 && options.trace.extension() != ".html" && options.trace.extension() != ".jsonl")
    throw text::InputError("--trace: '" + trace + "' ends in neither .html nor .jsonl");
  if (tracing->count() > 0 && options.threads > 1)
    throw text::InputError("--trace follows one decoder: --threads must be 1, not " + std::to_string(options.threads));
  options.input = input, options.output = output, options.stats = stats, options.forbid = forbid;
  options.bias = bias;
  options.targets = score.empty() ? prefix : score;
  if (!shard.empty()) options.shard = parse_shard(shard);
  check_parts(options, mpi);
  options.said = said(app);
  return options;
}

}  // namespace translate
