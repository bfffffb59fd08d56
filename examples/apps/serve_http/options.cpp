// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed_matrix.hpp>

#include <text/command_line.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <map>
#include <serve_http/options.hpp>
#include <string>

namespace serve {

std::optional<Options> parse(int argc, char const* const* argv) {
  Options options;
  std::string proposer, precision = "float32";
  text::CommandLine app(
      "Translates German to English over HTTP: a page at /, POST /translate, POST /v1/completions, GET /metrics.",
      "serve_http");
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  auto const range = [](auto low, auto high) { return CLI::Range(low, high).description(""); };
  auto& translator = options.translator;
  add("--model", translator.model, "DIR|FILE", "folder of model.safetensors and spm.model, or the former");
  add("--name", translator.name, "NAME", "name of the model, for /v1/models (sluice)");
  add("--size", translator.size, "N", "sentences decoded together (128)")->check(range(1, 100000));
  add("--threads", translator.threads, "N", "decoders (1)")->check(range(1, 1024));
  add("--precision", precision, "NAME",
      "precision of products: float32, bfloat16, int8, or auto: bfloat16 if fast (float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8", "auto"}).description(""));
  add("--proposer", proposer, "NAME", "heads or ngram: allow blockwise search, with guesses from these")
      ->check(CLI::IsMember({"heads", "ngram"}).description(""));
  auto const finite = [] { return text::number<double>([](double x) { return std::isfinite(x); }, ""); };
  std::string language_model;
  add("--language-model", language_model, "FILE", "add the scores of n-grams of pieces (build_ngram) to every search");
  auto const* const weight =
      add("--language-weight", translator.weights.language_weight, "A", "weight of these scores (0.2)")
          ->check(finite());
  auto const* const bonus =
      add("--word-bonus", translator.weights.word_bonus, "B", "added for each word (0)")->check(finite());
  auto& offer = translator.offer;
  OfferFlags offers(app, offer);
  ServiceFlags flags(app, options.service, "--share");
  if (!app.read(argc, argv)) return std::nullopt;
  flags.finish(), offers.finish();
  for (auto const* const option : {weight, bonus})
    if (language_model.empty() && option->count() > 0)
      throw text::InputError(option->get_name() + " has no effect with no --language-model");
  if (!language_model.empty() && proposer == "heads")
    throw text::InputError("--language-model does not go with heads: --proposer must be ngram, not heads");
  translator.weights.language_model = language_model;
  std::map<std::string, sluice::Precision> const precisions{{"float32", sluice::Precision::float32},
                                                            {"bfloat16", sluice::Precision::bfloat16},
                                                            {"int8", sluice::Precision::int8},
                                                            {"auto", sluice::automatic_precision()}};
  translator.weights.layers = translator.weights.output = precisions.at(precision);
  translator.weights.proposers = {.heads = proposer == "heads", .ngram = proposer == "ngram"};
  translator.weights.kept_bytes = std::size_t{8} << 20;  // the largest batch may have taken 200 MB
  translator.queue = options.service.queue;
  translator.weights.remember = offer.remember.file, translator.weights.remember_tokens = offer.remember.tokens;
  offer.guesses = !proposer.empty();
  return options;
}

}  // namespace serve
