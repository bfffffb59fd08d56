// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of the warp that verifies a sentence's block.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/verify/verification.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// A lane per guess, 32 at a time; ballots find the first rejected guess and the first end of sentence.
template <class Block>
class VerificationWarp {
 public:
  SLUICE_DEVICE VerificationWarp(Block& block, Verification const& task, std::int32_t sentence)
      : block_(block),
        task_(task),
        sentence_(sentence),
        line_(task.first_lines != nullptr ? task.first_lines[sentence] : std::int64_t{sentence} * task.block) {}

  SLUICE_DEVICE void run() {
    auto count = task_.block - 1;
    if (task_.guess_counts != nullptr) {
      auto const said = task_.guess_counts[sentence_];
      count = said < 0 ? 0 : said < count ? said : count;
    }
    Verdict verdict;
    auto over = false;
    for (std::int32_t begin = 0; begin <= count; begin += 32) {
      auto const i = begin + block_.lane();
      auto const guess = i < count ? guessed(i) : 0;
      auto const strange = block_.ballot(i < count && !(guess >= 0 && guess < task_.vocabulary_size));
      if (strange != 0) count = begin + lowest_bit(strange);
      if (block_.ballot(i <= count && task_.results[line_ + i].valid == 0) != 0) verdict.valid = 0;
      if (over) continue;  // other lines may still be invalid
      look(begin, count, guess, verdict, over);
    }
    if (verdict.valid == 0) verdict = {.valid = 0};
    else if (verdict.finished == 0) verdict = with_own(verdict);
    if (block_.lane() == 0) task_.verdicts[sentence_] = verdict;
  }

 private:
  /// Checks guesses begin .. begin + 31.
  SLUICE_DEVICE void look(std::int32_t begin, std::int32_t count, Token guess, Verdict& verdict, bool& over) {
    auto const i = begin + block_.lane();
    auto log_prob = minus_infinity;
    auto const right = i < count && accepts(i, guess, log_prob);
    auto const ends = i < count && is_eos(guess);
    auto const kept = (right || (i + 1 < task_.minimum && !ends)) && log_prob > minus_infinity;
    auto const stops = block_.ballot(i < count && !kept);
    auto const stop = lowest_bit(stops);
    auto const end = lowest_bit(block_.ballot(ends));
    auto here = count - begin < 32 ? count - begin : 32;  // guesses looked at
    if (end < stop) here = end + 1;
    else if (stops != 0) here = stop + 1;
    auto const stays = end < stop || stops == 0 ? here : here - 1;
    verdict.finished = end < stop ? 1 : 0;
    verdict.tried += here, verdict.kept += stays, verdict.count += stays;
    verdict.right += count_bits(block_.ballot(right) & low_bits(here));
    over = end < stop || stops != 0;
    if (block_.lane() < stays) task_.tokens[std::int64_t{sentence_} * task_.block + i] = {guess, log_prob};
  }

  /// Whether the rule accepts a guess; sets its log-probability, -infinity if it is impossible or unknown.
  SLUICE_DEVICE bool accepts(std::int32_t i, Token guess, float& log_prob) const {
    auto const line = line_ + i;
    auto const* const best = task_.best + line * task_.k;
    auto const listed = task_.results[line].count;
    auto right = false;
    if (task_.accept == Accept::top_k) {
      SLUICE_ROLLED
      for (std::int32_t j = 0; j < (listed < task_.n ? listed : task_.n) && !right; ++j)
        if (best[j].token == guess) right = true, log_prob = best[j].log_prob;
    } else if (listed > 0) {
      auto const own = best[0];
      auto const away = static_cast<std::int64_t>(guess) - own.token;
      auto const most = task_.accept == Accept::exact ? 0 : task_.n;
      right = away <= most && -away <= most;
      log_prob = own.log_prob;
    }
    if (task_.accept != Accept::exact && task_.guess_log_probs != nullptr) log_prob = task_.guess_log_probs[line];
    return right;
  }

  /// Adds the model's own token after the accepted guesses.
  SLUICE_DEVICE Verdict with_own(Verdict verdict) const {
    auto const line = line_ + verdict.kept;
    if (task_.results[line].count <= 0) return verdict;
    auto const own = task_.best[line * task_.k];
    if (block_.lane() == 0) task_.tokens[std::int64_t{sentence_} * task_.block + verdict.kept] = own;
    ++verdict.count;
    verdict.finished = is_eos(own.token) ? 1 : 0;
    return verdict;
  }

  SLUICE_DEVICE Token guessed(std::int32_t i) const {
    return task_.guesses[std::int64_t{sentence_} * task_.guess_stride + i];
  }
  SLUICE_DEVICE bool is_eos(Token token) const {
    auto found = false;
    SLUICE_ROLLED
    for (std::int32_t i = 0; i < task_.eos_count; ++i) found = found || task_.eos[i] == token;
    return found;
  }

  Block& block_;
  Verification const& task_;
  std::int32_t const sentence_;
  std::int64_t const line_;  // the sentence's first
};

/// One warp per sentence.
template <class Block>
SLUICE_DEVICE void verify_block(Block& block, Verification const& task, std::int32_t number) {
  auto const sentence = number * Block::warps + block.warp();
  if (sentence < task.sentences) VerificationWarp<Block>(block, task, sentence).run();
}

}  // namespace sluice::inline v0::cuda::detail
