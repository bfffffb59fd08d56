// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether and how a server marks what it generates.
#pragma once

#include <sluice/watermark/watermark.hpp>

#include <text/watermark.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <http/fields.hpp>
#include <string>
#include <vector>

namespace serve {

struct Watermarking {
  /// Which outputs are marked.
  enum class Policy : std::uint8_t {
    always,      ///< all; a request cannot have it otherwise
    by_default,  ///< all but those of requests with `watermark` false
    requested,   ///< those of requests with `watermark` true
  };
  sluice::Watermark watermark{};  ///< off: there is no key
  Policy policy = Policy::always;

  bool draws() const { return text::draws(watermark.scheme); }

  /// The watermark of a request, by its field `watermark`; off: none.
  /// \throws BadField  if the policy, or the lack of a key, does not allow what it wants
  sluice::Watermark of(Fields& fields) const;
  /// What a request whose search cannot carry the mark is told.
  /// \param field  that made it so
  [[noreturn]] void refuse(std::string const& field, std::string const& why) const;
  /// Refuses several samples that would all be the same.
  /// \param field  that asks for them
  /// \param count  how many
  void check_samples(std::string const& field, std::int32_t count) const;
};

/// The flags of these options.
class WatermarkingFlags {
 public:
  WatermarkingFlags(CLI::App& app, Watermarking& watermarking);
  /// After the command line has been read: reads the key.
  /// \throws text::InputError  for a file that holds no key, and for options that do not go together
  void finish();

 private:
  Watermarking& watermarking_;
  text::WatermarkFlags flags_;
  std::string policy_ = "always";
  std::vector<CLI::Option*> options_;
};

}  // namespace serve
