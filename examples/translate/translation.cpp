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

std::string counts(std::filesystem::path const& file, std::size_t lines, std::string const& input, std::size_t its) {
  return file.string() + " has " + std::to_string(lines) + " lines, " + input + " has " + std::to_string(its);
}

/// Lines that belong to those of the input, if there is a file of them.
std::vector<std::string> read_beside(std::filesystem::path const& file, Input const& input) {
  if (file.empty()) return {};
  auto beside = text::read_lines(file);
  if (auto const lines = input.count(); lines && *lines != beside.size())
    throw text::InputError(counts(file, beside.size(), input.name(), *lines));
  return beside;
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

std::string list(std::vector<std::string> const& parts) {
  std::string all;
  for (auto const& part : parts) all.append(all.empty() ? "" : ", ").append(part);
  return all;
}

std::string format(double score) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", score);
  return text;
}

}  // namespace

Resources::Resources(Options const& options)
    : input(options.input),
      targets(read_beside(options.targets, input)),
      models(options.models, options.model_options),
      masks(make_masks(options, models.tokenizer())),
      constraints(options, read_beside(options.constraints, input), models.tokenizer()),
      output_file(create(options.output, options.input)),
      stats_file(create(options.stats, options.input)),
      trace_file(create(options.trace, options.input)),
      trace(options.trace, trace_file, models.tokenizer()),
      output(options.output.empty() ? std::cout : output_file) {}

Translation::Translation(Options const& options, Resources& resources, Decoders& decoders)
    : options_(options),
      resources_(resources),
      decoders_(decoders),
      progress_(options.progress, resources.input.count().value_or(0)),
      ahead_(4096 + 4 * options.threads * (*options.window + options.batch + options.encode_ahead)),
      blocks_(options.block) {}

int Translation::run() {
  auto const begin = std::chrono::steady_clock::now();
  decoders_.run(*this);
  resources_.output.flush();
  if (!resources_.output) throw std::runtime_error("the output cannot be written");
  auto const check = [&](std::filesystem::path const& file, std::size_t beside) {
    if (auto const lines = resources_.input.number(); lines < beside)
      complain(bad_input, counts(file, beside, resources_.input.name(), lines));
  };
  check(options_.targets, resources_.targets.size());
  check(options_.constraints, resources_.constraints.lines());
  progress_.finish();
  resources_.trace.finish();
  if (resources_.stats_file.is_open()) {
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    resources_.stats_file << to_json(decoders_.statistics(), decoders_.clusters(), blocks_,
                                     resources_.models.cache_use(), options_.model_options, seconds)
                          << std::flush;
    if (!resources_.stats_file) throw std::runtime_error(options_.stats.string() + ": cannot be written");
  }
  return code_;
}

bool Translation::take(std::size_t count, bool wait, std::vector<Sentence>& sentences) {
  auto& input = resources_.input;
  {
    std::unique_lock lock(writing_);
    auto const room = [this] { return abandoned_ || ended_ || lines_.size() < ahead_; };
    if (wait) room_.wait(lock, room);
    if (abandoned_ || ended_) return false;
    if (!room()) return true;
  }
  std::unique_lock reading(reading_, std::defer_lock);
  if (wait) reading.lock();
  else if (!reading.try_lock()) return true;
  if (input.interactive()) count = 1;      // somebody wants each at once
  if (auto const total = input.count()) {  // the others want some too
    auto const left = *total - std::min(*total, input.number());
    count = std::min(count, std::max<std::size_t>(1, (left + options_.threads - 1) / options_.threads));
  }
  for (std::string text; count > 0;) {
    if ((!wait || !sentences.empty()) && !input.ready()) return true;  // the decoder has something to do meanwhile
    {
      std::lock_guard const lock(writing_);
      if (lines_.size() >= ahead_) return true;
    }
    auto const more = input.next(text);
    WholeWords constraints;
    auto sentence = more ? make_sentence(text, input.number(), constraints) : std::nullopt;
    auto const place = input.number() - 1;
    {
      std::lock_guard const lock(writing_);
      if (!more) {
        ended_ = true;
        room_.notify_all();
        return false;
      }
      lines_.push_back({.constraints = std::move(constraints)});
    }
    if (sentence) {
      sentence->place = place, --count;
      sentences.push_back(std::move(*sentence));
    } else {
      finish(place, std::nullopt);
    }
  }
  return true;
}

void Translation::give(std::size_t place, sluice::Result result) { finish(place, std::move(result)); }

void Translation::abandon() {
  std::lock_guard const lock(writing_);
  abandoned_ = true;
  room_.notify_all();
}

/// Writes what can be written now that this line is done.
void Translation::finish(std::size_t place, std::optional<sluice::Result> result) {
  std::lock_guard const lock(writing_);
  auto& line = lines_[place - written_];
  line.done = true, line.result = std::move(result);
  progress_.add(1);
  if (!lines_.front().done) return;
  for (; !lines_.empty() && lines_.front().done; lines_.pop_front()) write(++written_, lines_.front());
  if (!resources_.input.count()) resources_.output.flush();
  if (!resources_.output) throw std::runtime_error("the output cannot be written");
  room_.notify_all();
}

std::optional<Sentence> Translation::make_sentence(std::string const& text, std::size_t number,
                                                   WholeWords& constraints) {
  auto const where = resources_.input.where(number);
  if (!text::valid_utf8(text)) return complain(bad_input, where + "not valid UTF-8"), std::nullopt;
  auto const given = !options_.targets.empty();
  if (given && number > resources_.targets.size())
    return complain(bad_input, where + options_.targets.string() + " has no such line"), std::nullopt;
  if (!options_.constraints.empty() && number > resources_.constraints.lines())
    return complain(bad_input, where + options_.constraints.string() + " has no such line"), std::nullopt;
  auto const& tokenizer = resources_.models.tokenizer();
  Sentence sentence{.source = tokenizer.encode(text), .seed = sluice::derive(options_.seed, number)};
  if (given) sentence.prefix = tokenizer.encode(resources_.targets[number - 1]);
  if (options_.constrained()) try {
      constraints = sentence.constraints = resources_.constraints.of(number, where, text, sentence.prefix);
    } catch (text::InputError const& error) {
      return complain(bad_input, error.what()), std::nullopt;
    }
  if (sentence.source.empty()) return std::nullopt;
  if (trace() != nullptr) sentence.text = text;
  if (options_.search == SearchName::score) sentence.prefix.push_back(tokenizer.eos());
  return sentence;
}

void Translation::write(std::size_t number, Line const& line) {
  auto& out = resources_.output;
  if (!line.result) {
    judge(number, line.constraints, "");
    out << '\n';
    return;
  }
  auto const& result = *line.result;
  auto const& hypotheses = result.hypotheses;
  for (auto const& hypothesis : hypotheses) blocks_.add(hypothesis);
  if (!result.ok() || hypotheses.empty()) {
    complain(sentence_failed, resources_.input.where(number) + sluice::name(result.failure) + ": " + result.message);
    out << '\n';
  } else if (options_.search == SearchName::score) {
    out << format(hypotheses.front().score) << '\n';
  } else if (options_.explain) {
    out << explain(hypotheses.front(), resources_.models.tokenizer()) << '\n';
  } else if (options_.list) {
    judge(number, line.constraints, text_of(hypotheses.front()));  // where this is complete, so are the others
    for (auto const& hypothesis : hypotheses)
      out << number - 1 << " ||| " << text_of(hypothesis) << " ||| " << format(hypothesis.score) << '\n';
  } else if (options_.mbr) {
    auto const text =
        text_of(least_risk(options_, hypotheses, [&](auto const& hypothesis) { return text_of(hypothesis); }));
    judge(number, line.constraints, text);
    out << text << '\n';
  } else {
    auto const text = text_of(hypotheses.front());
    judge(number, line.constraints, text);
    out << text << '\n';
  }
}

void Translation::judge(std::size_t number, WholeWords const& constraints, std::string const& text) {
  auto const verdict = constraints.judge(text);
  auto const where = resources_.input.where(number);
  if (verdict.met < verdict.total)
    complain(sentence_failed, where + std::to_string(verdict.met) + " of " + std::to_string(verdict.total) +
                                  " constraints are met, not " + list(verdict.missing));
  if (!verdict.forbidden.empty())
    complain(sentence_failed, where + "holds what is forbidden: " + list(verdict.forbidden));
}

std::string Translation::text_of(sluice::Hypothesis const& hypothesis) const {
  auto const& tokenizer = resources_.models.tokenizer();
  std::span<sluice::Token const> tokens(hypothesis.tokens);
  if (!tokens.empty() && tokens.back() == tokenizer.eos()) tokens = tokens.first(tokens.size() - 1);
  return tokenizer.decode(tokens);
}

void Translation::complain(Code code, std::string const& message) {
  code_ = std::max(code_.load(), static_cast<int>(code));
  progress_.say(message);
}

}  // namespace translate
