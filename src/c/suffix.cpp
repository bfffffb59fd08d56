// SPDX-License-Identifier: Apache-2.0
// Suffix decoding of the C interface; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include "handles.hpp"
#include "passing.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

using namespace sluice::c;
using sluice::require;

namespace {

using Model = sluice::AnyModel<void const*>;

sluice::SuffixCache& cache_of(sluice_suffix_cache* handle) { return *not_null(handle, "cache").cache; }

}  // namespace

extern "C" {

sluice_status sluice_suffix_cache_create(int64_t tokens, int32_t longest, sluice_suffix_cache** cache) {
  return guarded([&] {
    auto& made = not_null(cache, "cache");
    made = new sluice_suffix_cache{
        std::make_shared<sluice::SuffixCache>(tokens == 0 ? 10'000'000 : tokens, longest == 0 ? 32 : longest)};
    return SLUICE_OK;
  });
}
void sluice_suffix_cache_free(sluice_suffix_cache* cache) { delete cache; }

sluice_status sluice_suffix_cache_save(sluice_suffix_cache* cache, char const* file) {
  return guarded([&] {
    auto& its = cache_of(cache);
    its.save(&not_null(file, "file"));
    return SLUICE_OK;
  });
}
sluice_status sluice_suffix_cache_load(sluice_suffix_cache* cache, char const* file) {
  return guarded([&] {
    auto& its = cache_of(cache);
    its.load(&not_null(file, "file"));
    return SLUICE_OK;
  });
}
sluice_status sluice_suffix_cache_insert(sluice_suffix_cache* cache, sluice_token const* before, size_t before_count,
                                         sluice_token const* decoded, size_t count) {
  return guarded([&] {
    auto& its = cache_of(cache);
    require(before != nullptr || before_count == 0, "before", "null", "must be as many tokens as it says");
    require(decoded != nullptr || count == 0, "decoded", "null", "must be as many tokens as it says");
    its.insert(std::span(before, before_count), std::span(decoded, count));
    return SLUICE_OK;
  });
}
sluice_status sluice_suffix_cache_clear(sluice_suffix_cache* cache) {
  return guarded([&] {
    cache_of(cache).clear();
    return SLUICE_OK;
  });
}
int64_t sluice_suffix_cache_tokens(sluice_suffix_cache const* cache) {
  return cache == nullptr ? 0 : cache->cache->tokens();
}
int64_t sluice_suffix_cache_texts(sluice_suffix_cache const* cache) {
  return cache == nullptr ? 0 : cache->cache->texts();
}
int64_t sluice_suffix_cache_bytes(sluice_suffix_cache const* cache) {
  return cache == nullptr ? 0 : cache->cache->bytes();
}

sluice_status sluice_model_remember(sluice_model* model, sluice_suffix_cache* cache,
                                    sluice_suffix_options const* options, sluice_model** remembering) {
  return guarded([&] {
    auto& its = not_null(model, "model");
    auto const shared = not_null(cache, "cache").cache;
    auto& made = not_null(remembering, "remembering");
    auto const given = options == nullptr ? sluice_suffix_options_init() : taken(*options);
    require(given.not_own == 0 || given.not_own == 1, "not_own", given.not_own, "must be 0 or 1");
    require(given.reserved == 0, "sluice_suffix_options.reserved", given.reserved, "must be 0");
    sluice::SuffixDecoding::Options how{.own = given.not_own == 0};
    if (given.shortest != 0) how.shortest = given.shortest;
    if (given.samples != 0) how.samples = given.samples;
    if (given.factor != 0) how.factor = given.factor;
    if (given.least != nullptr) how.least = *given.least;
    sluice::Speculated guessing(its.model, sluice::SuffixDecoding(*shared, how));
    std::unique_ptr<sluice_model> whole(new sluice_model{nullptr, Model(std::move(guessing))});
    whole->bytes = its.bytes, whole->tokens = its.tokens, whole->cache = shared;
    made = whole.release();
    return SLUICE_OK;
  });
}

}  // extern "C"
