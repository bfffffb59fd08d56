// SPDX-License-Identifier: Apache-2.0
// The language models of the C interface; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/core/error.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include "handles.hpp"
#include "passing.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice::c;
using sluice::require;

namespace {

using Model = sluice::AnyModel<void const*>;

/// ARPA, or a mapped file.
sluice::NGramTable open(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  char first[8] = {};
  file.read(first, sizeof first);
  std::string_view const begin(first, static_cast<std::size_t>(file.gcount()));
  if (begin == sluice::detail::ngram_magic) return sluice::NGramTable::open(path);
  if (begin == "mmap lm ")
    throw std::runtime_error(path + ": is a binary file of KenLM: give the ARPA file that it was built from");
  if (begin.starts_with("\x1f\x8b")) throw std::runtime_error(path + ": is compressed: unpack it first (gunzip)");
  file.clear(), file.seekg(0);
  try {
    return sluice::read_arpa(file);
  } catch (std::runtime_error const& problem) {
    throw std::runtime_error(path + ": " + problem.what());
  }
}

std::string_view text(sluice_bytes const& from, std::string_view name, std::size_t index) {
  if (from.data == nullptr && from.count != 0)
    require(false, std::string(name) + "[" + std::to_string(index) + "].data", "null",
            "must be as many bytes as it says");
  return {from.data, from.count};
}

Model model_of(sluice::NGramTable const& table, sluice_ngram_options const& options) {
  if (options.vocabulary == 0) {
    require(options.words == nullptr && options.bytes == nullptr, "vocabulary", 0,
            "must be the number of `words` or `bytes`");
    return Model(sluice::NGramModel<void const*>(table));
  }
  require(options.vocabulary > 0, "vocabulary", options.vocabulary, "must not be negative");
  require((options.words == nullptr) != (options.bytes == nullptr), "words, bytes",
          options.words == nullptr ? "null" : "both", "exactly one of them must be there");
  sluice::Vocabulary const vocabulary{.size = options.vocabulary,
                                      .bos = options.bos,
                                      .eos = copy(options.eos, options.eos_count, "eos"),
                                      .never = copy(options.never, options.never_count, "never")};
  auto const size = static_cast<std::size_t>(options.vocabulary);
  if (options.words != nullptr)
    return Model(sluice::NGramModel<void const*>(table, vocabulary, {options.words, options.words + size},
                                                 {.unknown = options.unknown}));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < size; ++i) texts.emplace_back(text(options.bytes[i], "bytes", i));
  return Model(
      sluice::WordModel<void const*>(table, vocabulary, sluice::TokenBytes(texts), {.unknown = options.unknown}));
}

}  // namespace

extern "C" {

sluice_status sluice_ngrams_open(char const* file, sluice_ngrams** ngrams) {
  return guarded([&] {
    auto const* const path = &not_null(file, "file");
    auto& made = not_null(ngrams, "ngrams");
    made = new sluice_ngrams{open(path)};
    return SLUICE_OK;
  });
}
void sluice_ngrams_free(sluice_ngrams* ngrams) { delete ngrams; }

int32_t sluice_ngrams_size(sluice_ngrams const* ngrams) { return ngrams == nullptr ? 0 : ngrams->table.size(); }

sluice_status sluice_ngrams_find(sluice_ngrams const* ngrams, sluice_bytes const* spellings, size_t count,
                                 int32_t* words) {
  return guarded([&] {
    auto const& table = not_null(ngrams, "ngrams").table;
    require(spellings != nullptr || count == 0, "spellings", "null", "must be as many as it says");
    require(words != nullptr || count == 0, "words", "null", "must have room for as many as it says");
    for (std::size_t i = 0; i < count; ++i) words[i] = table.find(text(spellings[i], "spellings", i)).value_or(-1);
    return SLUICE_OK;
  });
}
sluice_status sluice_ngrams_spelling(sluice_ngrams const* ngrams, int32_t word, sluice_bytes* spelling) {
  return guarded([&] {
    auto const found = not_null(ngrams, "ngrams").table.spelling(word);
    not_null(spelling, "spelling") = {found.data(), found.size()};
    return SLUICE_OK;
  });
}
sluice_status sluice_ngrams_score(sluice_ngrams const* ngrams, int32_t const* words, size_t count, double* log_prob) {
  return guarded([&] {
    auto const& table = not_null(ngrams, "ngrams").table;
    auto& sum = not_null(log_prob, "log_prob");
    auto const all = copy(words, count, "words");
    for (auto const word : all)
      require(word < table.size(), "words", word, "the table has " + std::to_string(table.size()));
    sum = table.log_prob(all);
    return SLUICE_OK;
  });
}

sluice_status sluice_ngrams_model(sluice_ngrams const* ngrams, sluice_ngram_options const* options,
                                  sluice_model** model) {
  return guarded([&] {
    auto const& table = not_null(ngrams, "ngrams").table;
    auto& made = not_null(model, "model");
    made = new sluice_model{nullptr, model_of(table, options == nullptr ? sluice_ngram_options{} : taken(*options))};
    return SLUICE_OK;
  });
}

sluice_status sluice_model_fuse(sluice_model* model, sluice_model* language, double weight,
                                sluice_fused_options const* options, sluice_model** fused) {
  return guarded([&] {
    auto& its = not_null(model, "model");
    auto& added = not_null(language, "language");
    auto& made = not_null(fused, "fused");
    require(&its != &added, "language", "the model itself", "must be another model");
    auto const given = options == nullptr ? sluice_fused_options{} : taken(*options);
    require(given.normalise == 0 || given.normalise == 1, "normalise", given.normalise, "must be 0 or 1");
    require(given.reserved == 0, "reserved", given.reserved, "must be 0");
    sluice::FusedOptions how{.weight = weight,
                             .word_bonus = given.word_bonus,
                             .words = copy(given.words, given.word_count, "words"),
                             .tokens = copy(given.tokens, given.token_count, "tokens"),
                             .unknown = given.unknown == nullptr ? -1 : *given.unknown,
                             .unknown_log_prob = given.unknown_log_prob,
                             .normalise = given.normalise == 1};
    sluice::Fused<Model, Model, std::identity> sum(its.model, added.model, std::move(how));
    made = new sluice_model{nullptr, Model(std::move(sum))};
    made->bytes = its.bytes, made->tokens = its.tokens;
    return SLUICE_OK;
  });
}

}  // extern "C"
