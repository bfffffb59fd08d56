// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>

#include <text/lines.hpp>
#include <translate/mbr.hpp>
#include <translate/statistics_json.hpp>
#include <translate/translation.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <span>
#include <stdexcept>
#include <utility>

namespace translate {

namespace {

/// Lines that belong to those of the input, if there is a file of them.
std::vector<std::string> read_targets(std::filesystem::path const& file, Input const& input) {
  if (file.empty()) return {};
  auto targets = text::read_lines(file);
  if (auto const lines = input.count(); lines && *lines != targets.size())
    throw text::InputError(file.string() + " has " + std::to_string(targets.size()) + " lines, " + input.name() +
                           " has " + std::to_string(*lines));
  return targets;
}

std::ofstream create(std::filesystem::path const& file, std::filesystem::path const& input) {
  std::error_code ignored;
  if (file.empty()) return {};
  if (!input.empty() && std::filesystem::equivalent(file, input, ignored))
    throw text::InputError(file.string() + ": is the input");
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw text::InputError(file.string() + ": cannot be written");
  return stream;
}

std::string format(double score) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", score);
  return text;
}

}  // namespace

Resources::Resources(Options const& options)
    : input(options.input),
      targets(read_targets(options.targets, input)),
      models(options.models),
      masks(make_masks(options, models.tokenizer())),
      output_file(create(options.output, options.input)),
      stats_file(create(options.stats, options.input)),
      output(options.output.empty() ? std::cout : output_file) {}

Translation::Translation(Options const& options, Resources& resources, Decoders& decoders)
    : options_(options),
      resources_(resources),
      decoders_(decoders),
      progress_(options.progress, resources.input.count().value_or(0)) {}

int Translation::run() {
  auto const begin = std::chrono::steady_clock::now();
  // Sorting wants many lines, a pipe wants its answers, somebody who types wants each at once.
  auto const together = options_.batch * options_.threads;
  auto const window = resources_.input.interactive() ? 1
                      : resources_.input.count()     ? std::max<std::size_t>(16 * together, 4096)
                                                     : 4 * together;
  while (read(window)) {
    auto const results = decoders_.decode(sentences_, options_.batch, progress_);
    for (auto const& line : lines_) write(line, results);
    resources_.output.flush();
    if (!resources_.output) throw std::runtime_error("the output cannot be written");
  }
  if (auto const lines = resources_.input.number(); lines < resources_.targets.size())
    complain(bad_input, options_.targets.string() + " has " + std::to_string(resources_.targets.size()) + " lines, " +
                            resources_.input.name() + " has " + std::to_string(lines));
  progress_.finish();
  if (resources_.stats_file.is_open()) {
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    resources_.stats_file << to_json(decoders_.statistics(), resources_.models.cache_use(), seconds) << std::flush;
    if (!resources_.stats_file) throw std::runtime_error(options_.stats.string() + ": cannot be written");
  }
  return code_;
}

/// Reads the next lines, fills sentences_; false at the end.
bool Translation::read(std::size_t count) {
  lines_.clear(), sentences_.clear();
  std::size_t empty = 0;
  for (std::string text; lines_.size() < count && resources_.input.next(text);) {
    lines_.push_back({resources_.input.number(), std::nullopt});
    if (auto sentence = make_sentence(text, resources_.input.number())) {
      lines_.back().sentence = sentences_.size();
      sentences_.push_back(std::move(*sentence));
    } else {
      ++empty;
    }
  }
  progress_.add(empty);
  return !lines_.empty();
}

std::optional<Sentence> Translation::make_sentence(std::string const& text, std::size_t number) {
  auto const where = resources_.input.where(number);
  if (!text::valid_utf8(text)) return complain(bad_input, where + "not valid UTF-8"), std::nullopt;
  auto const given = !options_.targets.empty();
  if (given && number > resources_.targets.size())
    return complain(bad_input, where + options_.targets.string() + " has no such line"), std::nullopt;
  auto const& tokenizer = resources_.models.tokenizer();
  Sentence sentence{.source = tokenizer.encode(text), .prefix = {}, .seed = sluice::derive(options_.seed, number)};
  if (sentence.source.empty()) return std::nullopt;
  if (given) sentence.prefix = tokenizer.encode(resources_.targets[number - 1]);
  if (options_.search == SearchName::score) sentence.prefix.push_back(tokenizer.eos());
  return sentence;
}

void Translation::write(Line const& line, std::vector<sluice::Result> const& results) {
  auto& out = resources_.output;
  if (!line.sentence) {
    out << '\n';
    return;
  }
  auto const& result = results[*line.sentence];
  auto const& hypotheses = result.hypotheses;
  if (!result.ok() || hypotheses.empty()) {
    complain(sentence_failed,
             resources_.input.where(line.number) + sluice::name(result.failure) + ": " + result.message);
    out << '\n';
  } else if (options_.search == SearchName::score) {
    out << format(hypotheses.front().score) << '\n';
  } else if (options_.list) {
    for (auto const& hypothesis : hypotheses)
      out << line.number - 1 << " ||| " << text_of(hypothesis) << " ||| " << format(hypothesis.score) << '\n';
  } else if (options_.mbr) {
    out << text_of(least_risk(options_, hypotheses, [&](auto const& hypothesis) { return text_of(hypothesis); }))
        << '\n';
  } else {
    out << text_of(hypotheses.front()) << '\n';
  }
}

std::string Translation::text_of(sluice::Hypothesis const& hypothesis) const {
  auto const& tokenizer = resources_.models.tokenizer();
  std::span<sluice::Token const> tokens(hypothesis.tokens);
  if (!tokens.empty() && tokens.back() == tokenizer.eos()) tokens = tokens.first(tokens.size() - 1);
  return tokenizer.decode(tokens);
}

void Translation::complain(Code code, std::string const& message) {
  code_ = std::max(code_, static_cast<int>(code));
  progress_.say(message);
}

}  // namespace translate
