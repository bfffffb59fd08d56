// SPDX-License-Identifier: Apache-2.0
// translate: text in, text out, with every search and schedule of the library.

#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>

#include <text/lines.hpp>
#include <transformer/transformer.hpp>
#include <transformer/weights.hpp>
#include <translate/input.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>
#include <translate/statistics_json.hpp>
#include <translate/tokenizer.hpp>
#include <translate/workers.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace translate {
namespace {

using sluice::example::Transformer;
using sluice::example::Weights;

/// Exit codes; the largest that came up counts.
enum Code : int { fine = 0, sentence_failed = 1, bad_input = 2 };

/// What the command line named, opened and checked.
struct Resources {
  explicit Resources(Options const& options);

  Input input;
  std::vector<std::string> targets;  ///< of --prefix or --score
  std::string targets_name;
  std::ofstream output_file, stats_file;
  std::ostream& output;
  std::shared_ptr<Weights const> weights;
  std::unique_ptr<Tokenizer> tokenizer;
};

std::ofstream create(std::filesystem::path const& file, std::filesystem::path const& input) {
  std::error_code ignored;
  if (file.empty()) return {};
  if (!input.empty() && std::filesystem::equivalent(file, input, ignored))
    throw text::InputError(file.string() + ": is the input");
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw text::InputError(file.string() + ": cannot be written");
  return stream;
}

std::shared_ptr<Weights const> load_weights(std::filesystem::path const& file) {
  if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file (--model)");
  try {
    return Weights::load(file);
  } catch (std::runtime_error const& error) {
    std::string const what = error.what();
    throw text::InputError(what.find(file.string()) != std::string::npos ? what : file.string() + ": " + what);
  }
}

Resources::Resources(Options const& options)
    : input(options.input), output(options.output.empty() ? std::cout : output_file) {
  auto const& file = options.score.empty() ? options.prefix : options.score;
  if (!file.empty()) {
    targets_name = file.string();
    targets = text::read_lines(file);
    if (auto const lines = input.count(); lines && *lines != targets.size())
      throw text::InputError(targets_name + " has " + std::to_string(targets.size()) + " lines, " + input.name() +
                             " has " + std::to_string(*lines));
  }
  auto const folder = std::filesystem::is_directory(options.model);
  auto const weights_file = folder ? options.model / "model.safetensors" : options.model;
  weights = load_weights(weights_file);
  tokenizer = std::make_unique<Tokenizer>(weights_file.parent_path() / "spm.model");
  if (tokenizer->size() != weights->vocabulary.size)
    throw text::InputError("spm.model has " + std::to_string(tokenizer->size()) + " pieces, " + weights_file.string() +
                           " has " + std::to_string(weights->vocabulary.size));
  output_file = create(options.output, options.input);
  stats_file = create(options.stats, options.input);
}

std::string format(double score) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", score);
  return text;
}

/// Decodes window after window of the input.
template <class Search, class Schedule>
class Translation {
 public:
  Translation(Options const& options, Resources& resources, Search const& search, Schedule const& schedule)
      : options_(options),
        resources_(resources),
        workers_(
            options.threads, [&] { return Transformer(resources.weights); }, search, schedule,
            sluice::DenseProjection(resources.weights->projection(), resources.weights->bias)),
        progress_(options.progress, resources.input.count().value_or(0)) {}

  int run() {
    auto const begin = std::chrono::steady_clock::now();
    // Sorting wants many lines, a pipe wants its answers, somebody who types wants each at once.
    auto const together = options_.batch * options_.threads;
    auto const window = resources_.input.interactive() ? 1
                        : resources_.input.count()     ? std::max<std::size_t>(16 * together, 4096)
                                                       : 4 * together;
    while (read(window)) {
      auto const results = workers_.decode(requests_, options_.batch, progress_);
      for (auto const& line : lines_) write(line, results);
      resources_.output.flush();
      if (!resources_.output) throw std::runtime_error("the output cannot be written");
    }
    if (auto const lines = resources_.input.number(); lines < resources_.targets.size())
      complain(bad_input, resources_.targets_name + " has " + std::to_string(resources_.targets.size()) + " lines, " +
                              resources_.input.name() + " has " + std::to_string(lines));
    progress_.finish();
    if (resources_.stats_file.is_open()) {
      auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      resources_.stats_file << to_json(workers_.statistics(), seconds).dump(2) << std::endl;
      if (!resources_.stats_file) throw std::runtime_error(options_.stats.string() + ": cannot be written");
    }
    return code_;
  }

 private:
  struct Line {
    std::size_t number;                  // from 1
    std::optional<std::size_t> request;  // nothing: an empty line comes out
  };
  using Pool = Workers<Transformer, Search, Schedule, sluice::DenseProjection>;

  /// Reads the next lines, fills requests_; false at the end.
  bool read(std::size_t count) {
    lines_.clear(), requests_.clear();
    std::size_t empty = 0;
    for (std::string text; lines_.size() < count && resources_.input.next(text);) {
      lines_.push_back({resources_.input.number(), std::nullopt});
      if (auto request = make_request(text, resources_.input.number())) {
        lines_.back().request = requests_.size();
        requests_.push_back(std::move(*request));
      } else {
        ++empty;
      }
    }
    progress_.add(empty);
    return !lines_.empty();
  }

  std::optional<typename Pool::Request> make_request(std::string const& text, std::size_t number) {
    auto const where = resources_.input.where(number);
    if (!text::valid_utf8(text)) return complain(bad_input, where + "not valid UTF-8"), std::nullopt;
    auto const given = !resources_.targets_name.empty();
    if (given && number > resources_.targets.size())
      return complain(bad_input, where + resources_.targets_name + " has no such line"), std::nullopt;
    auto const& tokenizer = *resources_.tokenizer;
    typename Pool::Request request{.source = tokenizer.encode(text)};
    if (request.source.empty()) return std::nullopt;
    if (given) request.prefix = tokenizer.encode(resources_.targets[number - 1]);
    if (!options_.score.empty()) request.prefix.push_back(tokenizer.eos());
    return request;
  }

  void write(Line const& line, std::vector<sluice::Result> const& results) {
    auto& out = resources_.output;
    if (!line.request) {
      out << '\n';
      return;
    }
    auto const& result = results[*line.request];
    if (!result.ok() || result.hypotheses.empty()) {
      complain(sentence_failed,
               resources_.input.where(line.number) + sluice::name(result.failure) + ": " + result.message);
      out << '\n';
      return;
    }
    if (!options_.score.empty()) {
      out << format(result.hypotheses.front().score) << '\n';
    } else if (!options_.n_best) {
      out << text_of(result.hypotheses.front()) << '\n';
    } else {
      for (auto const& hypothesis : result.hypotheses)
        out << line.number - 1 << " ||| " << text_of(hypothesis) << " ||| " << format(hypothesis.score) << '\n';
    }
  }

  std::string text_of(sluice::Hypothesis const& hypothesis) const {
    std::span<sluice::Token const> tokens(hypothesis.tokens);
    if (!tokens.empty() && tokens.back() == resources_.tokenizer->eos()) tokens = tokens.first(tokens.size() - 1);
    return resources_.tokenizer->decode(tokens);
  }

  void complain(Code code, std::string const& message) {
    code_ = std::max(code_, static_cast<int>(code));
    progress_.say(message);
  }

  Options const& options_;
  Resources& resources_;
  Pool workers_;
  Progress progress_;
  std::vector<Line> lines_;  // of the window
  std::vector<typename Pool::Request> requests_;
  int code_ = fine;
};

// ---- choices ----------------------------------------------------------------------------------------------------------
// A new search or schedule is another alternative here.

using AnySearch = std::variant<sluice::Greedy, sluice::BeamSearch, sluice::ForcedScore>;
using AnySchedule = std::variant<sluice::Batched>;

AnySearch make_search(Options const& options) {
  sluice::LengthPenalty const penalty{.alpha = options.length_penalty};
  sluice::LengthLimits const length{.min = 1, .max = options.max_length};  // a sentence is not translated by nothing
  if (!options.score.empty()) return sluice::ForcedScore{.penalty = penalty};
  switch (options.search) {
    case SearchName::greedy: return sluice::Greedy{.length = length, .scores = false};
    case SearchName::beam: break;
  }
  return sluice::BeamSearch{
      .width = options.width, .n_best = options.n_best.value_or(1), .length = length, .penalty = penalty};
}

AnySchedule make_schedule(Options const& options) {
  switch (options.schedule) {
    case ScheduleName::batched: break;
  }
  return sluice::Batched{.size = options.batch};
}

int run(Options const& options) {
  auto const search = make_search(options);
  auto const schedule = make_schedule(options);
  Resources resources(options);
  return std::visit([&](auto const& s, auto const& p) { return Translation(options, resources, s, p).run(); }, search,
                    schedule);
}

}  // namespace
}  // namespace translate

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    auto const options = translate::parse(argc, argv);
    return options ? translate::run(*options) : translate::fine;
  } catch (text::InputError const& error) {
    std::cerr << "translate: " << error.what() << '\n';
    return translate::bad_input;
  } catch (std::invalid_argument const& error) {
    std::cerr << "translate: " << error.what() << '\n';
    return translate::bad_input;
  } catch (std::exception const& error) {
    std::cerr << "translate: " << error.what() << '\n';
    return translate::sentence_failed;
  }
}
