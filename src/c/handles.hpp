// SPDX-License-Identifier: Apache-2.0
/// \file
/// Handles of the C interface that several source files use.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/speculative/suffix_cache.hpp>
#include <sluice/watermark/watermark.hpp>

#include "model.hpp"
#include "options.hpp"

#include <atomic>
#include <memory>
#include <sstream>
#include <string>

struct sluice_model {
  std::unique_ptr<sluice::c::LookingModel> held;  // of a table of functions
  sluice::AnyModel<void const*> model;            // may refer to it
  void (*destroy)(void*) = nullptr;
  void* user = nullptr;
  sluice::TokenBytes bytes{};                    // none: they have not been given
  sluice::TokenTrie tokens{};                    // of these
  std::shared_ptr<sluice::SuffixCache> cache{};  // of a model that guesses from one
};

struct sluice_ngrams {
  sluice::NGramTable table;
};

struct sluice_trace {
  std::string about;
  std::ostringstream lines{};
  std::string text{};              // what was last asked for
  std::atomic<bool> taken{false};  // a request has it
};

struct sluice_grammar {
  sluice::Grammar grammar;
  sluice::Structure structure;
  std::vector<std::string> ignored;
  std::vector<sluice_bytes> names;  // of ignored
};

struct sluice_catalogue {
  sluice::Catalogue catalogue;
};

struct sluice_bias {
  sluice::Bias bias;
};

struct sluice_suffix_cache {
  std::shared_ptr<sluice::SuffixCache> cache;
};

struct sluice_watermark_key {
  sluice::WatermarkKey key;
};

struct sluice_watermark {
  sluice::Watermark watermark;
};

struct sluice_search {
  sluice::c::SearchOptions options;
};

namespace sluice::c {

/// As sluice_grammar_create, for tokens as a trie; throws.
void make_grammar(TokenTrie const& tokens, char const* kind, char const* text, sluice_grammar_options const* options,
                  sluice_grammar** grammar);

}  // namespace sluice::c
