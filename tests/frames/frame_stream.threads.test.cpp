// SPDX-License-Identifier: Apache-2.0
// Frames that come while they are decoded against the whole at once. Mutants that were tried by hand: a step that does not leave waiting
// sentences out (the loop stops with an error), frames forgotten that a slot has not read, an endpoint that looks only between rows.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/frame_stream.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>
#include <support/ctc_reference.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(GrowingModel<CtcStream> && WaitingSearch<CtcBeamSearch<>> && !WaitingSearch<BeamSearch>);

MatrixView<float const> part(RandomFrames const& frames, std::int32_t begin, std::int32_t end) {
  return {frames.log_probs.data() + std::ptrdiff_t{begin} * frames.size, end - begin, frames.size, frames.size};
}
std::vector<float> numbers(MatrixView<float const> view) { return {view.data, view.data + view.rows * view.columns}; }

void check_same(Result const& found, Result const& expected) {
  REQUIRE(found.failure == expected.failure);
  CHECK(found.frames == expected.frames);
  REQUIRE(found.hypotheses.size() == expected.hypotheses.size());
  for (std::size_t i = 0; i < found.hypotheses.size(); ++i) {
    auto const &one = found.hypotheses[i], &other = expected.hypotheses[i];
    CHECK(one.tokens == other.tokens);
    CHECK(one.log_prob == other.log_prob);
    CHECK(one.frames == other.frames);
    CHECK(one.log_probs == other.log_probs);
  }
}

std::vector<RandomFrames> random_utterances() {
  std::vector<RandomFrames> all;
  for (std::uint64_t i = 0; i < 63; ++i) all.emplace_back(40 + i, 1 + static_cast<std::int32_t>(i * 61 % 90), 7, 4.0f);
  all.emplace_back(120, 5000, 7, 4.0f);  // more than is kept
  return all;
}
std::vector<Result> whole(std::vector<RandomFrames> const& all, CtcBeamSearch<> const& search) {
  CtcFrames<> model(7, 2, Kind::log_probs);
  std::vector<MatrixView<float const>> sources;
  for (auto const& frames : all) sources.push_back(frames.view());
  return decode(model, sources, search);
}

template <class Schedule>
std::vector<Result> in_pieces(std::vector<RandomFrames> const& all, CtcBeamSearch<> const& search,
                              Schedule const& schedule, std::int32_t size) {
  CtcStream model(7, 2, Kind::log_probs);
  Decoder decoder(model, search, schedule);
  std::vector<Result> results(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) decoder.submit({});
  std::size_t open = all.size();
  for (std::int32_t begin = 0; open > 0; begin += size) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (begin < all[i].count) {
        auto const end = std::min(all[i].count, begin + size);
        decoder.append(i, part(all[i], begin, end), end == all[i].count);
      }
    Result result;
    for (auto more = true; more;) {
      more = decoder.step();
      for (; decoder.poll(result); --open) results[result.id] = std::move(result);
    }
    CHECK(decoder.running() + decoder.waiting() == open);
  }
  return results;
}

}  // namespace

TEST_CASE("frames that come in pieces have the results of the whole, bit for bit", "[ctc]") {
  auto const all = random_utterances();
  for (auto const& endpoint : {Endpoint{}, Endpoint{.silence = 3, .nothing = 2, .longest = 90}}) {
    CtcBeamSearch<> const search{.width = 6, .n_best = 3, .endpoint = endpoint};
    auto const expected = whole(all, search);
    for (auto const size : {1, 4, 37, 1500})
      for (auto const batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
        auto const streamed = in_pieces(all, search, Streaming{.size = batch, .refill_below = 1.0}, size);
        auto const batched = in_pieces(all, search, Batched{.size = batch}, size);
        for (std::size_t i = 0; i < all.size(); ++i)
          check_same(streamed[i], expected[i]), check_same(batched[i], expected[i]);
      }
  }
}

TEST_CASE("an endpoint ends an utterance at the same frame as a look at all its beginnings", "[ctc]") {
  Endpoint const endpoint{.silence = 2, .nothing = 2, .longest = 12};
  std::size_t silences = 0, nothings = 0, longest = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomFrames const frames(seed, 40, 3, 3.0f);
    CtcFrames<> model(3, 2, Kind::log_probs);
    std::vector<MatrixView<float const>> const source{frames.view()};
    auto const found = decode(model, source, CtcBeamSearch<>{.width = 8, .endpoint = endpoint}).at(0);
    std::int32_t expected = 40;
    for (std::int32_t count = 1; count < 40; ++count) {
      std::vector<MatrixView<float const>> const beginning{part(frames, 0, count)};
      auto const best = decode(model, beginning, CtcBeamSearch<>{.width = 8}).at(0).hypotheses.at(0);
      auto const end = best.frames.empty() ? 0 : best.frames.back().end;
      auto const silence = end > 0 && count - end >= 2, nothing = end == 0 && count >= 2, over = count >= 12;
      if (!silence && !nothing && !over) continue;
      silences += silence, nothings += nothing, longest += over;
      expected = count;
      CHECK(found.hypotheses.at(0).tokens == best.tokens);
      break;
    }
    CHECK(found.frames == expected);
  }
  CHECK(silences > 10);
  CHECK(nothings > 3);
  CHECK(longest > 3);
}

TEST_CASE("a server takes frames from any thread, and utterance after utterance from one stream", "[ctc]") {
  auto const all = random_utterances();
  CtcBeamSearch<> const search{.width = 6, .n_best = 3};
  auto const expected = whole(all, search);
  CtcStream model(7, 2, Kind::log_probs);
  Server server(model, search, Streaming{.size = 4, .refill_below = 1.0});
  std::vector<std::promise<Result>> promises(all.size());
  std::vector<std::future<Result>> futures;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < all.size(); ++i) {
    futures.push_back(promises[i].get_future());
    ids.push_back(
        server.submit({}, {.done = [&, i](Result result) { promises[i].set_value(std::move(result)); }}).value());
  }
  std::vector<std::future<void>> speakers;
  for (std::size_t i = 0; i < all.size(); ++i)
    speakers.push_back(std::async(std::launch::async, [&, i] {
      for (std::int32_t begin = 0; begin < all[i].count; begin += 23) {
        auto const end = std::min(all[i].count, begin + 23);
        server.append(ids[i], numbers(part(all[i], begin, end)), end == all[i].count);
      }
    }));
  for (auto& one : speakers) one.get();
  for (std::size_t i = 0; i < all.size(); ++i) check_same(futures[i].get(), expected[i]);

  // A stream that stalls is late; bad frames end their request, and no other.
  auto const soon = ServerClock::now() + std::chrono::milliseconds(20);
  auto late = server.submit({}, soon);
  CHECK(late.get().failure == Failure::late);
  std::promise<Result> told;
  auto const bad = server.submit({}, {.done = [&](Result result) { told.set_value(std::move(result)); }}).value();
  server.append(bad, std::vector<float>(5), false);
  auto const refused = told.get_future().get();
  CHECK(refused.failure == Failure::source);
  CHECK(refused.message.find("5 numbers") != std::string::npos);
}

TEST_CASE("utterance after utterance of one stream, from endpoint to endpoint", "[ctc]") {
  RandomFrames const frames(5, 3000, 5, 3.0f);
  CtcBeamSearch<> const search{.width = 6, .endpoint = {.silence = 2, .longest = 70}};
  CtcFrames<> plain(5, 1, Kind::log_probs);
  CtcStream model(5, 1, Kind::log_probs);
  Decoder decoder(model, search);
  FrameStream stream;
  auto id = decoder.submit({.source = stream});
  std::int32_t begin = 0, utterances = 0;
  for (std::int32_t come = 0; begin < 3000;) {
    auto const end = std::min(3000, come + 31);
    if (come < 3000) decoder.append(id, part(frames, come, end), end == 3000);
    come = end;
    Result result;
    for (auto more = true; more;) {
      more = decoder.step();
      if (!decoder.poll(result)) continue;
      ++utterances;
      std::vector<MatrixView<float const>> const rest{part(frames, begin, 3000)};
      check_same(result, decode(plain, rest, search).at(0));
      begin += result.frames;
      if (begin == 3000) break;
      stream = model.rest(stream, result.frames);
      id = decoder.submit({.source = stream});
      more = true;
    }
  }
  CHECK(utterances > 40);
}

TEST_CASE("while one model reads a stream, another is refused, and told why", "[ctc]") {
  RandomFrames const frames(9, 400, 7, 4.0f);
  CtcBeamSearch<> const search{.width = 6};
  CtcFrames<> plain(7, 2, Kind::log_probs);
  auto const expected = decode(plain, std::vector{frames.view()}, search).at(0);
  CtcStream one(7, 2, Kind::log_probs), other(7, 2, Kind::log_probs);
  Decoder first(one, search), second(other, search);
  FrameStream const stream;
  auto const run = [](auto& decoder, Result& result) {
    while (decoder.step()) {
    }
    return decoder.poll(result);
  };
  Result result;
  auto const id = first.submit({.source = stream});
  first.append(id, part(frames, 0, 100), false);
  CHECK(!run(first, result));
  second.submit({.source = stream});
  REQUIRE(run(second, result));
  CHECK(result.failure == Failure::source);
  CHECK(result.message.find("another model reads") != std::string::npos);
  first.append(id, part(frames, 100, 400), true);
  REQUIRE(run(first, result));
  check_same(result, expected);
  second.submit({.source = stream});  // it is free again, and all of it is still there
  REQUIRE(run(second, result));
  check_same(result, expected);
}

// Which of them reads it, and whose pieces come first, is up to the threads; so both may be refused.
TEST_CASE("two servers that are given one stream: each request is decoded, or refused with the reason", "[ctc]") {
  RandomFrames const frames(9, 200, 7, 4.0f);
  CtcBeamSearch<> const search{.width = 4};
  for (auto round = 0; round < 20; ++round) {
    CtcStream one(7, 2, Kind::log_probs), other(7, 2, Kind::log_probs);
    Server first(one, search), second(other, search);
    FrameStream const stream;
    auto const ask = [&](auto& server) {
      std::promise<Result> told;
      auto const id =
          server.submit({.source = stream}, {.done = [&](Result result) { told.set_value(std::move(result)); }})
              .value();
      for (std::int32_t begin = 0; begin < 200; begin += 20)
        server.append(id, numbers(part(frames, begin, begin + 20)), begin == 180);
      return told.get_future().get();
    };
    auto left = std::async(std::launch::async, [&] { return ask(first); });
    auto const results = std::vector{ask(second), left.get()};
    for (auto const& result : results)
      if (!result.ok()) {
        CHECK(result.failure == Failure::source);
        auto const named = result.message.find("another model reads") != std::string::npos ||
                           result.message.find("nothing may come after the last frame") != std::string::npos ||
                           result.message.find("are forgotten") != std::string::npos;
        CHECK(named);
      }
  }
}

TEST_CASE("several requests read one stream, each at its own place", "[ctc]") {
  RandomFrames const frames(121, 5000, 7, 4.0f);
  CtcBeamSearch<> const wide{.width = 6, .n_best = 3}, narrow{.width = 2, .block = 1};
  auto const expected = whole({frames}, wide).at(0), other = whole({frames}, narrow).at(0);
  for (auto const later : {0, 700}) {  // the second request begins when so many frames have been read
    CtcStream model(7, 2, Kind::log_probs);
    Decoder decoder(model, wide, Streaming{.size = 4, .refill_below = 1.0});
    FrameStream const stream;
    auto const first = decoder.submit({.source = stream});
    decoder.append(first, part(frames, 0, later));
    while (decoder.step()) {
    }
    auto const second = decoder.submit({.source = stream, .search = narrow});
    for (std::int32_t begin = later; begin < frames.count; begin += 430)
      decoder.append(first, part(frames, begin, std::min(frames.count, begin + 430)), begin + 430 >= frames.count);
    std::vector<Result> results(2);
    Result result;
    while (decoder.step()) {
    }
    while (decoder.poll(result)) results[result.id] = result;
    check_same(results[first], expected), check_same(results[second], other);
  }
  // One that has read far enough for frames to be forgotten: another cannot begin there, nor the same again.
  CtcStream model(7, 2, Kind::log_probs);
  Decoder decoder(model, wide);
  FrameStream const stream;
  auto const first = decoder.submit({.source = stream});
  for (std::int32_t begin = 0; begin < 4500; begin += 500) {
    decoder.append(first, part(frames, begin, begin + 500));
    while (decoder.step()) {
    }
  }
  decoder.cancel(first);
  auto const again = decoder.submit({.source = stream});
  auto const rest = decoder.submit({.source = model.rest(stream, 4400)});
  decoder.append(rest, part(frames, 4500, 5000), true);
  Result result;
  std::vector<Result> results(3);
  while (decoder.step()) {
  }
  while (decoder.poll(result)) results[result.id] = result;
  CHECK(results[first].failure == Failure::cancelled);
  CHECK(results[again].failure == Failure::source);
  CHECK(results[again].message.find("frames: are forgotten") != std::string::npos);
  RandomFrames tail(121, 600, 7);
  std::copy(frames.log_probs.end() - 600 * 7, frames.log_probs.end(), tail.log_probs.begin());
  check_same(results[rest], whole({tail}, wide).at(0));
}

TEST_CASE("streams that end badly", "[ctc]") {
  CtcStream model(4, 0, Kind::log_probs);
  FrameStream const open;
  // decode() appends to none.
  auto const results = decode(model, std::vector<FrameStream>{open}, CtcBeamSearch<>{});
  CHECK(results.at(0).failure == Failure::source);
  CHECK(results.at(0).message.find("not over") != std::string::npos);

  Decoder decoder(model, CtcBeamSearch<>{});
  auto const id = decoder.submit({});
  CHECK(!decoder.step());
  CHECK_THROWS_AS(decoder.append(id, std::vector<float>(6)), std::invalid_argument);
  CHECK(decoder.running() == 1);
  CHECK(decoder.append(id, std::vector<float>{}, true));
  CHECK_THROWS_AS(decoder.append(id, std::vector<float>(4)), std::invalid_argument);
  while (decoder.step()) {
  }
  Result result;
  REQUIRE(decoder.poll(result));
  CHECK(result.failure == Failure::bad_request);
  CHECK(result.message == "frames: 0: there must be at least one");
  CHECK(!decoder.append(id, std::vector<float>(4)));

  // A search that cannot wait takes whole sources only.
  FrameStream whole;
  CtcStream(4, 0).append(whole, std::vector<float>(12), true);
  auto const beams =
      decode(model, std::vector<FrameStream>{FrameStream(), whole}, BeamSearch{.width = 1, .length = {.max = 2}});
  CHECK(beams.at(0).failure == Failure::bad_request);
  CHECK(beams.at(0).message.find("whole source") != std::string::npos);
  CHECK(beams.at(1).ok());
}
