// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is printed: outputs in the order of their prompts, one of them while it grows.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <llama/options.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace generate {

class Output {
 public:
  Output(Options const& options, sluice::StopSequences stops) : options_(options), stops_(std::move(stops)) {}

  /// Whether this output is the one shown while it grows.
  bool shown(std::uint64_t id) const { return options_.stream && id == next_; }
  /// The settled beginning of an output.
  void settle(std::span<sluice::Token const> tokens) {
    header(next_);
    write(stream_.append(tokens.subspan((std::min)(tokens.size(), stream_.size()))));
  }

  void done(sluice::Result result) {
    waiting_.emplace(result.id, std::move(result));
    for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(++next_)) {
      print(at->second);
      waiting_.erase(at);
      headed_ = false, stream_ = sluice::TextStream(stops_);
    }
  }
  std::size_t failed() const { return failed_; }

 private:
  void print(sluice::Result const& result) {
    if (!result.ok()) {
      std::fflush(stdout);
      auto message = result.message;
      if (auto const at = message.find("length.max"); at != std::string::npos) message.replace(at, 10, "--max-length");
      std::fprintf(stderr, "llama_generate: prompt %llu: %s: %s\n", static_cast<unsigned long long>(result.id + 1),
                   sluice::name(result.failure), message.c_str());
      ++failed_;
    }
    if (options_.json) return print_json(result);
    header(result.id);
    for (auto const& hypothesis : result.hypotheses) {
      if (options_.n_best > 1) std::printf("[%.4f] ", hypothesis.score);
      write(options_.stream ? stream_.end(hypothesis) : stops_.text(hypothesis));
      write("\n");
    }
  }
  void print_json(sluice::Result const& result) const {
    for (auto const& h : result.hypotheses) {
      nlohmann::ordered_json line{{"prompt", result.id + 1},
                                  {"text", stops_.text(h)},
                                  {"tokens", h.tokens},
                                  {"score", h.score},
                                  {"log_prob", h.log_prob},
                                  {"finished", h.finished},
                                  {"failure", result.ok() ? "" : sluice::name(result.failure)}};
      if (h.stop >= 0) line["stop"] = options_.stops[static_cast<std::size_t>(h.stop)];
      std::puts(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    }
  }
  void header(std::uint64_t id) {
    if (headed_ || options_.prompts.size() == 1) return;
    headed_ = true;
    std::printf("== %llu\n", static_cast<unsigned long long>(id + 1));
  }
  static void write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  Options const& options_;
  sluice::StopSequences stops_;
  sluice::TextStream stream_{stops_};
  std::map<std::uint64_t, sluice::Result> waiting_;
  std::uint64_t next_ = 0;
  std::size_t failed_ = 0;
  bool headed_ = false;
};

}  // namespace generate
