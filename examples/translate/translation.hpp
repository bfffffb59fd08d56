// SPDX-License-Identifier: Apache-2.0
/// \file
/// From lines to sentences, from results to lines.
#pragma once

#include <sluice/core/result.hpp>

#include <translate/decoders.hpp>
#include <translate/input.hpp>
#include <translate/masks.hpp>
#include <translate/model.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>

#include <cstddef>
#include <fstream>
#include <iosfwd>
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
  std::ofstream output_file, stats_file;
  std::ostream& output;
};

/// Decodes window after window of the input.
class Translation {
 public:
  Translation(Options const& options, Resources& resources, Decoders& decoders);
  /// \return the exit code
  int run();

 private:
  struct Line {
    std::size_t number;                   // from 1
    std::optional<std::size_t> sentence;  // nothing: an empty line comes out
  };

  bool read(std::size_t count);
  std::optional<Sentence> make_sentence(std::string const& text, std::size_t number);
  void write(Line const& line, std::vector<sluice::Result> const& results);
  std::string text_of(sluice::Hypothesis const& hypothesis) const;
  void complain(Code code, std::string const& message);

  Options const& options_;
  Resources& resources_;
  Decoders& decoders_;
  Progress progress_;
  std::vector<Line> lines_;  // of the window
  std::vector<Sentence> sentences_;
  int code_ = fine;
};

}  // namespace translate
