// SPDX-License-Identifier: Apache-2.0
// translate_ct2: sentences in, translations out, by a model of CTranslate2 under any search of sluice.
#include <text/lines.hpp>
#include <text/write_file.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctranslate2/decoding.hpp>
#include <ctranslate2/models/sequence_to_sequence.h>
#include <ctranslate2/options.hpp>
#include <ctranslate2/spelling.hpp>
#include <ctranslate2/types.h>
#include <exception>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace translate_ct2 {

namespace {

using Pieces = std::vector<std::vector<std::string>>;

std::shared_ptr<ctranslate2::models::Model const> load(Options const& options) {
  try {
    if (!ctranslate2::models::contains_model(options.model.string()))
      throw text::InputError(options.model.string() + ": has no model.bin");
    auto model = ctranslate2::models::Model::load(options.model.string(), ctranslate2::str_to_device(options.device), 0,
                                                  ctranslate2::str_to_compute_type(options.type));
    // Before any input is read: a model of speech, or a decoder alone.
    if (std::dynamic_pointer_cast<ctranslate2::models::SequenceToSequenceModel const>(model) == nullptr)
      throw text::InputError(options.model.string() + ": is no model that translates text");
    return model;
  } catch (std::invalid_argument const& error) {  // a device or type that is not available
    throw text::InputError(error.what());
  }
}

/// How many n-best lists differ from those of CTranslate2's own loop.
std::size_t differences(Options const& options, ctranslate2::models::Model const& model, Pieces const& sentences,
                        std::vector<Output> const& outputs) {
  ctranslate2::TranslationOptions own;
  own.beam_size = options.search == SearchName::greedy ? 1 : static_cast<std::size_t>(options.width);
  own.num_hypotheses = static_cast<std::size_t>(options.n_best);
  own.length_penalty = static_cast<float>(options.length_penalty);
  own.max_decoding_length = static_cast<std::size_t>(options.max_length);
  auto const results = model.as_sequence_to_sequence()->translate(sentences, {}, own);
  std::size_t different = 0;
  for (std::size_t i = 0; i < results.size(); ++i) different += results[i].hypotheses != outputs[i].pieces;
  return different;
}

int translate_lines(Options const& options) {
  auto const loaded = load(options);
  Spelling const spelling(options);
  auto const lines =
      options.input.empty() ? text::read_lines(std::cin, "standard input") : text::read_lines(options.input);
  Pieces sentences;
  std::vector<std::size_t> number;  // of each sentence's line
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (auto pieces = spelling.pieces(lines[i]); !pieces.empty())
      sentences.push_back(std::move(pieces)), number.push_back(i);

  auto const begin = std::chrono::steady_clock::now();
  auto const outputs = decode_all(options, loaded, sentences);
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;

  std::vector<std::string> printed(lines.size());
  std::size_t failed = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto const& output = outputs[i];
    if (!output.problem.empty()) {
      std::fprintf(stderr, "translate_ct2: line %zu: %s\n", number[i] + 1, output.problem.c_str());
      ++failed;
    }
    for (std::size_t k = 0; k < output.pieces.size(); ++k) {
      char score[32] = "";
      if (options.scores) std::snprintf(score, sizeof score, "%.6f\t", output.scores[k]);
      printed[number[i]] += (k > 0 ? "\n" : "") + (score + spelling.text(output.pieces[k]));
    }
  }
  if (options.output.empty()) {
    for (auto const& line : printed) std::printf("%s\n", line.c_str());
  } else {
    text::write_file(options.output, [&](std::ostream& stream) {
      for (auto const& line : printed) stream << line << '\n';
    });
  }
  if (options.time) std::fprintf(stderr, "%zu sentences, %.3f seconds\n", sentences.size(), took.count());
  if (options.check && failed == 0) {
    auto const different = differences(options, *loaded, sentences, outputs);
    std::fprintf(stderr, "%zu of %zu as CTranslate2's own\n", sentences.size() - different, sentences.size());
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace

}  // namespace translate_ct2

int main(int argc, char** argv) {
  auto const complain = [](char const* what, int code) {
    std::fprintf(stderr, "translate_ct2: %s\n", what);
    return code;
  };
  try {
    auto const options = translate_ct2::parse(argc, argv);
    return options ? translate_ct2::translate_lines(*options) : 0;
  } catch (text::InputError const& error) {
    return complain(error.what(), 2);
  } catch (std::exception const& error) {
    return complain(error.what(), 1);
  }
}
