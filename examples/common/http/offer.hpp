// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a server was started with that requests may use or decline: guesses, earlier outputs, marks.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <http/fields.hpp>
#include <http/watermarking.hpp>
#include <string>

namespace serve {

/// Earlier outputs, from which guesses come (suffix decoding).
struct RememberOptions {
  std::filesystem::path file{};  ///< keeps them from one run to the next; empty: none
  std::int64_t tokens = 0;       ///< how many of their tokens; 0: none are remembered

  bool on() const { return tokens > 0; }
};

struct Offer {
  bool guesses = false;  ///< the model proposes tokens by itself
  RememberOptions remember{};
  Watermarking watermarking{};

  /// Whether there are guesses for blockwise decoding.
  bool blockwise() const { return guesses || remember.on(); }
  /// Whether a request takes part in what is remembered, by its field `remember`.
  /// \throws BadField  for a wish that cannot be met
  bool remembers(Fields& fields) const {
    auto const wanted = fields.flag("remember");
    if (wanted.value_or(false) && !remember.on())
      throw BadField("remember", "remember is true, but this server remembers nothing");
    return wanted.value_or(true);
  }
};

/// The flags of these options, but for those of guesses.
class OfferFlags {
 public:
  OfferFlags(CLI::App& app, Offer& offer) : offer_(offer), marking_(app, offer.watermarking) {
    app.add_option("--remember", file_, "guess from earlier outputs (suffix decoding), which FILE keeps")
        ->type_name("FILE");
    app.add_option("--remember-memory", mib_, "memory of earlier outputs (200); without --remember, in no file")
        ->type_name("MIB")
        ->check(CLI::Range(1, 20000).description(""));
  }
  /// After the command line has been read.
  /// \throws text::InputError  as WatermarkingFlags::finish()
  void finish() {
    marking_.finish();
    auto& remember = offer_.remember;
    remember.file = file_;
    if (mib_ == 0 && !file_.empty()) mib_ = 200;
    // SuffixCache takes some 20 bytes for a token while arrays are merged.
    remember.tokens = std::int64_t{mib_} * ((1 << 20) / 20);
  }

 private:
  Offer& offer_;
  WatermarkingFlags marking_;
  std::string file_;
  std::int32_t mib_ = 0;
};

}  // namespace serve
