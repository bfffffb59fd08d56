// SPDX-License-Identifier: Apache-2.0
// transcribe: WAV files in, their texts with times out, by Whisper under ONNX Runtime.
#include <text/bias.hpp>
#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <text/write_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include <whisper/transcriber.hpp>
#include <whisper/wav_file.hpp>

namespace whisper {

namespace {

using Write = void (*)(std::ostream&, Transcript const&);
std::map<std::string, Write> const formats{
    {"txt", write_txt}, {"srt", write_srt}, {"vtt", write_vtt}, {"json", write_json}};

struct Options {
  std::filesystem::path model, output, hotwords;
  std::vector<std::filesystem::path> files;
  std::string format = "txt";
  TranscribeOptions how{};
  std::vector<float> temperatures{};
  std::int32_t threads = 1;
  bool no_previous_text = false, progress = false;
};

/// Nothing where help was asked for and given.
std::optional<Options> parse(int argc, char const* const* argv) {
  Options o;
  text::CommandLine app("Writes down what is said in WAV files, with times, by Whisper.", "transcribe");
  app.add("MODEL", o.model, "FOLDER", "what tools/fetch-whisper has made")->required();
  app.add("FILE", o.files, "FILE", "WAV, 16-bit PCM; one or more")->required();
  app.add("--format", o.format, "NAME", "txt, srt, vtt or json (txt)")->check(text::one_of(formats));
  app.add("--output", o.output, "FOLDER", "write a file for each one there (standard output)");
  app.add("--language", o.how.language, "CODE", "en, de, ... (the likeliest one of the first 30 s)");
  app.add_flag("--translate", o.how.translate, "into English");
  app.add("--beam", o.how.beam, "N", "hypotheses in the beam; 1: greedy (5)")->check(text::whole(1, 100));
  app.add("--hotwords", o.hotwords, "FILE", "phrases to prefer: phrase, tab, boost");
  app.add("--temperature", o.temperatures, "X",
          "of the tries for a window, may be repeated (0, 0.2 ... 1); 0: the beam")
      ->check(text::number<float>([](float x) { return x >= 0 && x <= 2; }, " in [0, 2]"));
  app.add("--best-of", o.how.best_of, "N", "samples of a try at a temperature (5)")->check(text::whole(1, 100));
  app.add_flag("--word-timestamps", o.how.word_times, "times of words, too: json and vtt");
  app.add_flag("--no-previous-text", o.no_previous_text, "a window does not know the text before it");
  app.add("--batch", o.how.batch, "N", "files decoded together (4)")->check(text::whole(1, 1024));
  app.add("--threads", o.threads, "N", "of ONNX Runtime (1)")->check(text::whole(1, 1024));
  app.add_flag("--progress", o.progress, "say on standard error how far each file is");
  if (!app.read(argc, argv)) return std::nullopt;
  if (!o.temperatures.empty()) o.how.temperatures = o.temperatures;
  o.how.previous_text = !o.no_previous_text;
  if (o.how.word_times && o.format != "json" && o.format != "vtt")
    throw text::InputError("--word-timestamps: --format " + o.format + " has no words: must be json or vtt");
  std::set<std::filesystem::path> stems;
  for (auto const& file : o.files)
    if (!o.output.empty() && !stems.insert(file.stem()).second)
      throw text::InputError("--output: two files would be called " + file.stem().string() + "." + o.format);
  return o;
}

int run(Options o) {
  Vocabulary const vocabulary(o.model);
  if (!o.how.language.empty()) vocabulary.language(o.how.language);
  if (!o.hotwords.empty())
    o.how.hotwords = text::make_bias(text::read_bias(o.hotwords), false, [&](std::string const& phrase) {
      std::vector<sluice::Phrase> spellings;
      for (auto const& spelt : {" " + phrase, phrase})
        if (auto tokens = vocabulary.tokens(spelt); !tokens.empty()) spellings.push_back(std::move(tokens));
      return spellings;
    });
  // Read before any work, so that a file that is none is said at once; and once more in its turn, so that they are not all held.
  for (auto const& file : o.files) read_wav(file);
  if (!o.output.empty() && !std::filesystem::is_directory(o.output))
    throw text::InputError("--output: " + o.output.string() + ": is no folder");

  Ort::Env const environment(ORT_LOGGING_LEVEL_FATAL);  // errors are thrown, too
  Ort::SessionOptions settings;
  settings.SetIntraOpNumThreads(o.threads);
  auto const load = [&](char const* name) { return sluice::load_onnx(environment, o.model / name, settings); };
  sluice::OnnxGraphs const graphs{.decoder = load("decoder_model.onnx"), .encoder = load("encoder_model.onnx")};
  auto const bands = graphs.encoder.session->GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape().at(1);

  auto failed = false;
  auto const write = formats.at(o.format);
  Transcriber transcriber(graphs, vocabulary, static_cast<std::size_t>(bands), o.how);
  transcriber(
      o.files.size(), [&](std::size_t i) { return read_wav(o.files[i]); },
      [&](std::size_t i, Transcript transcript) {
        transcript.file = o.files[i].string();
        if (!transcript.problem.empty()) {
          std::fprintf(stderr, "transcribe: %s: %s\n", o.files[i].c_str(), transcript.problem.c_str());
          failed = true;
        }
        if (!o.output.empty()) {
          text::write_file(o.output / (o.files[i].stem().string() + "." + o.format),
                           [&](std::ostream& to) { write(to, transcript); });
          return;
        }
        std::ostringstream to;
        write(to, transcript);
        std::fputs(to.str().c_str(), stdout);
        std::fflush(stdout);
      },
      [&](std::size_t i, double done, double all) {
        if (o.progress) std::fprintf(stderr, "%s: %.1f of %.1f s\n", o.files[i].c_str(), done, all);
      });
  text::finish_standard_output();
  return failed ? 1 : 0;
}

}  // namespace

}  // namespace whisper

int main(int argc, char** argv) {
  return text::run_program("transcribe", [&]() -> int {
    auto options = whisper::parse(argc, argv);
    return options ? whisper::run(*std::move(options)) : 0;
  });
}
