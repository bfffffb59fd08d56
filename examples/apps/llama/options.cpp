// SPDX-License-Identifier: Apache-2.0

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <cmath>
#include <iostream>
#include <limits>
#include <llama/options.hpp>
#include <map>
#include <string>

namespace generate {

namespace {

std::map<std::string, SearchName> const searches{{"greedy", SearchName::greedy},
                                                 {"beam", SearchName::beam},
                                                 {"diverse", SearchName::diverse},
                                                 {"sample", SearchName::sample}};

/// \throws text::InputError  for options that do not go together
void check(Options const& o) {
  auto const refuse = [](std::string const& what) { throw text::InputError(what); };
  auto const beams = o.search == SearchName::beam || o.search == SearchName::diverse;
  if (!o.phrases.empty() && o.search != SearchName::beam) refuse("--phrase needs --search beam");
  if (o.n_best > 1 && o.search == SearchName::greedy) refuse("--n-best needs --search beam, diverse or sample");
  if (o.search == SearchName::beam && o.n_best > o.width)
    refuse("--n-best = " + std::to_string(o.n_best) + ": must be at most --width, " + std::to_string(o.width));
  if (o.search == SearchName::diverse && o.n_best > o.width * o.groups)
    refuse("--n-best = " + std::to_string(o.n_best) + ": must be at most --width times --groups, " +
           std::to_string(o.width * o.groups));
  if (o.blockwise() && beams) refuse("--lookup and --draft need --search greedy or sample");
  if (o.blockwise() && o.n_best > 1)
    refuse("--lookup and --draft give one output, not --n-best " + std::to_string(o.n_best));
  if (o.samplers.given && (o.search != SearchName::sample || o.blockwise()))
    refuse("samplers other than temperature, top-k, top-p, min-p and typical need --search sample without guesses");
  if (o.lookup && !o.draft.empty()) refuse("--lookup and --draft: one of them guesses");
  if (o.stream && o.n_best > 1) refuse("--stream shows one output, not --n-best " + std::to_string(o.n_best));
  if (o.stream && o.json) refuse("--stream and --json: one of them is the output");
  if (!o.structure.grammar.empty() + !o.structure.json_schema.empty() + o.structure.regex.has_value() > 1)
    refuse("--grammar, --json-schema and --regex: one of them says what outputs obey");
  if (o.min_length > o.max_length)
    refuse("--min-length = " + std::to_string(o.min_length) + ": must be at most --max-length");
  if (o.branches > 1 && !o.blockwise())
    refuse("--branches = " + std::to_string(o.branches) + ": needs --lookup or --draft");
  auto const sequences = std::int64_t{o.parallel} * o.slot_count() + o.leaves();
  if (sequences > 256)
    refuse("--parallel = " + std::to_string(o.parallel) + ": needs " + std::to_string(sequences) +
           " sequences, and llama.cpp has 256 at most");
  if (sequences > o.batch)
    refuse("--batch = " + std::to_string(o.batch) + ": must be at least " + std::to_string(sequences));
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  Options o;
  std::string search = "greedy";
  std::filesystem::path lines, file, bias;

  text::CommandLine app("Continues prompts with a model of llama.cpp.", "llama_generate");
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add(name, value, type, what);
  };
  auto const count = [&](char const* name, std::int32_t& value, std::int32_t lowest, char const* what) {
    return add(name, value, "N", what)->check(text::whole(static_cast<std::uint64_t>(lowest), many));
  };

  add("prompt", o.prompts, "TEXT", "prompts to continue; without any, standard input, one prompt per line");
  add("--lines", lines, "FILE", "prompts, one per line");
  add("--file", file, "FILE", "use the whole file as one prompt");
  add("--system", o.system, "TEXT", "system prompt, put before every prompt; fed once");
  app.add_flag("--chat", o.chat,
               "prompts are messages of a user, --system of the system: apply the model's chat template");
  add("--chat-template-file", o.chat_template, "FILE", "--chat: a chat template (Jinja) in place of the model's");
  app.add_flag("--special", o.special, "parse <|names|> of control tokens in prompts; without, they are plain text");

  app.set_help_flag("-h,--help", "this help");
  app.option_defaults()->group("Model");
  add("-m,--model", o.model, "GGUF", "the model")->required();
  count("--context", o.context, 1, "size of the KV cache: cells for the tokens of all sequences (4096)");
  count("--parallel", o.parallel, 1, "prompts at a time (4)");
  count("--threads", o.threads, 1, "threads of llama.cpp (as many as processors)");
  count("--batch", o.batch, 1, "maximum number of tokens in one call of llama.cpp (2048)");
  count("--chunk", o.chunk, 1, "chunked prefill: maximum number of prompt tokens fed in one step (no bound)");
  add("--share", o.share, "N", "prefix caching: tokens kept of ended prompts (0; with --system half of --context)")
      ->check(text::whole(0, std::numeric_limits<std::int64_t>::max()));
  count("--gpu-layers", o.gpu_layers, 0, "layers on a device (all)");
  add("--end", o.ends, "ID", "an additional token that ends an output; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
  add("--backends", o.backends, "DIR", "folder of ggml's backends");
  app.add_flag("--split", o.split, "give each sequence an equal part of the cells instead of sharing them");
  app.add_flag("--no-repack", o.no_repack,
               "weights as they are in the file, without llama.cpp's own layouts: where its AMX products crash");
  app.add_flag(
      "--exact", o.exact,
      "float32 cache, no flash attention: the batch changes no token (weights in float32), no bit (with --split)");

  app.option_defaults()->group("Search");
  add("--search", search, "NAME", "greedy, beam, diverse or sample (greedy)")->check(text::one_of(searches));
  count("--min-length", o.min_length, 0, "minimum number of generated tokens (0)");
  auto const* const most =
      count("--max-length", o.max_length, 0,
            "maximum number of generated tokens (128; 512 with --grammar, --json-schema, --regex)");
  count("--n-best", o.n_best, 1, "outputs of each prompt (1)");
  count("--width", o.width, 1, "width of the beam, or of each group (4)");
  count("--groups", o.groups, 1, "number of groups of diverse beams (2)");
  add("--alpha", o.alpha, "X", "beams: scores are divided by length to this power (1)");
  add("--temperature", o.temperature, "X", "samples (1)");
  count("--top-k", o.top_k, 0, "samples: from the N most probable tokens (all)");
  add("--top-p", o.top_p, "P", "samples: from the most probable tokens that hold P (1)");
  add("--min-p", o.min_p, "P", "samples: from tokens at least P times as probable as the best (0)");
  add("--typical", o.typical, "P", "samples: from the most typical tokens that hold P (1)");
  add("--seed", o.seed, "N", "seed of sampling (0)");
  auto samplers = o.samplers.add_by<CLI::Option>(add);
  samplers.push_back(add("--dry-sequence-breaker", o.breakers, "TEXT",
                         "samples: DRY does not match across it; may be repeated (\\n : \" *)")
                         ->allow_extra_args(false)
                         ->take_all());
  add("--phrase", o.phrases, "TEXT", "beams: a phrase that the output must contain; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
  add("--bias", bias, "FILE", "phrases that outputs should rather contain: phrase, tab, boost in nats");
  app.add_flag("--bias-once", o.bias_once, "count each such phrase only once in an output");
  auto const finite = [] { return text::number<double>([](double x) { return std::isfinite(x); }, ""); };
  add("--language-model", o.language_model, "FILE",
      "add the scores of n-grams of words: ARPA, or a file of build_ngram");
  auto const* const weight =
      add("--language-weight", o.language_weight, "A", "weight of these scores (0.2)")->check(finite());
  auto const* const bonus =
      add("--word-bonus", o.word_bonus, "B", "added for each token that begins with a space (0)")->check(finite());
  add("--stop", o.stops, "TEXT", "stop string: ends an output and is not shown; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
  add("--grammar", o.structure.grammar, "FILE", "outputs match this grammar, in llama.cpp's notation (GBNF)");
  add("--json-schema", o.structure.json_schema, "FILE", "outputs are JSON that this schema accepts");
  add("--regex", o.structure.regex, "RE", "outputs match this as a whole");
  auto const of_json = text::add_json_flags<CLI::Option>(o.structure.json, add);
  app.add_flag("--lookup", o.lookup, "speculative decoding: guess what followed the same tokens before");
  add("--draft", o.draft, "GGUF", "speculative decoding: guess with a smaller model of the same vocabulary");
  auto const* const block =
      count("--block", o.block, 1, "--lookup, --draft: always verify N tokens at once (as many as pay, up to 8)");
  auto const* const adaptive = app.add_flag("--adaptive", o.adaptive, "with --block N: as many as pay, up to N");
  count("--branches", o.branches, 1, "number of alternative paths of such guesses (1)");

  app.option_defaults()->group("Output");
  app.add_flag("--stream", o.stream, "show an output while it grows");
  app.add_flag("--json", o.json, "print one JSON object per line for each output");
  app.add_flag("--statistics", o.statistics, "print statistics on standard error");

  if (!app.read(argc, argv)) return std::nullopt;
  o.search = searches.at(search);
  for (auto const* const option : samplers) o.samplers.given = o.samplers.given || option->count() > 0;
  for (auto const& prompt : o.prompts)
    if (!text::valid_utf8(prompt)) throw text::InputError("prompt: not valid UTF-8");
  if (!lines.empty())
    for (auto& line : text::read_lines(lines)) o.prompts.push_back(std::move(line));
  if (!file.empty()) o.prompts.push_back(text::read_text(file));
  if (!bias.empty()) o.biased = text::read_bias(bias);
  else if (o.bias_once) throw text::InputError("--bias-once has no effect without --bias");
  for (auto const* const option : {weight, bonus})
    if (o.language_model.empty() && option->count() > 0)
      throw text::InputError(option->get_name() + " has no effect with no --language-model");
  o.adaptive = adaptive->count() > 0 || block->count() == 0;
  auto const structured = !o.structure.grammar.empty() || !o.structure.json_schema.empty() || o.structure.regex;
  if (structured && most->count() == 0) o.max_length = 512;
  for (auto const* const option : of_json)
    if (o.structure.json_schema.empty() && option->count() > 0)
      throw text::InputError(option->get_name() + " has no effect without --json-schema");
  if (!o.chat_template.empty() && !o.chat) throw text::InputError("--chat-template-file has no effect without --chat");
  if (o.chat && o.special) throw text::InputError("--chat and --special: --chat writes the control tokens itself");
  check(o);
  auto& sample = o.samplers.sample;
  sample.temperature = o.temperature, sample.top_k = o.top_k, sample.top_p = o.top_p, sample.min_p = o.min_p;
  sample.typical = o.typical, sample.samples = o.n_best, sample.length = {.min = o.min_length, .max = o.max_length};
  if (o.search == SearchName::sample) o.samplers.check_effects(samplers), o.samplers.check();
  if (o.prompts.empty()) o.prompts = text::read_lines(std::cin, "standard input");
  return o;
}

}  // namespace generate
