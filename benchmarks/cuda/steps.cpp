// SPDX-License-Identifier: Apache-2.0
// The parts of a step other than the model: merging beams, beam search, launches and copies around the lists, verifying
// blocks, reordering caches; one line of JSON per figure.
//
//   sluice.bench.cuda.steps [--shapes usual|all|smoke] [--seconds N] [--list]
//
// Answers are compared with the host's before they are timed. All data is small, so inputs are warm, except copies of
// caches that are larger than the L2 cache. Work that involves the host is timed with the host's launches, by events
// around several runs (timed: "host"); the rest by replays of graphs. Exit codes: see program.hpp.
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/cache_indirection.cuh>
#include <sluice/cuda/cache/paged_cache.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/verify/verify.cuh>

#include <algorithm>
#include <beam_work.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <device_array.hpp>
#include <host_merge.hpp>
#include <iostream>
#include <numeric>
#include <program.hpp>
#include <random>
#include <record.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::bench;

namespace {

struct Case {
  std::string_view experiment;  ///< "merge", "beam", "step", "verify" or "cache"
  std::int32_t sentences = 1;
  std::int32_t lines = 1;      ///< of a sentence: beams, or the block
  std::int32_t positions = 0;  ///< of a cache's slots

  std::int32_t rows() const { return sentences * lines; }
};

std::vector<Case> cases(std::string_view which) {
  if (which == "smoke")
    return {{"merge", 3, 5}, {"merge", 2, 50},    {"beam", 3, 5},      {"verify", 5, 4},   {"step", 3, 5},
            {"step", 2, 1},  {"cache", 3, 5, 30}, {"cache", 1, 8, 33}, {"cache", 2, 4, 16}};
  std::vector<Case> some;
  for (auto const beams : {5, 8, 16, 50}) some.push_back({"merge", 64, beams});
  for (auto const beams : {5, 16}) some.push_back({"beam", 64, beams});
  for (auto const sentences : {1, 64}) some.push_back({"step", sentences, 1}), some.push_back({"step", sentences, 5});
  for (auto const sentences : {1, 64, 1024})
    for (auto const block : {2, 4, 8, 16}) some.push_back({"verify", sentences, block});
  for (auto const positions : {30, 1000}) {
    some.push_back({"cache", 8, 8, positions});
    some.push_back({"cache", 64, 5, positions});
  }
  if (which == "all") {
    for (auto const sentences : {1, 8, 256, 1024})
      for (auto const beams : {2, 5, 8, 16, 32, 50, 63}) some.push_back({"merge", sentences, beams});
    for (auto const sentences : {1, 8, 256}) some.push_back({"beam", sentences, 5});
    for (auto const positions : {100, 300}) some.push_back({"cache", 64, 5, positions});
    some.push_back({"cache", 1, 320, 1000});
  }
  return some;
}

constexpr std::int32_t vocabulary = 32'000;

Record record(std::string_view name, Case const& one) {
  Record record(name);
  auto const data = std::to_string(one.sentences) + " x " + std::to_string(one.lines) +
                    (one.positions > 0 ? ", " + std::to_string(one.positions) + " positions" : "");
  record.add("experiment", one.experiment).add("rows", one.rows()).add("V", one.positions > 0 ? 0 : vocabulary);
  record.add("k", one.lines).add("type", one.positions > 0 ? "float16" : "float32").add("data", data);
  return record.add("sentences", one.sentences).add("lines", one.lines).add("positions", one.positions);
}

/// Page-locked memory, so that copies can overlap with work of the host.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t size) : size_(size) {
    cuda::check(cudaMallocHost(reinterpret_cast<void**>(&data_), size * sizeof(T)), "cudaMallocHost");
    std::memset(static_cast<void*>(data_), 0xff, size * sizeof(T));
  }
  PinnedArray(PinnedArray const&) = delete;
  PinnedArray& operator=(PinnedArray const&) = delete;
  ~PinnedArray() { static_cast<void>(cudaFreeHost(data_)); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

template <class T>
DeviceArray<T> on_device(std::vector<T> const& from) {
  DeviceArray<T> to(from.size());
  to.set(from);
  return to;
}

/// A time to compare with, and the name of the ratio of that time to another; 0: none.
struct Base {
  std::string_view ratio{};
  double us = 0;
};

/// What the measurements of a case share.
class Bench {
 public:
  Bench(Machine& machine, Case const& one) : machine_(machine), case_(one), stream_(machine.timer.stream()) {}

 protected:
  void wait(char const* what) const { cuda::check(cudaStreamSynchronize(stream_), what); }

  /// Returns `well`; prints an error if false.
  bool right(std::string_view name, bool well) const {
    if (well) return true;
    machine_.wrong = true;
    record(name, case_).add("bytes", 0).add("error", "the answer is not the host's").write(std::cout);
    return false;
  }

  /// \param sets   as in GraphTimer
  template <class Work>
  double time(std::string_view name, std::size_t bytes, Work const& work, bool graph = true, int sets = 1,
              Base base = {}, char const* cache = "warm") const {
    auto const time = machine_.timer(sets, work, graph);
    auto line = record(name, case_);
    line.add("bytes", bytes).add("timed", graph ? "graph" : "host").add("x empty kernel", time.median / machine_.empty);
    if (base.us > 0) line.add(base.ratio, base.us / time.median);
    line.add(cache, time).write(std::cout);
    return time.median;
  }

  Machine& machine_;
  Case case_;
  cudaStream_t stream_;
};

// ---- merging beams

/// Lists of beam + 1 for every line; a search reads 2 * beam candidates per sentence.
class MergeBench : Bench {
 public:
  MergeBench(Machine& machine, Case const& one) : Bench(machine, one), k_(one.lines + 1), keep_(2 * one.lines) {
    std::mt19937 random(3);
    std::exponential_distribution<float> gap(1.0f);
    for (std::int32_t s = 0; s < one.sentences; ++s) {
      groups_.push_back({s * one.lines, one.lines, keep_, s * keep_});
      auto base = -10.0;
      for (std::int32_t i = 0; i < one.lines; ++i) {
        base -= static_cast<double>(gap(random)) / one.lines;
        lines_.push_back({base, s * one.lines + i});
        auto value = 0.0f;
        for (std::int32_t j = 0; j < k_; ++j) {
          value -= gap(random);
          best_.push_back({static_cast<Token>(random() % vocabulary), value});
        }
        results_.push_back({k_, 1, 0});
      }
    }
    ends_ = {2};
  }

  void run() {
    auto const best = on_device(best_);
    auto const results = on_device(results_);
    auto const groups = on_device(groups_);
    auto const lines = on_device(lines_);
    auto const ends = on_device(ends_);
    auto const kept_size = static_cast<std::size_t>(case_.sentences * keep_);
    DeviceArray<cuda::Kept> kept(kept_size);
    DeviceArray<double> totals(kept_size);
    DeviceArray<std::int32_t> places(kept_size);
    cuda::MergeLaunch launch;
    launch.best = best.data(), launch.results = results.data(), launch.k = k_;
    launch.groups = groups.data(), launch.group_count = case_.sentences;
    launch.lines = lines.data(), launch.widest = case_.lines, launch.longest = keep_;
    launch.ends = ends.data(), launch.end_count = 1;
    launch.kept = kept.data(), launch.totals = totals.data(), launch.places = places.data();

    HostMerge host;
    std::vector<cuda::Kept> expected(kept_size);
    host(best_.data(), results_.data(), k_, groups_, lines_, expected.data());
    cuda::merge_beams(launch, stream_);
    wait("merge_beams");
    auto const found = kept.get(0, kept_size);
    auto const same = [](cuda::Kept const& a, cuda::Kept const& b) {
      return a.parent == b.parent && a.token == b.token && a.log_prob == b.log_prob;
    };
    if (!right("merge_beams", std::equal(found.begin(), found.end(), expected.begin(), same))) return;

    time("merge_beams", best.bytes(), [&](int, cudaStream_t stream) { cuda::merge_beams(launch, stream); });

    // To the host, which continues with the kept candidates.
    PinnedArray<cuda::Kept> host_kept(kept_size);
    PinnedArray<Candidate> host_best(best_.size());
    PinnedArray<cuda::LineResult> host_results(results_.size());
    auto const copy = [](auto const& to, auto const& from, cudaStream_t stream) {
      cuda::check(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToHost, stream),
                  "cudaMemcpyAsync");
    };
    auto const arrive = [](cudaStream_t stream) { cuda::check(cudaStreamSynchronize(stream), "a copy to the host"); };
    auto const merged = time(
        "merge_beams, what is kept to the host", host_kept.bytes() + host_results.bytes(),
        [&](int, cudaStream_t stream) {
          cuda::merge_beams(launch, stream);
          copy(host_kept, kept, stream), copy(host_results, results, stream);
          arrive(stream);
        },
        false);
    std::vector<cuda::Kept> by_host(kept_size);
    auto const whole = [&](int, cudaStream_t stream) {
      copy(host_best, best, stream), copy(host_results, results, stream);
      arrive(stream);
      host(host_best.data(), host_results.data(), k_, groups_, lines_, by_host.data());
    };
    whole(0, stream_);
    if (!right("lists to the host, merged there", std::equal(by_host.begin(), by_host.end(), expected.begin(), same)))
      return;
    time("lists to the host, merged there", host_best.bytes() + host_results.bytes(), whole, false, 1,
         {"merged on the device / this", merged});
    time("lists to the host", host_best.bytes() + host_results.bytes(),
         [&](int, cudaStream_t stream) {
           copy(host_best, best, stream), copy(host_results, results, stream);
           arrive(stream);
         },
         false, 1, {"merged on the device / this", merged});
  }

 private:
  std::int32_t k_, keep_;
  std::vector<Candidate> best_;
  std::vector<cuda::LineResult> results_;
  std::vector<cuda::MergeGroup> groups_;
  std::vector<cuda::MergeLine> lines_;
  std::vector<Token> ends_;
};

// ---- beam search

/// Steps of whole beams, with and without the lists.
class BeamBench : Bench {
  static constexpr std::int32_t most_steps = 12'288;  ///< more than are timed

 public:
  BeamBench(Machine& machine, Case const& one)
      : Bench(machine, one), scores_(static_cast<std::size_t>(one.rows()) * vocabulary) {
    fill_scores<cuda::detail::Float32>(scores_.data(), static_cast<std::int64_t>(scores_.size()), vocabulary, 11);
    wait("scores");
    work_.sentences = one.sentences, work_.width = one.lines, work_.steps = most_steps;
    work_.scores = cuda::scores<float>(reinterpret_cast<float const*>(scores_.data()), one.rows(), vocabulary);
    work_.vocabulary = {.size = vocabulary, .bos = 1, .eos = {2}, .never = {0, 1}};
  }

  void run() {
    {
      HostBeams host(work_);
      DeviceBeams device(work_, stream_);
      for (int i = 0; i < 8; ++i) host.step(stream_), device.step(stream_);
      if (!right("DeviceBeam::enqueue_step", same_hypotheses(device.results(stream_), host.results()))) return;
    }
    DeviceBeams beams(work_, stream_);
    auto const all =
        time("DeviceBeam::enqueue_step", scores_.bytes(), [&](int, cudaStream_t stream) { beams.step(stream); });
    cuda::StepOptions const early{.early_starts = true};
    {
      DeviceBeams some(work_, stream_), others(work_, stream_, early);
      for (int i = 0; i < 8; ++i) some.step(stream_), others.step(stream_);
      if (!right("DeviceBeam::enqueue_step, kernels started early",
                 same_hypotheses(others.results(stream_), some.results(stream_))))
        return;
    }
    cuda::StepOptions const behind{.merge_behind_lines = true};
    {
      DeviceBeams some(work_, stream_), others(work_, stream_, behind);
      for (int i = 0; i < 8; ++i) some.step(stream_), others.step(stream_);
      if (!right("DeviceBeam::enqueue_step, merged behind the lines",
                 same_hypotheses(others.results(stream_), some.results(stream_))))
        return;
    }
    DeviceBeams two(work_, stream_, behind);
    time("DeviceBeam::enqueue_step, merged behind the lines", scores_.bytes(),
         [&](int, cudaStream_t stream) { two.step(stream); }, true, 1, {"three launches / this", all});
    DeviceBeams others(work_, stream_, early);
    time("DeviceBeam::enqueue_step, kernels started early", scores_.bytes(),
         [&](int, cudaStream_t stream) { others.step(stream); }, true, 1, {"each behind the other / this", all});
    HostBeams host(work_);
    time("lists merged on the device, BeamSearch on the host", scores_.bytes(),
         [&](int, cudaStream_t stream) { host.step(stream); }, false, 1, {"on the device / this", all});
    DeviceBeams again(work_, stream_);
    again.step(stream_);
    time("DeviceBeam::advance", 0, [&](int, cudaStream_t stream) { again.advance(stream); });
  }

 private:
  DeviceArray<std::uint32_t> scores_;
  BeamWork work_;
};

// ---- a step of a decoder

/// LogSoftmaxTopK::expand with every setting of StepOptions: copies queries to the device, makes lists, merges, copies
/// answers back, and waits.
class StepBench : Bench {
 public:
  StepBench(Machine& machine, Case const& one)
      : Bench(machine, one), memory_(static_cast<std::size_t>(one.rows()) * vocabulary) {
    fill_scores<cuda::detail::Float32>(memory_.data(), static_cast<std::int64_t>(memory_.size()), vocabulary, 11);
    wait("scores");
    scores_ = cuda::scores<float>(reinterpret_cast<float const*>(memory_.data()), one.rows(), vocabulary, stream_);
    for (std::int32_t i = 0; i < one.rows(); ++i) {
      auto& query = queries_.emplace_back();
      query.best = one.lines > 1 ? one.lines + 1 : 1;
      query.base = -0.5 * (i % one.lines), query.rank = i % one.lines;
    }
    if (one.lines > 1)
      groups_.assign(static_cast<std::size_t>(one.sentences), {.lines = one.lines, .keep = 2 * one.lines});
  }

  void run() {
    auto const copied = time_way("expand, answers copied", {.mapped_answers = false}, {});
    if (copied == 0) return;
    auto const written = time_way("expand, answers written to the host", {}, {"answers copied / this", copied});
    if (written == 0 || groups_.empty()) return;  // one launch
    time_way("expand, kernels started early", {.early_starts = true}, {"each behind the other / this", written});
    time_way("expand, merged behind the lines", {.merge_behind_lines = true}, {"two launches / this", written});
  }

 private:
  /// The median; 0 if the answers differ from those of the first setting.
  double time_way(std::string_view name, cuda::StepOptions const& options, Base base) {
    cuda::LogSoftmaxTopK expander({}, {}, options);
    auto const answer = expander.expand(scores_, queries_, groups_);
    std::vector<Candidate> found;
    for (std::size_t i = 0; i < answer.size(); ++i)
      found.insert(found.end(), answer[i].best.begin(), answer[i].best.end());
    if (expected_.empty()) expected_ = found;
    auto const same = [](Candidate const& a, Candidate const& b) {
      return a.token == b.token && a.log_prob == b.log_prob;
    };
    if (!right(name, !found.empty() && std::ranges::equal(found, expected_, same))) return 0;
    return time(
        name, memory_.size() * sizeof(float),
        [&](int, cudaStream_t) { static_cast<void>(expander.expand(scores_, queries_, groups_)); }, false, 1, base);
  }

  DeviceArray<std::uint32_t> memory_;
  cuda::Scores<float> scores_;
  std::vector<Query> queries_;
  std::vector<Group> groups_;
  std::vector<Candidate> expected_;
};

// ---- verifying blocks

/// Guesses, of which seven in ten are right.
class VerifyBench : Bench {
 public:
  using Bench::Bench;

  void run() {
    std::mt19937 random(5);
    auto const block = case_.lines;
    std::vector<Candidate> best;
    std::vector<Token> guesses;
    std::vector<std::int32_t> kept;
    for (std::int32_t s = 0; s < case_.sentences; ++s) {
      std::int32_t right = 0;
      for (std::int32_t i = 0; i < block; ++i) {
        best.push_back({static_cast<Token>(3 + random() % (vocabulary - 4)), -1.0f - static_cast<float>(i)});
        if (i + 1 == block) break;
        auto const good = random() % 10 < 7;
        guesses.push_back(best.back().token + (good ? 0 : 1));
        if (good && right == i) ++right;
      }
      kept.push_back(right);
    }
    auto const device_best = on_device(best);
    auto const device_guesses = on_device(guesses);
    auto const results = on_device(std::vector<cuda::LineResult>(best.size(), {1, 1, 0}));
    auto const eos = on_device(std::vector<Token>{2});
    DeviceArray<Candidate> tokens(best.size());
    DeviceArray<cuda::Verdict> verdicts(static_cast<std::size_t>(case_.sentences));
    cuda::Verification task;
    task.sentences = case_.sentences, task.block = block;
    task.best = device_best.data(), task.results = results.data();
    task.guesses = device_guesses.data(), task.guess_stride = block - 1;
    task.vocabulary_size = vocabulary, task.eos = eos.data(), task.eos_count = 1;
    task.tokens = tokens.data(), task.verdicts = verdicts.data();
    cuda::verify(task, stream_);
    wait("verify");
    auto const found = verdicts.get(0, verdicts.size());
    auto const added = tokens.get(0, tokens.size());
    auto well = true;
    for (std::size_t s = 0; s < found.size(); ++s) {
      auto const& verdict = found[s];
      well = well && verdict.valid == 1 && verdict.finished == 0 && verdict.kept == kept[s] &&
             verdict.count == kept[s] + 1;
      for (std::int32_t i = 0; well && i < verdict.count; ++i) {
        auto const at = s * static_cast<std::size_t>(block) + static_cast<std::size_t>(i);
        well = added[at] == best[at];  // accepted tokens are the model's best
      }
    }
    if (right("verify", well))
      time("verify", device_best.bytes(), [&](int, cudaStream_t stream) { cuda::verify(task, stream); });
  }
};

// ---- caches

/// Keys and values of 6 layers of 512, in half precision. A step reorders the beams of every sentence and appends a
/// token; to be repeatable, it cuts off the previous token.
class CacheBench : Bench {
  static constexpr std::size_t elements = 2 * 6 * 512;
  static constexpr int patterns = 16;  ///< of beams, in turns
  using Element = std::uint16_t;

 public:
  CacheBench(Machine& machine, Case const& one)
      : Bench(machine, one),
        slots_(one.rows()),
        bytes_(index(slots_) * index(one.positions) * elements * sizeof(Element)) {
    std::mt19937 random(7);
    for (auto& pattern : steps_)
      for (std::int32_t s = 0; s < one.sentences; ++s) add(pattern, s * one.lines, random);
    first_.assign(index(slots_), {});
    tokens_.assign(index(one.positions), 7);
    for (Slot slot = 0; slot < slots_; ++slot) first_[index(slot)] = {slot, 0, one.positions};
  }

  void run() {
    auto const copy = time_copy();
    time_indirection(copy);
    time_pages(copy);
  }

 private:
  using Pattern = std::vector<cuda::SlotStep>;  // [slots]

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  /// Draws parents within a sentence, better ones more often. Slots with children stay unchanged; further children take
  /// the slots of childless ones.
  void add(Pattern& pattern, Slot first, std::mt19937& random) const {
    std::vector<std::int32_t> children(index(case_.lines));
    for (std::int32_t i = 0; i < case_.lines; ++i) ++children[std::min(random(), random()) % children.size()];
    std::vector<Slot> more;
    for (std::size_t i = 0; i < children.size(); ++i)
      for (auto n = children[i]; n > 1; --n) more.push_back(first + static_cast<Slot>(i));
    for (std::size_t i = 0; i < children.size(); ++i) {
      auto from = first + static_cast<Slot>(i);
      if (children[i] == 0) from = more.back(), more.pop_back();
      pattern.push_back({from, case_.positions - 1, 1});
    }
  }

  std::vector<Row> rows(Pattern const& pattern) const {
    std::vector<Row> rows;
    for (Slot slot = 0; slot < slots_; ++slot) {
      auto const& step = pattern[index(slot)];
      rows.push_back({step.from, slot, step.length, std::span(tokens_).first(index(step.count))});
    }
    return rows;
  }

  /// For every slot after the steps first to last: the slot whose memory first held its positions, all but the last.
  std::vector<Slot> origins(int steps) const {
    std::vector<Slot> of(index(slots_));
    std::iota(of.begin(), of.end(), 0);
    for (int i = 0; i < steps; ++i) {
      auto const before = of;
      for (Slot slot = 0; slot < slots_; ++slot) of[index(slot)] = before[index(steps_[i][index(slot)].from)];
    }
    return of;
  }

  std::size_t forks() const {
    std::size_t count = 0;
    for (auto const& pattern : steps_)
      for (Slot slot = 0; slot < slots_; ++slot) count += pattern[index(slot)].from != slot ? 1 : 0;
    return count;
  }

  bool fits(std::size_t bytes, std::string_view name) const {
    std::size_t free = 0, all = 0;
    cuda::check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    if (bytes + (std::size_t{256} << 20) < free) return true;
    record(name, case_).add("bytes", bytes).add("error", "the device has too little memory").write(std::cout);
    return false;
  }

  /// Microseconds to copy all keys and values, as much data as a gather by parents moves; 0 if it did not run.
  double time_copy() const {
    constexpr auto name = "a copy of the cache";
    if (!fits(2 * bytes_, name)) return 0;
    DeviceArray<unsigned char> const from(bytes_), to(bytes_);
    auto const cold = bytes_ > machine_.cache;
    auto const work = [&](int, cudaStream_t stream) {
      cuda::check(cudaMemcpyAsync(to.data(), from.data(), bytes_, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    };
    return time(name, 2 * bytes_, work, true, 1, {}, cold ? "cold" : "warm");
  }

  /// Whether the table is that of origins(steps), with new positions in the slots' own memory.
  bool is_table(cuda::IndirectionView view, int steps) const {
    std::vector<Slot> table(index(slots_) * index(case_.positions));
    cuda::check(cudaMemcpy(table.data(), view.table, table.size() * sizeof(Slot), cudaMemcpyDeviceToHost),
                "cudaMemcpy");
    auto const of = origins(steps);
    auto at = table.begin();
    for (Slot slot = 0; slot < slots_; ++slot)
      for (std::int32_t position = 0; position < case_.positions; ++position)
        if (*at++ != (position + 1 == case_.positions ? slot : of[index(slot)])) return false;
    return true;
  }

  void time_indirection(double copy) const {
    cuda::CacheIndirectionOptions const options{slots_, case_.positions, case_.lines};
    auto const bytes = index(slots_) * index(case_.positions) * sizeof(Slot);
    {
      cuda::CacheIndirection cache(options);
      cache.step(rows(first_), stream_);
      for (auto const& pattern : steps_) cache.step(rows(pattern), stream_);
      wait("CacheIndirection::step");
      if (!right("CacheIndirection::step", is_table(cache.view(), patterns))) return;
      std::vector<std::vector<Row>> all;
      for (auto const& pattern : steps_) all.push_back(rows(pattern));
      time("CacheIndirection::step", bytes,
           [&](int i, cudaStream_t stream) { cache.step(all[static_cast<std::size_t>(i)], stream); }, false, patterns,
           {"copy of the cache / this", copy});
    }
    cuda::CacheIndirection cache(options);
    auto const first = on_device(first_);
    std::vector<DeviceArray<cuda::SlotStep>> steps;
    for (auto const& pattern : steps_) steps.push_back(on_device(pattern));
    cache.enqueue(first.data(), case_.positions, stream_);
    for (auto const& pattern : steps) cache.enqueue(pattern.data(), case_.positions, stream_);
    wait("CacheIndirection::enqueue");
    if (!right("CacheIndirection::enqueue", is_table(cache.view(), patterns))) return;
    time("CacheIndirection::enqueue", bytes,
         [&](int i, cudaStream_t stream) {
           cache.enqueue(steps[static_cast<std::size_t>(i)].data(), case_.positions, stream);
         },
         true, patterns, {"copy of the cache / this", copy});
  }

  // ---- in pages

  static constexpr std::int32_t of_page = 16;

  static Element mark(Slot slot) { return static_cast<Element>((slot % 251 + 1) * 0x0101); }

  /// The page table of row `row`, on the device.
  std::vector<std::int32_t> table(cuda::PageView<Element> const& view) const {
    std::vector<std::int32_t> table(index(slots_) * index(view.stride));
    cuda::check(cudaMemcpy(table.data(), view.table, table.size() * sizeof(std::int32_t), cudaMemcpyDeviceToHost),
                "cudaMemcpy");
    return table;
  }

  /// Calls Do for all rows' first page and the page of the position before the last.
  template <class Do>
  void pages(cuda::PageView<Element> view, Do const& act) const {
    auto const numbers = table(view);
    view.table = numbers.data();
    for (Slot slot = 0; slot < slots_; ++slot)
      for (auto const position : std::set<std::int32_t>{0, case_.positions - 2}) act(slot, position, view);
  }

  void time_pages(double copy) const {
    constexpr auto name = "PagedCache::step";
    auto const pages_of = (case_.positions + of_page - 1) / of_page;
    auto const page_bytes = elements * of_page * sizeof(Element);
    cuda::PagedCacheOptions const options{.elements_per_position = elements,
                                          .positions_per_page = of_page,
                                          .planes = 12,
                                          .max_pages = slots_ * (pages_of + 2),
                                          .max_rows = slots_,
                                          .max_length = case_.positions};
    if (!fits(index(options.max_pages) * page_bytes, name)) return;
    cuda::PagedCache<Element> cache(options);
    cache.step(rows(first_), stream_);
    wait(name);
    pages(cache.view(), [&](Slot slot, std::int32_t position, cuda::PageView<Element> const& view) {
      cuda::check(cudaMemset(view.page(slot, position), mark(slot) & 0xff, page_bytes), "cudaMemset");
    });
    cuda::check(cudaDeviceSynchronize(), "cudaMemset");
    for (auto const& pattern : steps_) cache.step(rows(pattern), stream_);
    wait(name);
    auto const of = origins(patterns);
    auto well = true;
    pages(cache.view(), [&](Slot slot, std::int32_t position, cuda::PageView<Element> const& view) {
      for (auto const plane : {0, 11}) {
        Element found = 0;
        cuda::check(cudaMemcpy(&found, view.at(slot, position, plane), sizeof found, cudaMemcpyDeviceToHost),
                    "cudaMemcpy");
        well = well && found == mark(of[index(slot)]);
      }
    });
    if (!right(name, well)) return;
    std::vector<std::vector<Row>> all;
    for (auto const& pattern : steps_) all.push_back(rows(pattern));
    auto const filled = (case_.positions - 1) % of_page;
    auto const moved = 2 * forks() / patterns * index(filled) * elements * sizeof(Element);  // at most
    time(name, moved, [&](int i, cudaStream_t stream) { cache.step(all[static_cast<std::size_t>(i)], stream); }, false,
         patterns, {"copy of the cache / this", copy});
  }

  std::int32_t slots_;
  std::size_t bytes_;  ///< of all keys and values
  Pattern steps_[patterns];
  Pattern first_;  ///< fills all slots
  std::vector<Token> tokens_;
};

void run(Machine& machine, Case const& one) {
  if (one.experiment == "merge") MergeBench(machine, one).run();
  else if (one.experiment == "beam") BeamBench(machine, one).run();
  else if (one.experiment == "step") StepBench(machine, one).run();
  else if (one.experiment == "verify") VerifyBench(machine, one).run();
  else CacheBench(machine, one).run();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      "sluice.bench.cuda.steps", argc, argv, cases,
      [](char const* name, Case const& one) { return record(name, one).add("bytes", 0); }, run);
}
