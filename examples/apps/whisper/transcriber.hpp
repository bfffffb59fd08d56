// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loop around the decoder: windows of 30 s that begin where the last timestamp was, fallback to higher temperatures, silence. All
/// files are decoded side by side: a window is a request, and its result submits the next one.
#pragma once

#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/whisper.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <whisper/aligner.hpp>
#include <whisper/log_mel.hpp>
#include <whisper/model.hpp>
#include <whisper/transcript.hpp>
#include <whisper/vocabulary.hpp>
#include <whisper/word_times.hpp>
#include <zlib.h>

namespace whisper {

/// As openai/whisper's transcribe() has them, with its defaults.
struct TranscribeOptions {
  std::string language{};  ///< a code; empty: the likeliest one of the first window
  bool translate = false;  ///< into English
  std::int32_t beam = 5;   ///< 1: greedy
  std::int32_t best_of = 5;
  std::vector<float> temperatures{0, 0.2f, 0.4f, 0.6f, 0.8f, 1};
  double compression_threshold = 2.4;  ///< a text that zlib makes more than so many times shorter repeats itself
  double log_prob_threshold = -1;      ///< a mean below it is a failure
  double no_speech_threshold = 0.6;    ///< a window of a greater probability, and a mean below the threshold, is silent
  bool previous_text = true;           ///< the text so far is given with the next window
  std::int32_t batch = 4;              ///< windows decoded together, of so many files
  sluice::Bias hotwords{};
  bool word_times = false;  ///< segments have words
};

/// How many times longer a text is than zlib's version of it.
inline double compression_ratio(std::string const& text) {
  if (text.empty()) return 0;
  uLong const length = text.size();
  auto size = compressBound(length);
  std::vector<Bytef> out(size);
  std::vector<Bytef> const in(text.begin(), text.end());
  compress(out.data(), &size, in.data(), length);
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

class Transcriber {
 public:
  using Search = sluice::OneOf<sluice::Greedy, sluice::BeamSearch, sluice::Sample>;
  static constexpr std::size_t window_frames = 3000, frame_of_time = 2;  ///< frames of a window, and of 0.02 s
  static constexpr std::size_t room = 448;                               ///< tokens that the decoder holds

  /// Two models over the same sessions: one decodes, the other looks at the beginnings of windows.
  Transcriber(sluice::OnnxGraphs const& graphs, Vocabulary const& vocabulary, std::size_t bands,
              TranscribeOptions options)
      : vocabulary_(vocabulary),
        options_(std::move(options)),
        extract_(bands),
        model_(graphs, vocabulary),
        looking_(graphs, vocabulary),
        decoder_(model_, Search(),
                 sluice::Streaming{.size = static_cast<std::size_t>(options_.batch), .refill_below = 1}),
        rules_{sluice::ForbidTokens{vocabulary.suppressed}, sluice::ForbidFirst{vocabulary.suppressed_first}} {
    if (options_.word_times) aligner_.emplace(graphs);
    rules_.push_back(options_.hotwords);
    rules_.push_back(rule_of_times());
  }

  /// \param files     samples of each, read when its turn comes; what it throws goes to the caller
  /// \param finished  called with each transcript, in the order of the files
  /// \param progress  called with a file's number, and the seconds done and in all, when it has moved on
  void operator()(std::size_t count, std::function<std::vector<float>(std::size_t)> const& files,
                  std::function<void(std::size_t, Transcript const&)> const& finished,
                  std::function<void(std::size_t, double, double)> const& progress) {
    jobs_.clear(), jobs_.resize(count);
    std::size_t begun = 0, shown = 0, running = 0;
    sluice::Result result;
    while (shown < count) {
      while (begun < count && running < static_cast<std::size_t>(options_.batch)) {
        begin(jobs_[begun], files(begun));
        if (!jobs_[begun].over) ++running;
        ++begun;
      }
      if (running > 0) decoder_.step();
      while (decoder_.poll(result)) {
        auto const at = std::find_if(jobs_.begin(), jobs_.end(),
                                     [&](Job const& job) { return job.waiting && job.id == result.id; });
        take(*at, result);
        if (at->over) --running;
        progress(static_cast<std::size_t>(at - jobs_.begin()), (std::min)(at->seconds(), at->transcript.seconds),
                 at->transcript.seconds);
      }
      for (; shown < begun && jobs_[shown].over; ++shown) {
        finished(shown, jobs_[shown].transcript);
        jobs_[shown] = Job{.over = true};
      }
    }
  }

 private:
  /// What a temperature made of a window.
  struct Attempt {
    std::vector<Token> tokens{};  ///< without the end
    std::string text{};
    double log_prob = 0, compression = 0;
    float temperature = 0;
  };
  struct Job {
    LogMel features{};
    std::size_t frames = 0;  ///< of the file
    std::size_t seek = 0;    ///< frame where the window begins
    std::shared_ptr<Window> window{};
    double no_speech = 0;
    Token language = -1;
    std::vector<Token> before{};      ///< tokens of text so far, which the next window is told
    std::vector<Token> prompt{};      ///< of this window
    std::vector<Token> task{};        ///< the prompt without the text before
    double spoken = 0;                ///< seconds where the last word with a time ended
    std::vector<Attempt> attempts{};  ///< of this window
    Transcript transcript{};
    std::uint64_t id = 0;
    bool waiting = false, over = false;

    double seconds() const { return 0.01 * static_cast<double>(seek); }
    std::size_t size() const { return (std::min)(window_frames, frames - seek); }  ///< frames of the window
  };

  void begin(Job& job, std::vector<float> const& samples) {
    job.transcript.seconds = static_cast<double>(samples.size()) / sample_rate;
    job.features = extract_(samples);
    job.frames = job.features.frames - 1;
    if (!options_.language.empty()) job.language = vocabulary_.language(options_.language);
    next_window(job);
  }

  void next_window(Job& job) {
    job.attempts.clear();
    if (job.seek >= job.frames) {
      job.over = true, job.window.reset(), job.features = {};
      return;
    }
    job.window = std::make_shared<Window>();
    auto& features = job.window->features;
    features.assign(job.features.bands * window_frames, 0.0f);
    for (std::size_t band = 0; band < job.features.bands; ++band)
      for (std::size_t i = 0; i < job.size(); ++i)
        features[band * window_frames + i] = job.features.at(band, job.seek + i);
    job.prompt = told(job);
    looking_.look(*job.window, job.prompt, 1, [&](auto const& scores) {
      auto const first = log_softmax(scores[0]);
      auto const log_prob = [&](Token token) { return first[static_cast<std::size_t>(token)]; };
      job.no_speech = std::exp(log_prob(vocabulary_.no_speech));
      if (job.language < 0 && !vocabulary_.languages.empty())
        job.language = *std::max_element(vocabulary_.languages.begin(), vocabulary_.languages.end(),
                                         [&](Token a, Token b) { return log_prob(a) < log_prob(b); });
    });
    if (job.language >= 0) job.prompt.push_back(job.language);
    job.prompt.push_back(options_.translate ? vocabulary_.translate : vocabulary_.transcribe);
    job.task.assign(std::find(job.prompt.begin(), job.prompt.end(), vocabulary_.start), job.prompt.end());
    job.transcript.language = vocabulary_.code(job.language);
    submit(job);
  }

  /// What a window is told of the text before it, and the token at which it begins.
  std::vector<Token> told(Job const& job) const {
    std::vector<Token> prompt;
    if (!job.before.empty()) {
      prompt.push_back(vocabulary_.previous);
      auto const most = (std::min)(job.before.size(), room / 2 - 1);
      prompt.insert(prompt.end(), job.before.end() - static_cast<std::ptrdiff_t>(most), job.before.end());
    }
    prompt.push_back(vocabulary_.start);
    return prompt;
  }

  /// Decodes the window at the next temperature.
  void submit(Job& job) {
    auto const temperature = options_.temperatures[job.attempts.size()];
    sluice::LengthLimits const length{.max = static_cast<std::int32_t>((std::min)(room / 2, room - job.prompt.size()))};
    Search search = sluice::Greedy{.length = length, .stage = sluice::Stage::before_softmax};
    if (temperature > 0) {
      search = sluice::Sample{.temperature = temperature, .samples = options_.best_of, .length = length};
    } else if (options_.beam > 1) {
      auto beam = sluice::presets::ctranslate2(options_.beam);
      beam.length = length, beam.n_best = beam.width;
      search = beam;
    }
    job.id = decoder_.submit({.source = job.window,
                              .prompt = job.prompt,
                              .search = std::move(search),
                              .processors = rules_,
                              .seed = job.seek + job.attempts.size()});
    job.waiting = true;
  }

  void take(Job& job, sluice::Result const& result) {
    job.waiting = false;
    if (!result.ok()) {
      job.transcript.problem = "at " + clock(job.seconds(), '.') + ": " + result.message;
      job.over = true;
      return;
    }
    auto& attempt = job.attempts.emplace_back();
    attempt.temperature = options_.temperatures[job.attempts.size() - 1];
    auto best_mean = -std::numeric_limits<double>::infinity();
    for (auto const& hypothesis : result.hypotheses) {
      auto tokens = hypothesis.tokens;
      if (!tokens.empty() && tokens.back() == vocabulary_.eot) tokens.pop_back();
      auto const sum = attempt.temperature > 0 ? log_prob(job, hypothesis.tokens) : hypothesis.log_prob;
      // As openai/whisper ranks them: the end does not count. The search's own scores count it.
      auto const mean = sum / static_cast<double>((std::max)(tokens.size(), std::size_t{1}));
      if (mean <= best_mean) continue;
      best_mean = mean, attempt.log_prob = sum / static_cast<double>(tokens.size() + 1);
      attempt.tokens = std::move(tokens);
    }
    attempt.text = vocabulary_.text(attempt.tokens);
    attempt.compression = compression_ratio(trimmed(attempt.text));
    auto const unlikely = attempt.log_prob < options_.log_prob_threshold;
    auto const silent = unlikely && job.no_speech > options_.no_speech_threshold;
    auto const failed = (unlikely || attempt.compression > options_.compression_threshold) && !silent;
    if (failed && job.attempts.size() < options_.temperatures.size()) return submit(job);
    if (silent) {
      job.seek += job.size();
      return next_window(job);
    }
    keep(job, failed ? best(job) : attempt);
    next_window(job);
  }

  /// Of a drawn output, at temperature 1: a sample's own is that of the distribution that it was drawn from.
  double log_prob(Job& job, std::vector<Token> const& output) {
    if (output.empty()) return 0;
    auto fed = job.prompt;
    fed.insert(fed.end(), output.begin(), output.end() - 1);
    double sum = 0;
    looking_.look(*job.window, fed, static_cast<std::int32_t>(output.size()), [&](auto const& scores) {
      auto const timestamps = rule_of_times();
      auto state = timestamps.initial({.vocabulary = &looking_.vocabulary()});
      for (std::size_t i = 0; i < output.size(); ++i) {
        auto const from = scores[static_cast<std::ptrdiff_t>(i)];
        std::vector<float> line(from.begin(), from.end());
        for (auto const token : vocabulary_.suppressed) line[static_cast<std::size_t>(token)] = -INFINITY;
        if (i == 0)
          for (auto const token : vocabulary_.suppressed_first) line[static_cast<std::size_t>(token)] = -INFINITY;
        timestamps.process(state, {std::span(output).first(i), 0, looking_.vocabulary()}, line);
        sum += log_softmax(line)[static_cast<std::size_t>(output[i])];
        state = timestamps.next(state, output[i]);
      }
    });
    return sum;
  }
  sluice::WhisperTimestamps rule_of_times() const { return {.no_timestamps = vocabulary_.no_timestamps}; }

  /// Of attempts that all failed: the likeliest of those that do not repeat themselves, if there are such.
  Attempt const& best(Job const& job) const {
    auto const value = [&](Attempt const& one) {
      return std::pair(one.compression <= options_.compression_threshold, one.log_prob);
    };
    return *std::max_element(job.attempts.begin(), job.attempts.end(),
                             [&](Attempt const& a, Attempt const& b) { return value(a) < value(b); });
  }

  /// Cuts the window's tokens where two timestamps meet. The next window begins at the last of them, or after this one.
  void keep(Job& job, Attempt const& attempt) {
    auto const all = std::span(attempt.tokens);
    auto const time = [&](std::size_t i) { return vocabulary_.is_time(all[i]); };
    auto const offset = job.seconds();
    auto const whole = all.size() >= 2 && time(all.size() - 1) && !time(all.size() - 2);  // nothing after the last one
    auto const before = job.transcript.segments.size();
    auto advance = job.size();
    std::size_t last = 0;
    for (std::size_t i = 1; i <= all.size(); ++i) {
      if (i < all.size() ? !(time(i) && time(i - 1)) : !(whole && last > 0)) continue;
      auto const part = all.subspan(last, i - last);
      add(job, attempt, offset + vocabulary_.seconds(part.front()), offset + vocabulary_.seconds(part.back()), part);
      last = i;
    }
    if (last == 0) {  // one segment
      auto end = 0.01 * static_cast<double>(job.size());
      for (auto const token : all)
        if (vocabulary_.is_time(token) && vocabulary_.seconds(token) > 0) end = vocabulary_.seconds(token);
      add(job, attempt, offset, offset + end, all);
    } else if (!whole) {
      advance = static_cast<std::size_t>(all[last - 1] - vocabulary_.no_timestamps - 1) * frame_of_time;
    }
    if (aligner_) time_segments(job, before);
    if (advance == 0) advance = job.size();  // else it would never end
    job.seek += advance;
    if (!options_.previous_text || job.attempts.back().temperature > 0.5f) job.before.clear();
  }

  /// Gives the window's segments, from the first on, their words.
  void time_segments(Job& job, std::size_t first) {
    auto const segments = std::span(job.transcript.segments).subspan(first);
    std::vector<Token> tokens;
    std::vector<std::string> texts;
    for (auto const& segment : segments)
      for (auto const token : segment.tokens)
        if (token < vocabulary_.eot) tokens.push_back(token), texts.push_back(vocabulary_.text({&token, 1}));
    if (tokens.empty()) return;
    auto const found = (*aligner_)(job.window->encoded->memory, job.task, tokens, job.size(), vocabulary_);
    time_words(segments, found, texts, vocabulary_.eot, job.transcript.language, job.seconds(), job.spoken);
  }

  void add(Job& job, Attempt const& attempt, double begin, double end, std::span<Token const> tokens) {
    auto text = vocabulary_.text(tokens);
    if (begin == end || trimmed(text).empty()) return;
    job.before.insert(job.before.end(), tokens.begin(), tokens.end());
    job.transcript.segments.push_back({.begin = begin,
                                       .end = end,
                                       .text = std::move(text),
                                       .tokens = {tokens.begin(), tokens.end()},
                                       .log_prob = attempt.log_prob,
                                       .no_speech = job.no_speech,
                                       .temperature = static_cast<double>(attempt.temperature),
                                       .compression = attempt.compression});
  }

  Vocabulary const& vocabulary_;
  TranscribeOptions options_;
  LogMelExtractor extract_;
  Model model_, looking_;
  sluice::Decoder<Model, Search, sluice::Streaming> decoder_;
  sluice::LogitsProcessorList rules_;
  std::optional<Aligner> aligner_;
  std::vector<Job> jobs_;
};

}  // namespace whisper
