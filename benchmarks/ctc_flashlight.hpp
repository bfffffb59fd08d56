// SPDX-License-Identifier: Apache-2.0
/// \file
/// The decoders of flashlight/text for sluice.bench.ctc, if SLUICE_FLASHLIGHT is defined; else nothing.
#pragma once

#ifdef SLUICE_FLASHLIGHT

#include <sluice/ngram/ngram_table.hpp>

#include "flashlight/lib/text/decoder/LexiconDecoder.h"
#include "flashlight/lib/text/decoder/LexiconFreeDecoder.h"
#include "flashlight/lib/text/decoder/lm/KenLM.h"
#include "flashlight/lib/text/decoder/lm/ZeroLM.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace ctc_flashlight {

struct Options {
  std::int32_t labels, width, listed;
  sluice::Token blank, separator;
  double weight, bonus;
};

class Decoder {
 public:
  /// \param table      of words if there are spellings, else of labels; null: no language model
  /// \param names      of the words, or of the labels
  /// \param spellings  of the words; none: any text
  Decoder(Options const& options, sluice::NGramTable const* table, std::vector<std::string> const& names,
          std::vector<std::vector<sluice::Token>> const& spellings)
      : options_(options), modelled_(table != nullptr) {
    for (auto const& name : names) names_.addEntry(name);
    names_.addEntry("<unk>");
    if (modelled_) {
      std::string const file = std::tmpnam(nullptr);
      std::ofstream stream(file);
      sluice::write_arpa(*table, stream);
      stream.close();
      language_ = std::make_shared<fl::lib::text::KenLM>(file, names_);
      std::remove(file.c_str());
    }
    if (spellings.empty()) return;
    trie_ = std::make_shared<fl::lib::text::Trie>(options.labels, options.separator);
    auto const start = language_->start(false);
    for (std::size_t i = 0; i < spellings.size(); ++i) {
      auto spelling = spellings[i];
      spelling.push_back(options.separator);  // its words end in one
      trie_->insert(spelling, static_cast<int>(i), language_->score(start, static_cast<int>(i)).second);
    }
    trie_->smear(fl::lib::text::SmearingMode::MAX);
  }

  /// The score of the best text.
  double decode(float const* frames, std::int32_t count) {
    using namespace fl::lib::text;
    auto const weight = modelled_ ? options_.weight * std::log(10.0) : 0.0;
    auto const& o = options_;
    std::vector<DecodeResult> results;
    if (trie_ != nullptr) {
      LexiconDecoder decoder({o.width, o.listed, 1e9, weight, o.bonus, -1e9, 0, true, CriterionType::CTC}, trie_,
                             language_, o.separator, o.blank, names_.getIndex("<unk>"), {}, false);
      results = decoder.decode(frames, count, o.labels);
    } else {
      LexiconFreeDecoder decoder({o.width, o.listed, 1e9, weight, 0, true, CriterionType::CTC}, language_, -1, o.blank,
                                 {});
      results = decoder.decode(frames, count, o.labels);
    }
    return results.empty() ? 0 : results[0].score;
  }

 private:
  Options options_;
  bool modelled_;
  fl::lib::text::Dictionary names_;
  std::shared_ptr<fl::lib::text::LM> language_ = std::make_shared<fl::lib::text::ZeroLM>();
  std::shared_ptr<fl::lib::text::Trie> trie_;
};

}  // namespace ctc_flashlight

#endif
