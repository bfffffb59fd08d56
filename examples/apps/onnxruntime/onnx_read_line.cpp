// SPDX-License-Identifier: Apache-2.0
// onnx_read_line: the text of pictures of lines, by a recogniser of PP-OCR under ONNX Runtime: best path, beam, words, n-grams, hotwords.
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/onnxruntime_graph.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>

#include <text/bias.hpp>
#include <text/command_line.hpp>
#include <text/language_options.hpp>
#include <text/lines.hpp>
#include <text/ngrams.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <onnxruntime/recogniser.hpp>
#include <optional>
#include <read_line/png_file.hpp>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace onnx_read_line {

namespace {

using sluice::Token;

constexpr Token blank = 0;
using Rule = sluice::Rules<sluice::Lexicon, sluice::Bias>;

struct Options {
  std::filesystem::path recogniser, characters, lexicon, hotwords, frames;
  std::vector<std::filesystem::path> pictures;
  text::LanguageOptions language;
  std::int32_t beam = 0, n_best = 0, threads = 1;
};

/// Nothing where help was asked for and given.
/// Where the frames of a picture are written.
std::filesystem::path frames_of(Options const& options, std::filesystem::path const& picture) {
  return options.frames / picture.filename().replace_extension(".npy");
}

std::optional<Options> parse(int argc, char const* const* argv) {
  Options o;
  text::CommandLine app("Reads pictures of lines of text with a recogniser of PP-OCR.", "onnx_read_line");
  app.add("RECOGNISER", o.recogniser, "FILE", "ch_PP-OCRv4_rec_infer.onnx, or another")->required();
  app.add("PICTURE", o.pictures, "FILE", "PNG of a line; one or more")->required();
  app.add("--characters", o.characters, "FILE", "its labels, one in a line: ppocr_keys_v1.txt")->required();
  app.add("--beam", o.beam, "N", "prefixes in the beam (the best path alone, or 32)")->check(text::whole(1, 10000));
  app.add("--n-best", o.n_best, "N", "texts, with their scores")->check(text::whole(1, 10000));
  app.add("--lexicon", o.lexicon, "FILE", "words, one in a line: letters stand in these words alone");
  o.language.add_to(app, "characters");
  app.add("--hotwords", o.hotwords, "FILE", "words and phrases to prefer: phrase, tab, boost in nats");
  app.add("--frames", o.frames, "FOLDER",
          "write the log-probabilities of each picture, as ctc_decode reads them (.npy)");
  app.add("--threads", o.threads, "N", "of ONNX Runtime (1)")->check(text::whole(1, 1024));
  if (!app.read(argc, argv)) return std::nullopt;
  if (o.beam == 0 && (o.n_best > 0 || !o.lexicon.empty() || o.language.given() || !o.hotwords.empty())) o.beam = 32;
  if (!o.frames.empty())
    for (std::set<std::filesystem::path> names; auto const& picture : o.pictures)
      if (!names.insert(frames_of(o, picture)).second)
        throw text::InputError("--frames: " + frames_of(o, picture).string() +
                               " would be written twice: give pictures of different names");
  if (o.n_best > o.beam)
    throw text::InputError("--n-best: " + std::to_string(o.n_best) + ": the beam has " + std::to_string(o.beam));
  return o;
}

/// Characters as labels. Those that are no letters of ASCII stand between words, unless a word of the lexicon has them.
class Alphabet {
 public:
  explicit Alphabet(std::vector<std::string> const& labels) : labels_(labels) {
    for (std::size_t i = 1; i < labels.size(); ++i) tokens_.emplace(labels[i], static_cast<Token>(i));
  }
  std::vector<std::string> const& labels() const { return labels_; }
  std::string text(std::vector<Token> const& tokens) const {
    std::string out;
    for (auto const token : tokens) out += labels_[static_cast<std::size_t>(token)];
    return out;
  }
  /// Nothing if a character is none of the labels.
  std::vector<Token> tokens(std::string_view text) const {
    std::vector<Token> out;
    while (!text.empty()) {
      auto length = std::size_t{1};
      while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;  // UTF-8
      auto const found = tokens_.find(std::string(text.substr(0, length)));
      if (found == tokens_.end()) return {};
      out.push_back(found->second), text.remove_prefix(length);
    }
    return out;
  }
  sluice::Lexicon lexicon(std::filesystem::path const& file) const {
    std::vector<sluice::Spelling> spellings;
    std::vector<bool> of_words(labels_.size(), false);
    for (auto const& line : text::read_lines(file)) {
      if (line.empty()) continue;
      spellings.push_back({line, tokens(line)});
      if (spellings.back().tokens.empty())
        throw text::InputError(file.string() + ": '" + line + "' has a character that this model does not read");
      for (auto const token : spellings.back().tokens) of_words[static_cast<std::size_t>(token)] = true;
    }
    if (spellings.empty()) throw text::InputError(file.string() + ": holds no word");
    std::vector<Token> separators;
    for (std::size_t i = 1; i < labels_.size(); ++i) {
      auto const c = labels_[i].size() == 1 ? labels_[i][0] : 'x';
      if (!of_words[i] && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')) separators.push_back(static_cast<Token>(i));
    }
    return sluice::Lexicon(std::move(spellings), separators);
  }

 private:
  std::vector<std::string> const& labels_;
  std::unordered_map<std::string, Token> tokens_;
};

/// What a beam of texts is guided by.
struct Guides {
  Rule rule{};
  std::variant<sluice::NoRule, sluice::WordModel<>, sluice::NGramModel<>> language{};

  Guides(Options const& options, Alphabet const& alphabet) {
    auto const terms = options.hotwords.empty() ? std::vector<text::BiasTerm>() : text::read_bias(options.hotwords);
    rule =
        Rule(options.lexicon.empty() ? sluice::Lexicon() : alphabet.lexicon(options.lexicon),
             text::make_bias(terms, false, [&](std::string const& phrase) {
               auto tokens = alphabet.tokens(phrase);
               return tokens.empty() ? std::vector<sluice::Phrase>() : std::vector<sluice::Phrase>{std::move(tokens)};
             }));
    auto const& [file, of, weight, bonus, unknown] = options.language;
    if (file.empty()) return;
    auto const table = text::load_ngrams(file);
    auto const& labels = alphabet.labels();
    sluice::FusionWeights const weights{.weight = weight, .bonus = bonus, .unknown = unknown};
    if (of == "words") language = sluice::WordModel<>(table, sluice::TokenBytes(labels), weights);
    else language = sluice::NGramModel<>(table, text::character_words(table, labels, file), weights);
  }
};

std::vector<sluice::Result> read(Options const& options, Guides const& guides, std::vector<Frames> const& frames) {
  std::vector<sluice::Result> results;
  if (options.beam == 0) {
    for (auto const& one : frames)
      results.emplace_back().hypotheses.push_back(sluice::ctc_best_path(
          sluice::scores(one.log_probs.data(), one.count, one.labels, sluice::Kind::log_probs), blank));
    return results;
  }
  sluice::CtcFrames<> model(static_cast<std::int32_t>(frames[0].labels), blank, sluice::Kind::log_probs);
  std::vector<sluice::MatrixView<float const>> sources;
  for (auto const& one : frames) sources.push_back(one.view());
  return std::visit(
      [&]<class L>(L const& language) {
        sluice::CtcBeamSearch<Rule, L> const beam{.width = options.beam,
                                                  .n_best = (std::max)(1, options.n_best),
                                                  .rule = guides.rule,
                                                  .language_model = language};
        return sluice::decode(model, sources, beam, sluice::Batched{.size = 16});
      },
      guides.language);
}

int run(Options const& options) {
  std::vector<read_line::Picture> pictures;
  for (auto const& file : options.pictures) pictures.push_back(read_line::read_png(file));
  Ort::Env const environment(ORT_LOGGING_LEVEL_FATAL);  // errors are thrown, too
  Ort::SessionOptions settings;
  settings.SetIntraOpNumThreads(options.threads);
  Recogniser const recogniser(sluice::load_onnx(environment, options.recogniser, settings), options.characters);
  Alphabet const alphabet(recogniser.labels());
  Guides const guides(options, alphabet);
  std::vector<Frames> frames;
  for (auto const& picture : pictures) frames.push_back(recogniser.read(picture));
  if (!options.frames.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.frames, error);
    for (std::size_t i = 0; i < frames.size(); ++i) frames[i].write(frames_of(options, options.pictures[i]));
  }
  auto const results = read(options, guides, frames);
  auto failed = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) {
      std::fprintf(stderr, "onnx_read_line: %s: %s\n", options.pictures[i].c_str(), results[i].message.c_str());
      std::printf("\n");
      failed = true;
      continue;
    }
    for (auto const& hypothesis : results[i].hypotheses) {
      if (options.n_best > 0) std::printf("%.4f\t", hypothesis.score);
      std::printf("%s\n", alphabet.text(hypothesis.tokens).c_str());
    }
  }
  text::finish_standard_output();
  return failed ? 1 : 0;
}

}  // namespace

}  // namespace onnx_read_line

int main(int argc, char** argv) {
  return text::run_program("onnx_read_line", [&]() -> int {
    auto const options = onnx_read_line::parse(argc, argv);
    return options ? onnx_read_line::run(*options) : 0;
  });
}
