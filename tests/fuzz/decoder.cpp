// SPDX-License-Identifier: Apache-2.0
// Bytes as a program of submissions, cancels, deadlines and faults, of any searches under any schedule: every request has
// one result, that which it has alone unless something has happened to it; every slot is given back; the model is asked for
// nothing that it does not promise.
#include <sluice/decode/decoder.hpp>

#include <fuzz/decoder/any_result.hpp>
#include <fuzz/decoder/any_schedule.hpp>
#include <fuzz/decoder/bytes.hpp>
#include <fuzz/decoder/setting.hpp>
#include <fuzz/demand.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {
namespace {

/// What is known of a request that was submitted.
struct Sent {
  FuzzRequest request;
  std::optional<Failure> ended_by{};  ///< who called
  std::int32_t answers = 0;
  Result result{};
  std::vector<Token> told{};  ///< as settled
};

class Program {
 public:
  explicit Program(Bytes& bytes)
      : setting_(draw_setting(bytes)),
        model_(setting_.model()),
        decoder_(std::in_place, model_, setting_.usual, setting_.schedule, setting_.intake) {}

  void run(Bytes& bytes) {
    while (!bytes.empty()) instruction(bytes);
    if (!abandoned_) finish();
    decoder_.reset();
    auto const report = model_.report();
    demand(report.empty(), "the contract is broken", report);
    for (auto const& one : sent_) demand(abandoned_ || one.answers == 1, "a result is missing");
    for (std::size_t id = 0; id < sent_.size(); ++id)
      if (sent_[id].answers > 0) judge(id);
  }

 private:
  static constexpr std::size_t most = 12;  // requests

  void instruction(Bytes& bytes) {
    switch (bytes.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: return submit(bytes);  // clang-format off
      case 5: case 6: case 7: case 8: case 9: case 10: return static_cast<void>(step());
      case 11: return cancel(bytes, Failure::cancelled);
      case 12: return cancel(bytes, Failure::late);
      case 13: return static_cast<void>(poll());
      case 14: case 15: return settle(bytes, false);  // clang-format on
      case 16: return settle(bytes, true);
      case 17: return go_wrong(bytes);
      case 18: *setting_.schedule.next = bytes.one_of<AnySchedule::Misdeed>(AnySchedule::misdeeds); return;
      default: break;
    }
    if (bytes.chance(4)) abandoned_ = true;
    if (bytes.chance(4)) end_all();
    if (bytes.chance(2)) decoder_->trace().left = bytes.below(12);
  }
  void end_all() {
    for (auto& one : sent_)
      if (!one.ended_by) one.ended_by = Failure::schedule;
    decoder_->end_all(Failure::schedule, "ended by the program", {});
    for (Result result; decoder_->poll(result);) take(std::move(result));
  }

  void submit(Bytes& bytes) {
    if (sent_.size() == most) return;
    auto const id = sent_.size();
    auto request = draw_request(bytes, id);
    sent_.push_back({.request = request});
    demand(decoder_->submit(std::move(request)) == id, "ids do not count up");
    count();
  }

  bool step() {
    auto const wrong = *setting_.schedule.wrong;
    auto more = true, done = false;
    try {
      more = decoder_->step();
      done = true;
    } catch (std::exception const&) {
    } catch (int) {
    }
    demand(!done || *setting_.schedule.wrong == wrong, "a choice of the schedule was not refused");
    count();
    return more;
  }

  void cancel(Bytes& bytes, Failure why) {
    auto const id = static_cast<std::size_t>(bytes.below(static_cast<std::int32_t>(most)));
    auto const ended = decoder_->cancel(id, why);
    demand(!ended || (id < sent_.size() && sent_[id].answers == 0 && !sent_[id].ended_by), "ended twice");
    if (ended) sent_[id].ended_by = why;
    count();
  }

  bool poll() {
    Result result;
    if (!decoder_->poll(result)) return false;
    take(std::move(result));
    return true;
  }
  void take(Result result) {
    demand(result.id < sent_.size(), "a result of nobody");
    auto& one = sent_[result.id];
    demand(++one.answers == 1, "two results of one request");
    one.result = std::move(result);
  }

  /// Whoever is told may end anybody, and submit.
  void settle(Bytes& bytes, bool throws) {
    auto const interferes = bytes.chance(3);
    try {
      decoder_->settled(
          [](std::uint64_t id) { return id % 3 != 1; },
          [&](std::uint64_t id, std::span<Token const> tokens) {
            demand(id < sent_.size() && sent_[id].answers == 0 && !sent_[id].ended_by, "told of one who has ended");
            auto& told = sent_[id].told;
            if (!restarts()) demand(tokens.size() >= told.size(), "what is settled has become less");
            demand(std::equal(tokens.begin(), tokens.begin() + std::min(std::ssize(tokens), std::ssize(told)),
                              told.begin()),
                   "what is settled has changed");
            if (tokens.size() > told.size()) told.assign(tokens.begin(), tokens.end());
            if (interferes && bytes.chance(2)) submit(bytes);
            if (interferes && bytes.chance(2)) cancel(bytes, Failure::cancelled);
            if (interferes && bytes.chance(16)) end_all();
            if (throws) throw std::runtime_error("a callback that throws");
          });
    } catch (std::runtime_error const&) {
      demand(throws, "settled() throws");
    }
    count();
  }

  void go_wrong(Bytes& bytes) {
    auto const byte = bytes.byte();
    auto const how = static_cast<Once>(byte % 4);
    auto& model = model_.model();
    if (byte >= 0xE0) {  // nobody notices
      model.next_release = how;
      return;
    }
    switch (bytes.below(4)) {
      case 0: model.next_step = how; break;
      case 1: model.next_start = how; break;
      case 2: model.next_propose = how; break;
      default:
        if (!setting_.intake.encoder_thread) *model.next_encode = how, encode_broken_ = true;
        return;
    }
    if (how == Once::no_room) no_room_ = true;
  }

  /// Nobody is lost on the way.
  void count() {
    demand(decoder_->statistics().sentences + decoder_->waiting() + decoder_->running() == sent_.size(),
           "a request is lost, or answered twice");
  }

  void finish() {
    auto idle = 0;
    for (auto steps = 0; idle < 3; ++steps) {
      demand(steps < 20000, "it never ends");
      if (step()) continue;
      if (decoder_->waiting() + decoder_->running() == 0) break;
      ++idle;  // a schedule that was told to let nobody in
    }
    demand(decoder_->waiting() + decoder_->running() == 0, "somebody is never let in");
    while (poll()) {
    }
    demand(model_.held() == 0, "a slot is not given back");
  }

  bool restarts() const { return no_room_ || setting_.limits.tokens != Limits{}.tokens; }

  void judge(std::size_t id) {
    auto const& one = sent_[id];
    auto const& result = one.result;
    examine_result(result, setting_.table.size);
    for (auto const& h : result.hypotheses)
      // Who started again, and was cut off before it came as far, is where others have not yet been given up.
      demand((restarts() && !result.ok()) ||
                 (h.tokens.size() >= one.told.size() && std::equal(one.told.begin(), one.told.end(), h.tokens.begin())),
             "the result does not begin as was settled", text(result));
    auto const misdeed = (one.request.search ? *one.request.search : setting_.usual).misdeed.kind;
    auto const& model = model_.model();
    if (result.failure == Failure::search &&
        (misdeed == Misdeed::Kind::settled_throws || misdeed == Misdeed::Kind::finish_throws))
      return;
    if (one.ended_by && result.failure == *one.ended_by) return;
    if (model.hit.contains(id))
      return demand(result.failure == Failure::model, "a step has failed, and not who took part", text(result));
    if (no_room_ && result.failure == Failure::no_room) return;
    if (model.blamed.contains(id) && result.failure == Failure::source) return;
    if (encode_broken_ && (result.failure == Failure::source || result.failure == Failure::no_room)) return;
    auto const expected = alone(setting_, one.request, id);
    demand(same_result(result, expected), "alone it is another", text(result) + text(expected));
  }

  Setting setting_;
  FuzzModel model_;
  std::optional<FuzzDecoder> decoder_;
  std::vector<Sent> sent_;
  bool no_room_ = false, encode_broken_ = false, abandoned_ = false;
};

}  // namespace
}  // namespace sluice::test

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace sluice::test;
  Bytes bytes(data, size);
  std::optional<Program> program;
  try {
    program.emplace(bytes);
  } catch (std::invalid_argument const&) {
    return 0;  // options that make no sense are refused
  }
  program->run(bytes);
  return 0;
}
