// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/noise.hpp>

#include <text/lines.hpp>
#include <translate/alignment.hpp>
#include <translate/statistics_json.hpp>
#include <translate/translation.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

namespace translate {

namespace {

std::string counts(std::filesystem::path const& file, std::size_t lines, std::string const& input, std::size_t its) {
  return file.string() + " has " + std::to_string(lines) + " lines, " + input + " has " + std::to_string(its);
}

/// The lines of a file that belong to the lines of the input, if there is such a file.
std::vector<std::string> read_beside(std::filesystem::path const& file, Input const& input) {
  if (file.empty()) return {};
  auto beside = text::read_lines(file);
  if (auto const lines = input.count(); lines && *lines != beside.size())
    throw text::InputError(counts(file, beside.size(), input.name(), *lines));
  return beside;
}

std::ofstream create(std::filesystem::path const& file, std::filesystem::path const& input) {
  if (file.empty()) return {};
  refuse_input(file, input);
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw text::InputError(file.string() + ": cannot be written");
  return stream;
}

}  // namespace

Resources::Resources(Options const& options, std::function<void(Input&)> const& check)
    : grammar(text::read_grammar(options.structure)),
      input(options.input),
      targets((check(input), read_beside(options.targets, input))),
      models(options.models, options.model_options),
      restrictions(translate::restrictions(
          make_masks(options, models.tokenizer()), make_structure(grammar, models),
          make_bias(options.bias.empty() ? std::vector<text::BiasTerm>{} : text::read_bias(options.bias),
                    options.bias_once, models.tokenizer()),
          make_mark(options))),
      constraints(options, read_beside(options.constraints, input), models.tokenizer()),
      stats_file(create(options.stats, options.input)),
      trace_file(create(options.trace, options.input)),
      trace(options.trace, trace_file, models.tokenizer()) {}

Translation::Translation(Options const& options, Resources& resources, Decoders& decoders, Shares& shares,
                         Progress& progress)
    : options_(options),
      resources_(resources),
      decoders_(decoders),
      shares_(shares),
      progress_(progress),
      ahead_(4096 + 4 * options.threads * (*options.window + options.batch + options.encode_ahead)),
      blocks_(options.block) {}

int Translation::run() {
  auto const begin = std::chrono::steady_clock::now();
  decoders_.run(*this);
  auto const check = [&](std::filesystem::path const& file, std::size_t beside) {
    auto const& input = resources_.input;
    if (input.count() || input.number() >= beside) return;
    code_ = bad_input;
    progress_.say(counts(file, beside, input.name(), input.number()));
  };
  check(options_.targets, resources_.targets.size());
  check(options_.constraints, resources_.constraints.lines());
  progress_.finish();
  resources_.trace.finish();
  if (resources_.stats_file.is_open()) {
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    resources_.stats_file << to_json(decoders_.statistics(), decoders_.clusters(), blocks_,
                                     resources_.models.cache_use(), options_.model_options, seconds,
                                     options_.resume ? std::optional(resumed_) : std::nullopt)
                          << std::flush;
    if (!resources_.stats_file) throw std::runtime_error(options_.stats.string() + ": cannot be written");
  }
  return code_;
}

bool Translation::open() {
  auto share = shares_.next();
  std::lock_guard const lock(writing_);
  if (!share) {
    ended_ = true;
    room_.notify_all();
    return false;
  }
  auto const known = share->part.lines != Part{}.lines;
  auto const written = share->results->written();
  resumed_ += written;
  if (known) progress_.expect(share->part.lines - written);
  current_ = &open_.emplace_back(std::move(*share));
  if (current_->results->complete()) {
    current_ = nullptr;
    retire();
  } else {
    resources_.input.go(current_->part, written);
  }
  return true;
}

void Translation::retire() {
  open_.remove_if([&](Share const& share) {
    if (!share.results->complete()) return false;
    code_ = std::max(code_, share.results->code());
    shares_.complete(share);
    return true;
  });
}

std::size_t Translation::waiting() const {
  std::size_t sum = 0;
  for (auto const& share : open_) sum += share.results->waiting();
  return sum;
}

bool Translation::take(std::size_t count, bool wait, std::vector<Sentence>& sentences) {
  auto more = true;
  for (auto const before = sentences.size(); more && sentences.size() == before;) {
    std::vector<Line> lines;
    more = read(count, wait, lines);
    if (lines.empty()) break;
    for (auto const& line : lines) prepare(line, sentences);
  }
  return more;
}

bool Translation::read(std::size_t count, bool wait, std::vector<Line>& lines) {
  auto& input = resources_.input;
  {
    std::unique_lock lock(writing_);
    auto const room = [this] { return abandoned_ || ended_ || waiting() < ahead_; };
    if (wait) room_.wait(lock, room);
    if (abandoned_ || ended_) return false;
    if (!room()) return true;
  }
  std::unique_lock reading(reading_, std::defer_lock);
  if (wait) reading.lock();
  else if (!reading.try_lock()) return true;
  while (current_ == nullptr)
    if (!open()) return false;
  if (input.interactive()) count = 1;  // a terminal wants each at once
  if (input.count()) {                 // leave some for the other threads
    auto const end = current_->part.before + current_->part.lines;
    auto const left = end - std::min(end, input.number());
    count = std::min(count, std::max<std::size_t>(1, (left + options_.threads - 1) / options_.threads));
  }
  auto full = [this] {
    std::lock_guard const lock(writing_);
    return waiting() >= ahead_;
  }();
  for (std::string text; count > 0 && !full;) {
    if ((!wait || !lines.empty()) && !input.ready()) return true;  // the decoder has something to do meanwhile
    auto const another = input.next(text);
    std::lock_guard const lock(writing_);
    if (!another) {
      std::exchange(current_, nullptr)->results->end();
      retire();
      return true;
    }
    auto const number = input.number();
    current_->results->expect();
    if (auto line = current_->results->done_before(number)) {
      ++resumed_;
      finish(number, std::move(*line), true);
    } else {
      lines.push_back({.number = number, .text = std::move(text)}), --count;
    }
    full = waiting() >= ahead_;
  }
  return true;
}

void Translation::prepare(Line const& line, std::vector<Sentence>& sentences) {
  auto const number = line.number;
  WholeWords constraints;
  Finished done;
  auto sentence = make_sentence(line.text, number, constraints, done);
  if (!sentence) {
    judge(number, constraints, "", done);
    done.text = "\n";
    std::lock_guard const lock(writing_);
    finish(number, std::move(done));
    return;
  }
  if (has_due()) {
    Due due{std::move(constraints), words_of(sentence->source, resources_.models.tokenizer(), false)};
    std::lock_guard const lock(writing_);
    due_.emplace(number, std::move(due));
  }
  sentence->place = number - 1;
  sentences.push_back(std::move(*sentence));
}

void Translation::give(std::size_t place, sluice::Result result) {
  auto const number = place + 1;
  Due due;
  if (has_due()) {
    std::lock_guard const lock(writing_);
    if (auto found = due_.extract(number)) due = std::move(found.mapped());
  }
  auto line = format(number, result, due);
  std::lock_guard const lock(writing_);
  for (auto const& hypothesis : result.hypotheses) blocks_.add(hypothesis);
  finish(number, std::move(line));
}

void Translation::abandon() {
  std::lock_guard const lock(writing_);
  abandoned_ = true;
  room_.notify_all();
}

/// Writes what can be written now that this line is done.
void Translation::finish(std::size_t number, Finished line, bool again) {
  auto share = open_.rbegin();
  while (number <= share->part.before) ++share;
  share->results->finish(number, std::move(line), again);
  progress_.add(1, again);
  retire();
  shares_.serve();
  room_.notify_all();
}

std::optional<Sentence> Translation::make_sentence(std::string const& text, std::size_t number, WholeWords& constraints,
                                                   Finished& line) {
  auto const where = resources_.input.where(number);
  auto const fault = [&](std::string const& message) { return line.complain(bad_input, message), std::nullopt; };
  if (!text::valid_utf8(text)) return fault(where + "not valid UTF-8");
  auto const given = !options_.targets.empty();
  if (given && number > resources_.targets.size())
    return fault(where + options_.targets.string() + " has no such line");
  if (!options_.constraints.empty() && number > resources_.constraints.lines())
    return fault(where + options_.constraints.string() + " has no such line");
  auto const& tokenizer = resources_.models.tokenizer();
  Sentence sentence{.source = tokenizer.encode(text), .seed = sluice::derive(options_.seed, number)};
  if (given) sentence.prefix = tokenizer.encode(resources_.targets[number - 1]);
  if (options_.constrained()) try {
      constraints = sentence.constraints = resources_.constraints.of(number, where, text, sentence.prefix);
    } catch (text::InputError const& error) {
      return fault(error.what());
    }
  if (sentence.source.empty()) return std::nullopt;
  if (trace() != nullptr) {
    sentence.text = text;
    for (auto const token : sentence.source) sentence.pieces.push_back(tokenizer.text(token));
  }
  if (options_.search == SearchName::score) sentence.prefix.push_back(tokenizer.eos());
  return sentence;
}

}  // namespace translate
