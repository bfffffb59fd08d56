// SPDX-License-Identifier: Apache-2.0
/// \file
/// Watermark: how generated tokens are marked so that detect_watermark() recognises them, and its secret, WatermarkKey.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0 {

/// The key of a Watermark: up to 32 words of 64 bits. Whoever knows it can detect the mark, and can forge it. It has no
/// output operator, and no message of the library contains it. read_watermark_key() reads one from a file.
class WatermarkKey {
 public:
  static constexpr std::size_t most = 32;

  WatermarkKey() = default;  ///< no key
  /// \throws std::invalid_argument  for more than `most` words
  SLUICE_LAZY explicit WatermarkKey(std::span<std::uint64_t const> words) : size_(words.size()) {
    require(words.size() <= most, "watermark key: words", words.size(), "must be at most 32");
    std::copy(words.begin(), words.end(), words_.begin());
  }
  explicit WatermarkKey(std::uint64_t word) : WatermarkKey(std::span(&word, 1)) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }  ///< words
  std::span<std::uint64_t const> words() const { return std::span(words_).first(size_); }

  /// Compares in a time that does not depend on the keys.
  friend bool operator==(WatermarkKey const& a, WatermarkKey const& b) {
    std::uint64_t differ = a.size_ ^ b.size_;
    for (std::size_t i = 0; i < most; ++i) differ |= a.words_[i] ^ b.words_[i];
    return differ == 0;
  }

 private:
  std::array<std::uint64_t, most> words_{};
  std::size_t size_ = 0;
};

/// How a token carries a mark.
enum class WatermarkScheme : std::uint8_t {
  none,
  gumbel,  ///< the key's numbers take the place of the Gumbel noise by which a token is drawn (Aaronson 2022). Averaged
           ///< over keys, a token has the model's own distribution
  synthid,  ///< a tournament of `depth` rounds by the key's bits (SynthID-Text: Dathathri et al. 2024, two leaves, not
            ///< distorting). Averaged over keys, a token has the model's own distribution
  red_green,  ///< a share `gamma` of the tokens is green, and `delta` is added to their logits (Kirchenbauer et al. 2023).
              ///< Changes the distribution
  sbw,        ///< the same with green tokens by Ceppi and Sanchez 2026 (2609.03844), anchored minhash. Changes the
              ///< distribution
};

/// The name of a scheme, as written above.
constexpr char const* name(WatermarkScheme scheme) {
  switch (scheme) {
    case WatermarkScheme::none: return "none";
    case WatermarkScheme::gumbel: return "gumbel";
    case WatermarkScheme::synthid: return "synthid";
    case WatermarkScheme::red_green: return "red_green";
    case WatermarkScheme::sbw: return "sbw";
  }
  return "unknown";
}

/// The pseudorandom function that turns key, context and token into a number.
enum class WatermarkPrf : std::uint8_t {
  sluice,  ///< HMAC-SHA256 of the context, then the library's own noise of each token: the expander draws, so that a
           ///< mark costs nothing more per token of the vocabulary
  philox,  ///< vLLM's "philox" (philox4x32-10-v1); the key is one word
  hmac_sha256,   ///< vLLM's "hmac_sha256" (hmac-sha256-v1), an HMAC for every token looked at; up to four words
  synthid_text,  ///< google-deepmind/synthid-text's; the key has a word for each round of the tournament
  hugging_face  ///< that of transformers' SynthIDTextWatermarkLogitsProcessor (sampling_table_size 65536, seed 0). Its bits
                ///< depend on 16 bits of a hash, so that different contexts share them: only to read its marks
};

/// The name of a function, as written above.
constexpr char const* name(WatermarkPrf prf) {
  switch (prf) {
    case WatermarkPrf::sluice: return "sluice";
    case WatermarkPrf::philox: return "philox";
    case WatermarkPrf::hmac_sha256: return "hmac_sha256";
    case WatermarkPrf::synthid_text: return "synthid_text";
    case WatermarkPrf::hugging_face: return "hugging_face";
  }
  return "unknown";
}

/// How tokens are marked. Sample, acceptance::Sampling, acceptance::Rejection and the rule GreenList take one, and
/// detect_watermark() takes the same. Off by default.
///
/// The mark of a token depends on key, token and context: the `width` tokens of the output before it, a forced prefix
/// included and the prompt not. A context that has occurred in this output before marks nothing: there a token is drawn as
/// without a watermark, since the same numbers twice would change the distribution, and be no new evidence. Forced tokens
/// are not marked, and where only one token is possible nothing can be.
struct Watermark {
  WatermarkScheme scheme = WatermarkScheme::none;
  WatermarkPrf prf = WatermarkPrf::sluice;
  WatermarkKey key{};
  std::int32_t width = 4;  ///< of the context, in [1, 16]; with more, an edit destroys the marks of more tokens
  float second =
      0;  ///< gumbel: the share of tokens that are drawn with a second key, derived from the first, so that outputs of one
          ///< prompt vary (vLLM's dual_key_gumbel, alpha); 0, or in [0.01, 0.99]
  float gamma = 0.25f;  ///< red_green, sbw: the share of green tokens, in (0, 1)
  float delta = 2;      ///< red_green, sbw: added to the logits of green tokens; > 0
  std::int32_t depth =
      30;  ///< synthid: rounds of the tournament, in [1, 32]; with the last two prfs the key's words count

  bool on() const { return scheme != WatermarkScheme::none; }

  SLUICE_LAZY void check() const;
};

namespace detail {

/// Whether the key has a word for each round of the tournament, and zeros stand in a context before the output; -1 elsewhere.
constexpr bool hashes_rounds(Watermark const& watermark) {
  return watermark.prf == WatermarkPrf::synthid_text || watermark.prf == WatermarkPrf::hugging_face;
}
/// Rounds of the tournament.
inline std::int32_t rounds(Watermark const& watermark) {
  return hashes_rounds(watermark) ? static_cast<std::int32_t>(watermark.key.size()) : watermark.depth;
}

}  // namespace detail

template <class Void>
void Watermark::check() const {
  using enum WatermarkScheme;
  if (!on()) return;
  require(!key.empty(), "watermark.key", "none", "is needed to mark and to detect");
  require(width >= 1 && width <= 16, "watermark.width", width, "must be in [1, 16]");
  require(second == 0 || (second >= 0.01f && second <= 0.99f), "watermark.second", second,
          "must be 0, or in [0.01, 0.99]");
  require(second == 0 || scheme == gumbel, "watermark.second", second,
          "is for the scheme gumbel: outputs of the others vary with the seed");
  require(gamma > 0 && gamma < 1, "watermark.gamma", gamma, "must be between 0 and 1");
  require(delta > 0 && std::isfinite(delta), "watermark.delta", delta, "must be a number > 0");
  require(depth >= 1 && depth <= 32, "watermark.depth", depth, "must be in [1, 32]");
  require(!detail::hashes_rounds(*this) || scheme == synthid, "watermark.prf", name(prf),
          "is for the scheme synthid: it gives bits, not numbers");
  require(scheme != synthid || prf != WatermarkPrf::hmac_sha256, "watermark.prf", name(prf),
          "has no bits for the scheme synthid: choose sluice, philox or synthid_text");
  require(prf != WatermarkPrf::philox || key.size() == 1, "watermark.key: words", key.size(),
          "must be 1 for the prf philox");
  require(prf != WatermarkPrf::hmac_sha256 || key.size() <= 4, "watermark.key: words", key.size(),
          "must be at most 4 for the prf hmac_sha256");
  require(scheme != sbw || prf == WatermarkPrf::philox, "watermark.prf", name(prf),
          "is not defined for the scheme sbw: choose philox");
}

}  // namespace sluice::inline v0
