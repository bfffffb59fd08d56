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
#include <translate/results.hpp>
#include <translate/shares.hpp>
#include <translate/trace.hpp>

#include <condition_variable>
#include <cstddef>
#include <fstream>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace translate {

/// Exit codes; the largest one is returned.
enum Code : int { fine = 0, sentence_failed = 1, bad_input = 2 };

/// What the command line named, opened and checked; all but the output.
struct Resources {
  /// \param check  reads the input as a whole, if it is a file
  /// \throws text::InputError  for invalid input, before anything is written
  explicit Resources(
      Options const& options, std::function<void(Input&)> const& check = [](Input& input) { input.check(); });

  sluice::Grammar grammar;
  Input input;
  std::vector<std::string> targets;  ///< of --prefix or --score
  Models models;
  Restrictions restrictions;
  Constraints constraints;
  std::ofstream stats_file, trace_file;
  TraceOutput trace;
};

/// Reads lines when decoders need them, writes translations as soon as it is their turn. Holds a bounded part of the text.
class Translation final : public Exchange {
 public:
  /// \param progress  also prints the messages
  Translation(Options const& options, Resources& resources, Decoders& decoders, Shares& shares, Progress& progress);
  /// \return the exit code
  int run();
  /// Lines that an earlier run had done.
  std::size_t resumed() const { return resumed_; }

  bool take(std::size_t count, bool wait, std::vector<Sentence>& sentences) override;
  void give(std::size_t place, sluice::Result result) override;
  sluice::TraceFile* trace() override { return resources_.trace.file(); }
  void abandon() override;

 private:
  /// The next share is the one that is read; false if there is none.
  bool open();
  /// Shares that are complete are closed.
  void retire();
  /// A line of the input that is no sentence yet.
  struct Line {
    std::size_t number = 0;  ///< from 1
    std::string text;
  };
  /// Appends up to `count` lines; of those that an earlier run had done, none. Only this is done by one thread at a
  /// time.
  /// \return whether there may be more
  bool read(std::size_t count, bool wait, std::vector<Line>& lines);
  /// Appends the line's sentence, or finishes a line that has none.
  void prepare(Line const& line, std::vector<Sentence>& sentences);
  /// Nothing for a line without words, or with a fault, which `line` then says. Of such a line too `constraints` are what
  /// is demanded all the same.
  std::optional<Sentence> make_sentence(std::string const& text, std::size_t number, WholeWords& constraints,
                                        Finished& line);
  void finish(std::size_t number, Finished line, bool again = false);
  /// The constraints that a pending line is checked against, and the words it is aligned with.
  struct Due {
    WholeWords constraints;
    std::vector<std::int32_t> source_words;
  };
  bool has_due() const { return options_.constrained() || options_.alignments; }
  Finished format(std::size_t number, sluice::Result const& result, Due const& due) const;
  /// The output after a translation.
  std::string details(sluice::Hypothesis const& hypothesis, Due const& due) const;
  /// Reports unmet constraints of a translation.
  void judge(std::size_t number, WholeWords const& constraints, std::string const& text, Finished& line) const;
  std::string text_of(sluice::Hypothesis const& hypothesis) const;
  std::size_t waiting() const;

  Options const& options_;
  Resources& resources_;
  Decoders& decoders_;
  Shares& shares_;
  Progress& progress_;
  std::size_t ahead_;  // lines that may be read and not yet written

  std::mutex reading_;  // of the input
  Share* current_ = nullptr;
  std::mutex writing_;  // of the output and what follows
  std::condition_variable room_;
  std::list<Share> open_;                     // in the order of the input; the last one may be read
  std::unordered_map<std::size_t, Due> due_;  // of lines that are not done, if anything
  BlockCounts blocks_;
  std::size_t resumed_ = 0;
  int code_ = fine;
  bool ended_ = false, abandoned_ = false;
};

}  // namespace translate
