// SPDX-License-Identifier: Apache-2.0
// build_ngram: text or ARPA in, a table of n-grams out; and what a table says of a text.

#include <sluice/core/types.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include <text/lines.hpp>
#include <text/write_file.hpp>
#include <translate/compression.hpp>
#include <translate/tokenizer.hpp>

#include <algorithm>
#include <build_ngram/options.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace build_ngram {

namespace {

enum Code : int { fine = 0, bad_input = 2 };

/// A file, plain or compressed.
class Reading {
 public:
  explicit Reading(std::filesystem::path const& file) : file_(file) {
    if (std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
    if (auto const format = translate::format_of_file(file); format != translate::Format::plain) {
      unpacked_ = translate::open_compressed(file, format);
      stream_.rdbuf(unpacked_.get());
      return;
    }
    if (plain_.open(file, std::ios::in | std::ios::binary) == nullptr)
      throw text::InputError(file.string() + ": cannot be opened");
    stream_.rdbuf(&plain_);
  }
  std::istream& stream() { return stream_; }
  /// \throws text::InputError  if it could not be read to its end
  void check() const {
    auto const problem = unpacked_ ? unpacked_->problem() : std::string();
    if (stream_.bad() || !problem.empty())
      throw text::InputError(file_.string() + ": " + (problem.empty() ? "cannot be read" : problem));
  }

 private:
  std::filesystem::path file_;
  std::filebuf plain_;
  std::unique_ptr<translate::TextBuffer> unpacked_;
  std::istream stream_{nullptr};
};

/// Calls f(words) for each line of a file: what spaces separate, or a tokeniser's pieces.
template <class F>
void each_sentence(std::filesystem::path const& file, translate::Tokenizer const* tokenizer, F&& f) {
  Reading reading(file);
  text::LineReader reader(reading.stream());
  std::vector<std::string_view> words;
  for (std::string line; reader.next(line);) {
    auto const place = file.string() + ":" + std::to_string(reader.number());
    if (!text::valid_utf8(line)) throw text::InputError(place + ": not valid UTF-8");
    words.clear();
    if (tokenizer != nullptr) {
      for (auto const token : tokenizer->encode(line)) words.emplace_back(tokenizer->piece(token));
    } else {
      for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
        auto const end = std::min(line.find_first_of(" \t", at), line.size());
        words.push_back(std::string_view(line).substr(at, end - at));
        at = end;
      }
    }
    try {
      f(words);
    } catch (std::invalid_argument const& problem) {
      throw text::InputError(place + ": " + problem.what());
    }
  }
  reading.check();
}

std::unique_ptr<translate::Tokenizer> tokenizer_of(Options const& options) {
  return options.tokenizer.empty() ? nullptr : std::make_unique<translate::Tokenizer>(options.tokenizer);
}

void print(sluice::NGramTable const& table) {
  for (std::int32_t n = 1; n <= table.order(); ++n)
    std::printf("%d-grams: %lld\n", n, static_cast<long long>(table.count(n)));
  std::printf("bytes: %zu%s\n", table.bytes().size(), table.quantised() ? ", quantised" : "");
}

sluice::NGramTable train(Options const& options, long long& sentences) {
  auto const tokenizer = tokenizer_of(options);
  std::vector<std::string> pieces;
  for (sluice::Token token = 0; tokenizer && token < tokenizer->size(); ++token)
    pieces.push_back(tokenizer->piece(token));
  sluice::NGramTrainer trainer({.order = options.order, .fallback = options.fallback}, pieces);
  each_sentence(options.text, tokenizer.get(), [&](std::vector<std::string_view> const& words) {
    trainer.add(words);
    ++sentences;
  });
  if (sentences == 0) throw text::InputError(options.text.string() + ": has no sentences");
  return trainer.build();
}

sluice::NGramTable convert(Options const& options) {
  Reading reading(options.arpa);
  try {
    auto table = sluice::read_arpa(reading.stream(), {.unknown = options.unknown});
    reading.check();
    return table;
  } catch (std::runtime_error const& problem) {
    reading.check();  // a broken file of gzip ends early
    throw text::InputError(options.arpa.string() + ": " + problem.what());
  }
}

void build(Options const& options) {
  long long sentences = 0;
  auto table = options.task == Options::Task::train ? train(options, sentences) : convert(options);
  if (options.quantise) table = sluice::quantise(table);
  if (!options.out.empty()) text::write_file(options.out, [&](std::ostream& to) { table.write(to); });
  if (!options.out_arpa.empty())
    text::write_file(options.out_arpa, [&](std::ostream& to) { sluice::write_arpa(table, to); });
  if (options.task == Options::Task::train) std::printf("sentences: %lld\n", sentences);
  print(table);
}

void score(Options const& options) {
  auto const table = sluice::NGramTable::open(options.in.string());
  auto const tokenizer = tokenizer_of(options);
  long long sentences = 0, words = 0, unknown = 0;
  double sum = 0, of_unknown = 0;
  each_sentence(options.text, tokenizer.get(), [&](std::vector<std::string_view> const& sentence) {
    auto state = table.start();
    auto const add = [&](sluice::Word word) {
      auto const log_prob = static_cast<double>(table.advance(state, word));
      sum += log_prob, ++words;
      if (word == table.unknown()) of_unknown += log_prob, ++unknown;
    };
    for (auto const word : sentence) add(table.word(word));
    add(table.end());
    ++sentences;
  });
  if (sentences == 0) throw text::InputError(options.text.string() + ": has no sentences");
  std::printf("sentences: %lld, words and ends: %lld, unknown: %lld\n", sentences, words, unknown);
  std::printf("log10 of the probability: %.4f\n", sum / std::numbers::ln10);
  std::printf("perplexity: %.6f, without unknown words: %.6f\n", std::exp(-sum / static_cast<double>(words)),
              std::exp(-(sum - of_unknown) / static_cast<double>(words - unknown)));
}

void run(Options const& options) {
  switch (options.task) {
    case Options::Task::train:
    case Options::Task::convert: return build(options);
    case Options::Task::check: return print(sluice::NGramTable::open(options.in.string()));
    case Options::Task::score: return score(options);
  }
}

}  // namespace

}  // namespace build_ngram

int main(int argc, char** argv) try {
  if (auto const options = build_ngram::parse(argc, argv)) build_ngram::run(*options);
  return build_ngram::fine;
} catch (std::exception const& error) {
  std::cerr << "build_ngram: " << error.what() << '\n';
  return build_ngram::bad_input;
}
