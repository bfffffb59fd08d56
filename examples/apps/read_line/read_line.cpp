// SPDX-License-Identifier: Apache-2.0
// read_line: the text of pictures of lines, by CTC: best path, prefix beam with words, n-grams, boosted names or a pattern, exactly.

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>
#include <sluice/frames/ctc_best_path.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/ctc_prefix_model.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/ngram/arpa.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/search/bias/bias.hpp>
#include <sluice/search/exact/exact_search.hpp>
#include <sluice/search/frames/ctc_beam_search.hpp>
#include <sluice/search/frames/lexicon.hpp>
#include <sluice/search/frames/text_ngrams.hpp>
#include <sluice/search/rule/rule.hpp>

#include <text/bias.hpp>
#include <text/grammar.hpp>
#include <text/lines.hpp>
#include <text/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <read_line/options.hpp>
#include <read_line/picture.hpp>
#include <read_line/png_file.hpp>
#include <read_line/reader.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace read_line {

namespace {

using sluice::Token;

enum Code : int { fine = 0, picture_failed = 1, bad_input = 2 };

constexpr Token blank = 0;
using Rule = sluice::Rules<sluice::Lexicon, sluice::Bias, sluice::Structure>;
using Beam = sluice::CtcBeamSearch<Rule, sluice::TokenNGrams>;

/// Labels as text, and text as labels.
class Alphabet {
 public:
  explicit Alphabet(std::vector<std::string> const& labels) : labels_(labels) {}
  std::int32_t size() const { return static_cast<std::int32_t>(labels_.size()); }
  std::vector<std::string> const& labels() const { return labels_; }
  std::string text(std::vector<Token> const& tokens) const {
    std::string out;
    for (auto const token : tokens)
      if (token < size()) out += labels_[static_cast<std::size_t>(token)];  // the exact search's eos is none of them
    return out;
  }
  /// Nothing if a character is none of the alphabet.
  std::vector<Token> tokens(std::string const& text) const {
    std::vector<Token> out;
    for (auto const& c : characters(text)) {
      auto const found = std::find(labels_.begin() + 1, labels_.end(), c);
      if (found == labels_.end()) return {};
      out.push_back(static_cast<Token>(found - labels_.begin()));
    }
    return out;
  }
  static bool letter(std::string const& c) {
    return c.size() > 1 ? c != "€" : (c >= "a" && c <= "z") || (c >= "A" && c <= "Z");
  }

 private:
  std::vector<std::string> labels_;
};

/// Words as they are, and with a capital.
sluice::Lexicon read_lexicon(std::filesystem::path const& file, Alphabet const& alphabet) {
  if (file.empty()) return {};
  std::vector<sluice::Spelling> spellings;
  auto const lines = text::read_lines(file);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    for (auto const& c : characters(lines[i]))
      if (!Alphabet::letter(c) || alphabet.tokens(c).empty())
        throw text::InputError(file.string() + ":" + std::to_string(i + 1) + ": '" + lines[i] + "': '" + c +
                               "' is no letter that this model reads");
    for (auto const& word : text::cases(lines[i])) spellings.push_back({lines[i], alphabet.tokens(word)});
  }
  if (spellings.empty()) throw text::InputError(file.string() + ": holds no word");
  std::vector<Token> separators;
  for (Token token = 1; token < alphabet.size(); ++token)
    if (!Alphabet::letter(alphabet.labels()[static_cast<std::size_t>(token)])) separators.push_back(token);
  return sluice::Lexicon(std::move(spellings), separators);
}

sluice::TokenNGrams read_ngrams(Options const& options, Alphabet const& alphabet) {
  auto const& file = options.ngram;
  if (file.empty()) return {};
  auto const table = [&] {
    std::ifstream stream(file, std::ios::binary);
    if (!stream || std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
    char start[8]{};
    stream.read(start, sizeof start);
    auto const text =
        std::string_view(start, static_cast<std::size_t>(stream.gcount())).find('\\') != std::string_view::npos;
    try {
      if (!text) return sluice::NGramTable::open(file.string());
      stream.clear(), stream.seekg(0);
      return sluice::read_arpa(stream);
    } catch (std::runtime_error const& error) {
      throw text::InputError(file.string() + ": " + error.what());
    }
  }();
  std::vector<sluice::Word> words;
  std::int32_t known = 0;
  for (auto const& label : alphabet.labels()) {
    auto const word = label.empty() ? table.unknown() : table.word(label == " " ? "_" : label == "_" ? "<unk>" : label);
    words.push_back(word), known += word != table.unknown();
  }
  if (known < 10)
    throw text::InputError(file.string() + ": has n-grams of " + std::to_string(known) +
                           " of the characters: its words must be single characters, with _ for the space");
  return {table, words, {.weight = options.ngram_weight, .bonus = options.ngram_bonus}};
}

sluice::Structure read_pattern(Options const& options, Alphabet const& alphabet) {
  if (!options.regex) return {};
  return {
      text::read_grammar({.regex = options.regex}),
      sluice::TokenTrie(sluice::TokenBytes(alphabet.labels()), sluice::ctc_text_vocabulary(alphabet.size(), blank))};
}

/// Results, in the order of the sources.
template <class Model, class Search>
std::vector<sluice::Result> all(Model& model, std::vector<Frames> const& pictures, Search const& search,
                                text::Trace trace = {}) {
  sluice::Decoder decoder(model, search, sluice::Batched{8}, sluice::LogSoftmaxTopK(), trace);
  for (auto const& frames : pictures)
    decoder.submit({.source = sluice::scores(frames.logits.data(), frames.count, frames.labels)});
  std::vector<sluice::Result> results(pictures.size());
  for (auto more = true; more;) {
    more = decoder.step();
    for (sluice::Result result; decoder.poll(result);) results[static_cast<std::size_t>(result.id)] = result;
  }
  return results;
}

std::vector<sluice::Result> search(Options const& options, Alphabet const& alphabet, Beam const& beam,
                                   std::vector<Frames> const& pictures, sluice::TraceFile* trace) {
  if (options.search == Options::Search::best_path) {
    std::vector<sluice::Result> results(pictures.size());
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      auto const& frames = pictures[i];
      auto const lines = sluice::scores(frames.logits.data(), frames.count, frames.labels);
      results[i].hypotheses.push_back(sluice::ctc_best_path(lines, blank));
    }
    return results;
  }
  if (options.search == Options::Search::exact) {
    sluice::CtcPrefixModel<> model(alphabet.size(), blank);
    std::int32_t longest = 1;
    for (auto const& frames : pictures) longest = (std::max)(longest, static_cast<std::int32_t>(frames.count) + 1);
    return all(model, pictures,
               sluice::ExactSearch{.n_best = (std::max)(1, options.n_best), .length = {.max = longest}});
  }
  sluice::CtcFrames<> model(alphabet.size(), blank);
  return all(model, pictures, beam, {trace});
}

Code run(Options const& options) {
  Reader const reader(options.model / "model.safetensors");
  Alphabet const alphabet(reader.labels());
  Beam beam{.width = options.beam, .n_best = (std::max)(1, options.n_best)};
  auto const bias = options.bias.empty() ? std::vector<text::BiasTerm>() : text::read_bias(options.bias);
  beam.rule = Rule(read_lexicon(options.lexicon, alphabet),
                   text::make_bias(bias, false,
                                   [&](std::string const& phrase) {
                                     auto tokens = alphabet.tokens(phrase);
                                     return tokens.empty() ? std::vector<sluice::Phrase>()
                                                           : std::vector<sluice::Phrase>{std::move(tokens)};
                                   }),
                   read_pattern(options, alphabet));
  beam.language_model = read_ngrams(options, alphabet);
  std::vector<Picture> lines;
  for (auto const& name : options.pictures) lines.push_back(to_line(read_png(name)));
  std::vector<Frames> frames;
  for (auto const& line : lines) frames.push_back(reader.read(line));

  std::ofstream stream;
  std::optional<sluice::TracePage> page;
  std::optional<sluice::TraceFile> trace;
  if (!options.trace.empty()) {
    stream.open(options.trace, std::ios::binary);
    if (!stream) throw text::InputError("--trace: " + options.trace.string() + ": cannot be written");
    if (options.trace.extension() == ".html") page.emplace(stream);
    trace.emplace(stream, [&](Token token) { return alphabet.labels()[static_cast<std::size_t>(token)]; });
  }
  auto const results = search(options, alphabet, beam, frames, trace ? &*trace : nullptr);
  if (page) page->finish();
  if (trace && !stream.flush()) throw std::runtime_error(options.trace.string() + ": cannot be written");

  auto code = fine;
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& result = results[i];
    if (!result.ok() || result.hypotheses.empty()) {
      std::cerr << "read_line: " << options.pictures[i] << ": " << (result.ok() ? "no text found" : result.message)
                << '\n';
      std::puts("");
      code = picture_failed;
      continue;
    }
    for (auto const& hypothesis : result.hypotheses) {
      auto const text = alphabet.text(hypothesis.tokens);
      if (options.n_best > 0) std::printf("%.4f\t%s\n", hypothesis.score, text.c_str());
      else std::printf("%s\n", text.c_str());
    }
  }
  text::finish_standard_output();
  return code;
}

}  // namespace

}  // namespace read_line

int main(int argc, char** argv) {
  auto const complain = [](std::exception const& error, read_line::Code code) {
    std::cerr << "read_line: " << error.what() << '\n';
    return code;
  };
  try {
    auto const options = read_line::parse(argc, argv);
    return options ? read_line::run(*options) : read_line::fine;
  } catch (text::InputError const& error) {
    return complain(error, read_line::bad_input);
  } catch (std::invalid_argument const& error) {
    return complain(error, read_line::bad_input);
  } catch (std::exception const& error) {
    return complain(error, read_line::picture_failed);
  }
}
