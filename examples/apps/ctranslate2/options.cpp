// SPDX-License-Identifier: Apache-2.0
#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <ctranslate2/options.hpp>
#include <limits>
#include <map>
#include <string>

namespace translate_ct2 {

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  std::map<std::string, SearchName> const searches{
      {"greedy", SearchName::greedy}, {"beam", SearchName::beam}, {"sample", SearchName::sample}};
  std::map<std::string, std::optional<sluice::Precision>> const precisions{{"float32", sluice::Precision::float32},
                                                                           {"bfloat16", sluice::Precision::bfloat16},
                                                                           {"int8", sluice::Precision::int8},
                                                                           {"own", {}}};
  Options o;
  std::string search = "beam", precision = "float32";
  text::CommandLine app("Translates sentences with a model of CTranslate2.", "translate_ct2");
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add(name, value, type, what);
  };
  auto const count = [&](char const* name, auto& value, std::int32_t lowest, char const* what) {
    return add(name, value, "N", what)->check(text::whole(static_cast<std::uint64_t>(lowest), many));
  };
  add("MODEL", o.model, "DIR", "folder of model.bin; with sentencepiece.model, or source.spm and target.spm, for text")
      ->required();
  add("--input", o.input, "FILE", "sentences, one per line (standard input)");
  add("--output", o.output, "FILE", "translations, one per line (standard output)");
  app.add_flag("--pieces", o.pieces, "input and output lines are pieces separated by spaces");
  add("--device", o.device, "NAME", "cpu or cuda (cpu)")->check(text::one_of({"cpu", "cuda"}));
  add("--type", o.type, "NAME", "CTranslate2's compute type: default, float32, int8 ... (default)");
  add("--precision", precision, "NAME",
      "precision of the output layer: float32, bfloat16, int8; own: CTranslate2's (float32)")
      ->check(text::one_of(precisions));
  add("--search", search, "NAME", "greedy, beam or sample (beam)")->check(text::one_of(searches));
  count("--width", o.width, 1, "hypotheses in the beam (5)");
  count("--n-best", o.n_best, 1, "number of outputs per sentence (1)");
  add("--length-penalty", o.length_penalty, "X", "scores are divided by length to the power of this (1)");
  count("--max-length", o.max_length, 1, "maximum number of tokens of an output (256)");
  add("--temperature", o.temperature, "X", "temperature of sampling (1)")
      ->check(text::number<float>([](float x) { return x > 0; }, " > 0"));
  count("--top-k", o.top_k, 0, "sample from the N most probable tokens; 0: from all (0)");
  add("--top-p", o.top_p, "X", "sample from the most probable tokens that hold X (1)")
      ->check(text::number<float>([](float x) { return x >= 0 && x <= 1; }, " in [0, 1]"));
  add("--seed", o.seed, "N", "seed of sampling (0)");
  count("--batch", o.batch, 1, "sentences decoded together (64)");
  app.add_flag("--streaming", o.streaming, "continuous batching: admit sentences as others end");
  app.add_flag("--scores", o.scores, "print scores before outputs");
  app.add_flag("--check", o.check, "compare the outputs of greedy and beam with CTranslate2's own loop");
  app.add_flag("--time", o.time, "print how long decoding took");
  if (!app.read(argc, argv)) return std::nullopt;
  o.search = searches.at(search), o.precision = precisions.at(precision);
  auto const refuse = [](std::string const& what) { throw text::InputError(what); };
  if (o.search == SearchName::greedy && o.n_best > 1) refuse("--n-best needs --search beam or sample");
  if (o.search == SearchName::beam && o.n_best > o.width)
    refuse("--n-best = " + std::to_string(o.n_best) + ": must be at most --width, " + std::to_string(o.width));
  if (o.check && o.search == SearchName::sample) refuse("--check needs --search greedy or beam");
  return o;
}

}  // namespace translate_ct2
