// SPDX-License-Identifier: Apache-2.0
// read_line: the text of pictures of lines. By CTC: best path, prefix beam with words, n-grams, boosted names or a pattern, exactly; by a
// transducer: greedily, by a beam with the same guides.

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/ctc_prefix_model.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/search/exact_search.hpp>

#include <text/bias.hpp>
#include <text/grammar.hpp>
#include <text/lines.hpp>
#include <text/ngrams.hpp>
#include <text/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <read_line/frames_cache.hpp>
#include <read_line/options.hpp>
#include <read_line/picture.hpp>
#include <read_line/png_file.hpp>
#include <read_line/reader.hpp>
#include <read_line/rnnt_network.hpp>
#include <sstream>
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
using Beam = sluice::CtcBeamSearch<Rule, sluice::NGramModel<>>;

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

sluice::NGramModel<> read_ngrams(Options const& options, Alphabet const& alphabet) {
  auto const& file = options.ngram;
  if (file.empty()) return {};
  auto const table = text::load_ngrams(file);
  return {table,
          text::character_words(table, alphabet.labels(), file),
          {.weight = options.ngram_weight, .bonus = options.ngram_bonus}};
}

/// For both heads: their texts have the same vocabulary.
sluice::Structure read_pattern(Options const& options, Alphabet const& alphabet) {
  if (!options.regex) return {};
  return {
      text::read_grammar({.regex = options.regex}),
      sluice::TokenTrie(sluice::TokenBytes(alphabet.labels()), sluice::ctc_text_vocabulary(alphabet.size(), blank))};
}

Rule read_rule(Options const& options, Alphabet const& alphabet) {
  auto const spell = [&](std::string const& phrase) {
    auto tokens = alphabet.tokens(phrase);
    return tokens.empty() ? std::vector<sluice::Phrase>() : std::vector<sluice::Phrase>{std::move(tokens)};
  };
  auto const bias = options.bias.empty() ? std::vector<text::BiasTerm>() : text::read_bias(options.bias);
  return Rule(read_lexicon(options.lexicon, alphabet), text::make_bias(bias, false, spell),
              read_pattern(options, alphabet));
}

/// Results of requests, in their order.
template <class Model, class Search>
std::vector<sluice::Result> all(Model& model, std::vector<sluice::Request<typename Model::Source, Search>> requests,
                                Search const& search, text::Trace trace = {}) {
  sluice::Decoder decoder(model, search, sluice::Batched{8}, sluice::LogSoftmaxTopK(), trace);
  std::vector<sluice::Result> results(requests.size());
  for (auto& request : requests) decoder.submit(std::move(request));
  for (auto more = true; more;) {
    more = decoder.step();
    for (sluice::Result result; decoder.poll(result);) results[static_cast<std::size_t>(result.id)] = result;
  }
  return results;
}

auto lines_of(Frames const& frames) { return sluice::scores(frames.logits.data(), frames.count, frames.labels); }

/// One request for each picture, whose source is source_of(its frames).
template <class Model, class Search, class SourceOf>
auto requests_of(std::vector<Frames> const& pictures, SourceOf&& source_of) {
  std::vector<sluice::Request<typename Model::Source, Search>> made;
  for (auto const& frames : pictures) made.push_back({.source = source_of(frames)});
  return made;
}

std::vector<sluice::Result> best_paths(std::vector<Frames> const& pictures) {
  std::vector<sluice::Result> results(pictures.size());
  for (std::size_t i = 0; i < pictures.size(); ++i)
    results[i].hypotheses.push_back(sluice::ctc_best_path(lines_of(pictures[i]), blank));
  return results;
}

/// The most probable texts, with proofs; the score of a beam's texts saves most of the steps. Where a proof does not end in options.steps
/// steps, the best texts known, and a message.
std::vector<sluice::Result> proofs(Options const& options, Alphabet const& alphabet,
                                   std::vector<Frames> const& pictures) {
  auto const n_best = (std::max)(1, options.n_best);
  sluice::CtcFrames<> frames(alphabet.size(), blank);
  Beam const beam{.width = (std::max)(n_best, options.beam), .n_best = n_best};
  auto const known = all(frames, requests_of<sluice::CtcFrames<>, Beam>(pictures, lines_of), beam);

  using Exact = sluice::ExactSearch;
  sluice::CtcPrefixModel<> prefixes(alphabet.size(), blank);
  auto requests = requests_of<sluice::CtcPrefixModel<>, Exact>(pictures, lines_of);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    auto const length = static_cast<std::int32_t>(pictures[i].count) + 1;
    requests[i].search = Exact{.n_best = n_best, .steps = options.steps, .length = {.max = length}};
    if (std::ssize(known[i].hypotheses) == n_best)  // the models' sums differ in their last digits
      requests[i].search->floor = known[i].hypotheses.back().log_prob - 1e-3;
  }
  auto results = all(prefixes, std::move(requests), Exact{});
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto& result = results[i];
    if (!result.ok() || !known[i].ok()) continue;
    auto const found = !result.hypotheses.empty() && result.hypotheses.front().finished;
    if (found && result.hypotheses.front().score >= result.bound) continue;
    auto const bound = result.bound;
    if (!found) result.hypotheses = known[i].hypotheses;
    std::ostringstream message;
    message << "not proved in " << options.steps << " steps: this text has " << result.hypotheses.front().score
            << ", another one " << bound << " at most";
    result.message = message.str();
  }
  return results;
}

std::vector<sluice::Result> search(Options const& options, Alphabet const& alphabet,
                                   std::vector<Frames> const& pictures, text::Trace const trace) {
  auto const n_best = (std::max)(1, options.n_best);
  using Search = Options::Search;
  if (options.search == Search::best_path) return best_paths(pictures);
  if (options.search == Search::exact) return proofs(options, alphabet, pictures);
  if (options.search == Search::beam) {
    sluice::CtcFrames<> model(alphabet.size(), blank);
    Beam beam{.width = options.beam, .n_best = n_best};
    beam.rule = read_rule(options, alphabet);
    beam.language_model = read_ngrams(options, alphabet);
    return all(model, requests_of<sluice::CtcFrames<>, Beam>(pictures, lines_of), beam, trace);
  }
  using Model = sluice::Transducer<RnntNetwork>;
  Model model(RnntNetwork(options.model / "rnnt.safetensors", alphabet.labels()));
  auto const source = [](Frames const& frames) { return &frames; };
  if (options.search == Search::rnnt_greedy) {
    using Greedy = sluice::TransducerGreedy<>;
    return all(model, requests_of<Model, Greedy>(pictures, source), Greedy{.tokens = model.tokens()}, trace);
  }
  using RnntBeam = sluice::TransducerBeam<Rule, sluice::NGramModel<>>;
  RnntBeam beam{.tokens = model.tokens(), .width = options.beam, .n_best = n_best};
  beam.rule = read_rule(options, alphabet);
  beam.language_model = read_ngrams(options, alphabet);
  return all(model, requests_of<Model, RnntBeam>(pictures, source), beam, trace);
}

Code run(Options const& options) {
  Reader const reader(options.model / "model.safetensors");
  Alphabet const alphabet(reader.labels());
  std::vector<Picture> lines;
  for (auto const& name : options.pictures) lines.push_back(to_line(read_png(name)));
  std::vector<Frames> frames;
  FramesCache const cache(options.frames, options.model / "model.safetensors");
  for (auto const& line : lines) frames.push_back(cache.read(reader, line));

  std::ofstream stream;
  std::optional<sluice::TracePage> page;
  std::optional<sluice::TraceFile> trace;
  if (!options.trace.empty()) {
    stream.open(options.trace, std::ios::binary);
    if (!stream) throw text::InputError("--trace: " + options.trace.string() + ": cannot be written");
    if (options.trace.extension() == ".html") page.emplace(stream);
    trace.emplace(stream, [&](Token token) { return alphabet.labels()[static_cast<std::size_t>(token)]; });
  }
  auto const results = search(options, alphabet, frames, {trace ? &*trace : nullptr});
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
    if (!result.message.empty()) {
      std::cerr << "read_line: " << options.pictures[i] << ": " << result.message << '\n';
      code = picture_failed;
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
  return text::run_program("read_line", [&]() -> int {
    auto const options = read_line::parse(argc, argv);
    return options ? read_line::run(*options) : read_line::fine;
  });
}
