// SPDX-License-Identifier: Apache-2.0
// The watermarks of the C interface; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/core/error.hpp>
#include <sluice/watermark/detect_watermark.hpp>
#include <sluice/watermark/key_file.hpp>
#include <sluice/watermark/watermark.hpp>

#include "handles.hpp"
#include "options.hpp"
#include "passing.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

using namespace sluice::c;
using sluice::require;

namespace {

sluice::WatermarkScheme scheme_of(std::string_view wanted) {
  using enum sluice::WatermarkScheme;
  for (auto const scheme : {none, gumbel, synthid, red_green, sbw})
    if (wanted == name(scheme)) return scheme;
  require(false, "scheme", wanted, "must be gumbel, synthid, red_green, sbw or none");
  return none;
}

/// What was found, and what it refers to.
struct Detection : sluice_watermark_detection {
  explicit Detection(sluice::WatermarkDetection const& found) : sluice_watermark_detection{} {
    for (auto const& window : found.windows)
      parts.push_back({window.begin, window.end, window.scored, 0, window.score, window.p_value});
    tokens = found.tokens, scored = found.scored, masked = found.masked, repeated = found.repeated;
    score = found.score, expected = found.expected, p_value = found.p_value;
    windows = parts.empty() ? nullptr : parts.data(), window_count = parts.size();
    windows_p_value = found.windows_p_value;
  }
  Detection(Detection const&) = delete;
  Detection& operator=(Detection const&) = delete;
  ~Detection() = default;

  std::vector<sluice_watermark_window> parts{};
};

}  // namespace

extern "C" {

sluice_status sluice_watermark_key_open(char const* file, sluice_watermark_key** key) {
  return guarded([&] {
    auto const* const path = &not_null(file, "file");
    auto& made = not_null(key, "key");
    made = new sluice_watermark_key{sluice::read_watermark_key(path)};
    return SLUICE_OK;
  });
}
sluice_status sluice_watermark_key_create(uint64_t const* words, size_t count, sluice_watermark_key** key) {
  return guarded([&] {
    auto& made = not_null(key, "key");
    require(words != nullptr || count == 0, "words", "null", "must be as many as it says");
    require(count > 0, "watermark key: words", count, "must be at least 1");
    made = new sluice_watermark_key{sluice::WatermarkKey(std::span(words, count))};
    return SLUICE_OK;
  });
}
sluice_status sluice_watermark_key_from_bytes(void const* bytes, size_t count, sluice_watermark_key** key) {
  return guarded([&] {
    auto& made = not_null(key, "key");
    require(bytes != nullptr || count == 0, "bytes", "null", "must be as many as it says");
    require(count > 0 && count % 8 == 0, "watermark key: bytes", count, "must be a multiple of 8, eight for each word");
    auto const* const each = static_cast<unsigned char const*>(bytes);
    std::vector<std::uint64_t> words(count / 8, 0);
    for (std::size_t i = 0; i < count; ++i) words[i / 8] |= std::uint64_t{each[i]} << (i % 8 * 8);
    made = new sluice_watermark_key{sluice::WatermarkKey(words)};
    return SLUICE_OK;
  });
}
sluice_status sluice_watermark_key_write_new(char const* file, size_t words, sluice_watermark_key** key) {
  return guarded([&] {
    auto const* const path = &not_null(file, "file");
    auto& made = not_null(key, "key");
    made = new sluice_watermark_key{sluice::write_new_watermark_key(path, words)};
    return SLUICE_OK;
  });
}
void sluice_watermark_key_free(sluice_watermark_key* key) { delete key; }

sluice_status sluice_watermark_create(char const* scheme, sluice_watermark_key const* key,
                                      sluice_watermark** watermark) {
  return guarded([&] {
    auto const wanted = scheme_of(&not_null(scheme, "scheme"));
    auto& made = not_null(watermark, "watermark");
    made = new sluice_watermark{{.scheme = wanted, .key = key == nullptr ? sluice::WatermarkKey() : key->key}};
    return SLUICE_OK;
  });
}
void sluice_watermark_free(sluice_watermark* watermark) { delete watermark; }

sluice_status sluice_watermark_set(sluice_watermark* watermark, char const* name, double value) {
  return guarded([&] {
    auto& options = not_null(watermark, "watermark").watermark;
    Setter setter(&not_null(name, "name"), value);
    set(options, setter);
    require(setter.found(), "name", name, "is no option of a watermark");
    return SLUICE_OK;
  });
}

sluice_status sluice_search_mark(sluice_search* search, sluice_watermark const* watermark) {
  return guarded([&] {
    not_null(search, "search").options.mark(watermark == nullptr ? sluice::Watermark() : watermark->watermark);
    return SLUICE_OK;
  });
}

sluice_status sluice_detect_watermark(sluice_watermark const* watermark, sluice_token const* tokens, size_t count,
                                      sluice_detection_options const* options,
                                      sluice_watermark_detection const** found) {
  return guarded([&] {
    auto const& marks = not_null(watermark, "watermark").watermark;
    auto& made = not_null(found, "found");
    require(tokens != nullptr || count == 0, "tokens", "null", "must be as many tokens as it says");
    auto const how = options == nullptr ? sluice_detection_options_init() : taken(*options);
    require(how.mask != nullptr || how.mask_count == 0, "mask", "null", "must be as many as it says");
    require(how.reserved == 0, "sluice_detection_options.reserved", how.reserved, "must be 0");
    auto const answer = sluice::detect_watermark(std::span(tokens, count), marks,
                                                 {.mask = std::span(how.mask, how.mask_count), .window = how.window});
    made = std::make_unique<Detection>(answer).release();
    return SLUICE_OK;
  });
}
void sluice_watermark_detection_free(sluice_watermark_detection const* found) {
  delete static_cast<Detection const*>(found);
}

}  // extern "C"
