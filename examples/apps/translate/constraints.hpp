// SPDX-License-Identifier: Apache-2.0
/// \file
/// Required and forbidden phrases of each line: --constraints and --glossary.
#pragma once

#include <translate/demands.hpp>
#include <translate/glossary.hpp>
#include <translate/options.hpp>
#include <translate/spelling.hpp>
#include <translate/tokenizer.hpp>
#include <translate/whole_words.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace translate {

class Constraints {
 public:
  /// Refers to the tokenizer.
  /// \param lines  of --constraints
  /// \throws text::InputError  for a glossary that cannot be read, or holds a target that cannot be written
  Constraints(Options const& options, std::vector<std::string> lines, Tokenizer const& tokenizer);

  /// The names of texts without files in messages.
  struct Names {
    std::string constraints, glossary;
  };
  /// The same of what is no file's.
  /// \param glossary  lines: source term, tab, target term
  Constraints(Names names, std::vector<std::string> lines, std::vector<std::string> const& glossary,
              Tokenizer const& tokenizer, std::shared_ptr<Spellings const> shared);
  /// How the tokenizer, which must live as long, writes phrases: made once, shared by many.
  static std::shared_ptr<Spellings const> spellings(Tokenizer const& tokenizer);

  /// For line `number` of the input, from 1. Lines after the last of --constraints have no constraints.
  /// \param where  the line of the input, for messages about the glossary
  /// \throws text::InputError  for invalid constraints, naming file and line
  WholeWords of(std::size_t number, std::string const& where, std::string_view source,
                std::vector<sluice::Token> const& prefix) const;

  /// The same, with terms() of the source.
  WholeWords of(std::size_t number, std::string const& where, std::vector<Glossary::Entry const*> const& terms,
                std::vector<sluice::Token> const& prefix) const;
  /// The glossary's entries whose terms are in the source.
  std::vector<Glossary::Entry const*> terms(std::string_view source) const { return glossary_.find(source); }

  /// Of --constraints.
  std::size_t lines() const { return lines_.size(); }

 private:
  std::string normal(std::string const& phrase) const;
  std::string both(std::string const& phrase) const;
  void read_glossary(std::vector<std::string> const& lines);

  Tokenizer const& tokenizer_;
  std::string file_, glossary_file_;
  std::vector<std::string> lines_;
  Glossary glossary_;
  std::shared_ptr<Spellings const> spellings_;
};

}  // namespace translate
