// SPDX-License-Identifier: Apache-2.0
/// \file
/// From lines to sentences, from results to lines.
#pragma once

#include <sluice/core/result.hpp>

#include <translate/blocks.hpp>
#include <translate/constraints.hpp>
#include <translate/decoders.hpp>
#include <translate/exchange.hpp>
#include <translate/input.hpp>
#include <translate/masks.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>
#include <translate/trace.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <fstream>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace translate {

/// Exit codes; the largest that came up counts.
enum Code : int { fine = 0, sentence_failed = 1, bad_input = 2 };

/// What the command line named, opened and checked.
struct Resources {
  /// \throws text::InputError  for whatever cannot be used; nothing has been written then
  explicit Resources(Options const& options);

  Input input;
  std::vector<std::string> targets;  ///< of --prefix or --score
  Models models;
  Masks masks;
  Constraints constraints;
  std::ofstream output_file, stats_file, trace_file;
  TraceOutput trace;
  std::ostream& output;
};

/// Reads lines as the decoders want them, writes translations as soon as their turn has come. Holds a bounded part of the
/// text, however long it is.
class Translation final : public Exchange {
 public:
  Translation(Options const& options, Resources& resources, Decoders& decoders);
  /// \return the exit code
  int run();

  bool take(std::size_t count, bool wait, std::vector<Sentence>& sentences) override;
  void give(std::size_t place, sluice::Result result) override;
  sluice::TraceFile* trace() override { return resources_.trace.file(); }
  void abandon() override;

 private:
  /// A line that is not yet written.
  struct Line {
    bool done = false;
    std::optional<sluice::Result> result{};  // nothing: an empty line comes out
    WholeWords constraints{};
  };

  /// Nothing for a line without words, or with a fault: of which `constraints` are what is demanded all the same.
  std::optional<Sentence> make_sentence(std::string const& text, std::size_t number, WholeWords& constraints);
  void finish(std::size_t place, std::optional<sluice::Result> result);
  void write(std::size_t number, Line const& line);
  /// Says what a translation lacks.
  void judge(std::size_t number, WholeWords const& constraints, std::string const& text);
  std::string text_of(sluice::Hypothesis const& hypothesis) const;
  void complain(Code code, std::string const& message);

  Options const& options_;
  Resources& resources_;
  Decoders& decoders_;
  Progress progress_;
  std::size_t ahead_;  // lines that may be read and not yet written
  std::atomic<int> code_ = fine;

  std::mutex reading_;  // of the input
  std::mutex writing_;  // of the output and what follows
  std::condition_variable room_;
  std::deque<Line> lines_;
  BlockCounts blocks_;
  std::size_t written_ = 0;
  bool ended_ = false, abandoned_ = false;
};

}  // namespace translate
