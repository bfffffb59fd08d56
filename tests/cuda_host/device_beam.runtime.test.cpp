// SPDX-License-Identifier: Apache-2.0
// The beam that stays on the device, host code and all, over a runtime in the host's memory and emulated devices.
#include <sluice/cuda/beam/device_beam.cuh>
#include <sluice/cuda/projection/dense_projection.cuh>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/device_beam_cases.hpp>
#include <support/device_beam_driver.hpp>
#include <support/emulated_beam.hpp>
#include <support/following_cache.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a beam on the device finds what BeamSearch finds, token for token and bit for bit", "[cuda]") {
  plain_lines = true;  // others emulate these
  std::size_t hypotheses = 0, unfinished = 0, failed = 0, prefixed = 0, ties = 0;
  auto const* const asked = std::getenv("SLUICE_BEAMS");  // so many cases
  auto const cases = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 300;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    auto const one = random_beam_case(seed);
    auto const places = 1 + static_cast<std::int32_t>(seed % 4);
    INFO("seed " << seed << ", width " << one.search.width << ", rule "
                 << static_cast<int>(one.search.early_stopping.rule) << ", at maximum "
                 << static_cast<int>(one.search.at_maximum) << ", lengths " << one.search.length.min << " to "
                 << one.search.length.max << ", " << places << " at once");
    auto const expected = one.on_host();
    BeamDriver driver(one, places, expected);
    check_beams(one, driver.run(), expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      prefixed += one.requests[i].prefix.empty() ? 0 : 1, failed += expected[i].ok() ? 0 : 1;
      auto const& found = expected[i].hypotheses;
      for (std::size_t h = 0; h < found.size(); ++h, ++hypotheses) {
        unfinished += found[h].finished ? 0 : 1;
        ties += h > 0 && found[h].score == found[h - 1].score ? 1 : 0;
      }
    }
  }
  // The cases were worth it.
  CHECK(hypotheses > 2000);
  CHECK(unfinished > 300);
  CHECK(failed > 30);
  CHECK(prefixed > 50);
  CHECK(ties > 300);
}

TEST_CASE("wide beams on the device are those of the host, too", "[cuda]") {
  plain_lines = true;
  for (std::int32_t const width : {33, 50, 63}) {
    for (auto const& search : {presets::fairseq(width), presets::ctranslate2(width, 0), presets::huggingface(width)}) {
      BeamCase one{.table = {.size = 90, .scale = 3, .eos_bias = 1, .levels = width == 50 ? 0 : 20}, .search = search};
      one.search.n_best = width, one.search.length = {.min = 2, .max = 5};
      for (std::uint64_t source = 1; source < 4; ++source) one.requests.push_back({.source = source});
      INFO("width " << width);
      auto const expected = one.on_host();
      check_beams(one, decode_at_once(one), expected);
      CHECK(expected[0].hypotheses.size() == static_cast<std::size_t>(width));
    }
  }
}

TEST_CASE("a step of a beam on the device is three launches, and nothing is copied or allocated", "[cuda]") {
  plain_lines = true;
  BeamCase one{.table = {.size = 40, .eos_slope = 0}, .search = presets::fairseq(4)};
  one.search.length.max = 9;
  for (std::uint64_t source = 1; source < 6; ++source) one.requests.push_back({.source = source});
  auto const expected = one.on_host();
  auto const& use = HostCuda::get().use;
  BeamDriver driver(one, 5, expected);
  auto const found = driver.run([&](auto& beam, auto& expander, auto const& scores) {
    auto const before = use;
    auto const beams = beam_launches;
    beam.enqueue_step(expander, scores);
    CHECK(use.line_launches == before.line_launches + 1);
    CHECK(use.merge_launches == before.merge_launches + 1);
    CHECK(beam_launches == beams + 1);
    CHECK(use.copies_there + use.copies_back == before.copies_there + before.copies_back);
    CHECK(use.allocations == before.allocations);
    CHECK(use.early_starts == before.early_starts + 2);
    CHECK(use.wrong_starts == before.wrong_starts);
  });
  CHECK(driver.steps == 9);
  check_beams(one, found, expected);
}

TEST_CASE("a step of a beam on the device is two launches where lists are merged in their own", "[cuda]") {
  plain_lines = false;
  auto const& use = HostCuda::get().use;
  for (auto const& search : {presets::fairseq(4), presets::ctranslate2(3), presets::huggingface(6)}) {
    BeamCase one{.table = {.size = 40, .eos_bias = 1, .levels = 12}, .search = search};
    one.search.length.max = 6, one.search.n_best = search.width;
    for (std::uint64_t source = 1; source < 6; ++source) one.requests.push_back({.source = source});
    auto const expected = one.on_host();
    BeamDriver driver(one, 3, expected, {.early_starts = true, .merge_behind_lines = true});  // two begin as others end
    auto const found = driver.run([&](auto& beam, auto& expander, auto const& scores) {
      auto const before = use;
      auto const beams = beam_launches;
      beam.enqueue_step(expander, scores);
      CHECK(use.line_launches == before.line_launches + 1);
      CHECK(use.merge_launches == before.merge_launches);
      CHECK(beam_launches == beams + 1);
      CHECK(use.early_starts == before.early_starts + 1);
      CHECK(use.wrong_starts == before.wrong_starts);
    });
    check_beams(one, found, expected);
  }
}

TEST_CASE("a beam on the device goes on from the lists of an output layer", "[cuda]") {
  plain_lines = true;
  constexpr std::int32_t size = 40, width = 3, sentences = 2, rows = width * sentences, dimension = 4;
  std::mt19937_64 random(5);
  auto const numbers = [&](std::size_t count) {  // whole ones, whose products are exact
    std::vector<float> values(count);
    for (auto& value : values) value = static_cast<float>(random() % 5) - 2;
    return values;
  };
  auto const weights = numbers(size * dimension), hidden = numbers(rows * dimension);
  std::vector<float> logits(rows * size);
  for (std::size_t i = 0; i < logits.size(); ++i)
    for (std::size_t d = 0; d < dimension; ++d)
      logits[i] += hidden[i / size * dimension + d] * weights[i % size * dimension + d];
  OnDevice<float> const device_weights(weights), device_hidden(hidden), device_logits(logits);

  Vocabulary const vocabulary{.size = size, .bos = 1, .eos = {2}, .never = {0, 1}};
  auto search = presets::huggingface(width);
  search.n_best = width, search.length.max = 6;
  auto const decode_by = [&](auto const& step) {
    cuda::DeviceBeam beam(search, vocabulary, {.sentences = sentences});
    Sentence const sentence{.vocabulary = &vocabulary, .prompt = {&vocabulary.bos, 1}, .last = vocabulary.bos};
    beam.begin(0, std::vector<Sentence>(sentences, sentence), nullptr);
    while (beam.remaining(nullptr) > 0) step(beam);
    return beam.collect(0, sentences, nullptr);
  };
  cuda::LogSoftmaxTopK lists;
  auto const expected = decode_by(
      [&](cuda::DeviceBeam& beam) { beam.enqueue_step(lists, cuda::scores<float>(device_logits.data(), rows, size)); });
  cuda::DenseProjection<float> projection({device_weights.data(), size, dimension, dimension});
  auto const found = decode_by([&](cuda::DeviceBeam& beam) {
    projection.enqueue(beam.task<float>({nullptr, rows, size, size}),
                       {device_hidden.data(), rows, dimension, dimension}, nullptr);
    beam.advance(nullptr);
  });
  for (std::size_t i = 0; i < sentences; ++i) {
    CHECK(found[i].hypotheses.size() == width);
    CHECK(same_outputs(found[i], expected[i]));
  }
}

TEST_CASE("a cache indirection follows a beam on the device by its moves alone", "[cuda]") {
  plain_lines = true;
  for (std::uint64_t seed = 1000; seed < 1000 + rounds(20); ++seed) {
    INFO("seed " << seed);
    check_following(random_beam_case(seed));
  }
}

TEST_CASE("every barrier of the beam on the device is missed", "[cuda]") {
  plain_lines = true;
  for (auto const barrier :
       {cuda::detail::Barrier::chosen, cuda::detail::Barrier::aside, cuda::detail::Barrier::stayed}) {
    INFO("barrier " << static_cast<int>(barrier));
    auto missed = false;
    for (std::uint64_t seed = 0; seed < 200 && !missed; ++seed) {
      auto const one = random_beam_case(seed);
      auto const expected = one.on_host();
      emulated_device<32>() = {};
      beam_faults.skipped = barrier;
      try {
        auto const found = BeamDriver(one, 1, expected).run();
        for (std::size_t i = 0; i < found.size(); ++i)
          missed = missed || !same_beam(found[i], expected[i], one.requests[i].prefix.size());
      } catch (std::exception const&) {
        missed = true;
      }
      beam_faults = {};
    }
    CHECK(missed);
    CHECK(emulated_device<32>().has_seen(barrier));
  }
  emulated_device<32>() = {};
}

TEST_CASE("a beam on the device refuses what only the host knows, by name", "[cuda]") {
  Vocabulary const vocabulary{.size = 30, .bos = 1, .eos = {2}, .never = {0, 1}};
  auto const message = [&](auto const& change) -> std::string {
    auto search = presets::fairseq(4);
    cuda::DeviceBeamOptions options{.sentences = 2};
    change(search, options);
    try {
      cuda::DeviceBeam const beam(search, vocabulary, options);
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "";
  };
  using Options = cuda::DeviceBeamOptions;
  CHECK(message([](BeamSearch&, Options&) {}) == "");
  std::vector<std::pair<std::string, std::function<void(BeamSearch&, Options&)>>> const cases{
      {"n_best", [](auto& s, auto&) { s.n_best = 9; }},
      {"finished", [](auto& s, auto&) { s = presets::marian(4); }},
      {"finished", [](auto& s, auto&) { s = presets::sockeye(4); }},
      {"at_maximum", [](auto& s, auto&) { s.at_maximum = AtMaximum::force_eos_free; }},
      {"pruning", [](auto& s, auto&) { s.pruning.absolute_threshold = 3; }},
      {"pruning", [](auto& s, auto&) { s.pruning.relative_local_threshold = 0.1; }},
      {"pruning", [](auto& s, auto&) { s.pruning.max_per_parent = 2; }},
      {"pruning", [](auto& s, auto&) { s.pruning.below_finished = 3; }},
      {"sibling_penalty", [](auto& s, auto&) { s.sibling_penalty = 1; }},
      {"penalty.word_penalty", [](auto& s, auto&) { s.penalty.word_penalty = 1; }},
      {"penalty.alpha", [](auto& s, auto&) { s.penalty.alpha = -200; }},
      {"width", [](auto& s, auto&) { s.width = 64; }},
      {"candidates", [](auto& s, auto&) { s.candidates = 257; }},
      {"sentences", [](auto&, auto& o) { o.sentences = 0; }},
      {"length", [](auto&, auto& o) { o.length = -1; }},
      {"length", [](auto& s, auto&) { s.length.max = LengthLimits::unlimited; }},
      {"length", [](auto& s, auto&) { s.length.max_factor = 2; }},
  };
  for (auto const& [name, change] : cases) {
    auto const said = message(change);
    CAPTURE(said);
    CHECK(said.find(name + " = ") != std::string::npos);
  }

  cuda::DeviceBeam beam(presets::fairseq(4), vocabulary, {.sentences = 2, .length = 20});
  Sentence const sentence{.vocabulary = &vocabulary, .prompt = {&vocabulary.bos, 1}, .last = 1};
  CHECK_THROWS_AS(beam.begin(0, sentence, nullptr), std::invalid_argument);  // 201 tokens do not fit
  auto limited = sentence;
  limited.limits.length = 20;
  CHECK_NOTHROW(beam.begin(1, limited, nullptr));
  CHECK_THROWS_AS(beam.begin(2, limited, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(beam.begin(-1, limited, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(beam.collect(0, nullptr), std::invalid_argument);
  CHECK(beam.running(nullptr) == std::vector<std::int32_t>{1});
  std::vector<float> const none(1);
  CHECK_THROWS_AS(beam.task<float>({none.data(), 7, 30, 30}), std::invalid_argument);
  CHECK_THROWS_AS(beam.task<float>({none.data(), 8, 29, 29}), std::invalid_argument);
  cuda::LogSoftmaxTopK lists;
  CHECK_THROWS_AS(beam.enqueue_step(lists, cuda::scores<float>(none.data(), 8, 30, nullptr, Kind::log_probs)),
                  std::invalid_argument);
}
