// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a decoder is made of, what is asked of it, and what one who is alone gets.
#pragma once

#include <sluice/decode/decoder.hpp>

#include <fuzz/decoder/any_schedule.hpp>
#include <fuzz/decoder/bytes.hpp>
#include <fuzz/decoder/draw_search.hpp>
#include <fuzz/decoder/faults_model.hpp>
#include <fuzz/demand.hpp>
#include <support/slot_checker.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace sluice::test {

using FuzzModel = CheckedModel<FaultsModel>;

/// Throws in one of its next calls.
struct FuzzTrace {
  std::int32_t left = -1;  ///< calls before that; negative: never

  void call() {
    if (left-- == 0) throw std::runtime_error("the trace is broken");
  }
  void began(std::uint64_t, Sentence const&) { call(); }
  void admitted(std::uint64_t, Slot, std::int32_t) { call(); }
  void planned(StepPlan const&) { call(); }
  void answered(StepPlan const&, Expansion const&) { call(); }
  void ended(Result const&) { call(); }
};

using FuzzDecoder = Decoder<FuzzModel, FuzzSearch, AnySchedule, LogSoftmaxTopK, FuzzTrace>;
using FuzzRequest = FuzzDecoder::SearchRequest;

/// All that a decoder is made of.
struct Setting {
  Abilities claimed{};
  Table table{};
  Limits limits{};
  std::int32_t wrong_guesses = 0;
  FuzzSearch usual{};
  AnySchedule schedule{};
  Intake intake{};

  FuzzModel model() const { return FuzzModel(FaultsModel(table, limits, wrong_guesses), claimed); }
};

inline Setting draw_setting(Bytes& bytes) {
  Setting s;
  auto const able = bytes.byte();
  s.claimed = {.ragged = (able & 1) == 0, .blocks = (able & 2) == 0, .roll_back = (able & 4) == 0};
  s.table = {.size = bytes.between(5, 10), .scale = bytes.pick({8.0, 2.0, 15.0})};
  s.table.eos_bias = bytes.pick({-2.0, 0.0, 3.0, -30.0});
  s.table.levels = bytes.pick({0, 0, 0, 3});
  if (bytes.chance(8)) s.table.has_eos = false;
  if (bytes.chance(6)) s.table.second_eos = 4;
  if (bytes.chance(4)) s.limits.length = bytes.between(1, 12);
  if (bytes.chance(4)) s.limits.slot_count = bytes.between(1, 12);
  if (bytes.chance(4)) s.limits.tokens = bytes.between(1, 60);
  s.wrong_guesses = bytes.below(8);
  s.schedule = draw_schedule(bytes);
  s.intake.window = static_cast<std::size_t>(bytes.pick({0, 0, 2, 5}));
  s.intake.encode_ahead = static_cast<std::size_t>(bytes.pick({0, 0, 3, 6}));
  if (s.intake.encode_ahead > 0) s.intake.encode_group = static_cast<std::size_t>(bytes.below(4));
  s.intake.encoder_thread = bytes.chance(32);
  s.intake.wait_for_encoder = !bytes.chance(2);
  s.intake.prompt_chunk = bytes.pick({0, 0, 1, 2});
  s.usual = draw_search(bytes);
  return s;
}

inline FuzzRequest draw_request(Bytes& bytes, std::uint64_t id) {
  Script script{.id = id, .seed = bytes.byte(), .length = bytes.between(-1, 6)};
  if (bytes.chance(4)) {
    auto const what = bytes.below(6);
    auto constexpr infinity = std::numeric_limits<float>::infinity();
    script.no_encode = what == 0, script.no_start = what == 1;
    if (what > 1) script.wrong = bytes.pick({std::numeric_limits<float>::quiet_NaN(), infinity, -infinity});
    script.wrong_from = bytes.below(8), script.wrong_everywhere = what < 4;
  }
  FuzzRequest request{.source = ScriptSource(script)};
  if (bytes.chance(3)) request.prompt = draw_tokens(bytes, 5);
  if (bytes.chance(3)) request.prefix = draw_tokens(bytes, 4);
  if (!bytes.chance(3)) request.search = draw_search(bytes);
  request.seed = bytes.chance(2) ? std::optional<std::uint64_t>(bytes.byte()) : std::nullopt;
  if (bytes.chance(6)) {
    request.shortlist.emplace(10);
    for (auto const token : draw_tokens(bytes, 6)) request.shortlist->insert(token);
  }
  return request;
}

/// What it has when it is alone, and nothing happens that is not of its own making.
inline Result alone(Setting const& setting, FuzzRequest request, std::uint64_t id) {
  auto model = setting.model();
  Result result;
  {
    AnySchedule one;
    one.batched.size = 1;
    auto intake = setting.intake;
    intake.encoder_thread = false, intake.window = 0, intake.prompt_chunk = 0;
    FuzzDecoder decoder(model, setting.usual, one, intake);
    if (!request.seed) request.seed = id;
    decoder.submit(std::move(request));
    while (decoder.step()) {
    }
    demand(decoder.poll(result), "who is alone has no result");
    demand(!decoder.poll(result), "who is alone has two results");
  }
  auto const report = model.report();
  demand(report.empty(), "the contract is broken for one who is alone", report);
  return result;
}

}  // namespace sluice::test
