// SPDX-License-Identifier: Apache-2.0
// sluice.bench.torch: whole decodings with a Transformer of the papers' size, run by torch, with random weights:
// searches, schedules, and where the search runs. Lines of JSON, for tools/gpu-page.
//
//   sluice.bench.torch [--device cpu|cuda] [--shapes usual|all|smoke] [--seconds N]
//
// Random weights never end a sentence. Each sentence has its own length, drawn with a fixed seed, at which its search
// ends; an output of another length is reported as an error. Seconds are wall-clock time including encoding, medians of
// up to three runs after warm-up runs. A separate run measures the shares: it waits for the device after every call of
// the model, so that the model's time is measured separately. `outside` is the share of all steps, without encoding,
// that is outside the model, in per cent; `output` is the part of it for copying scores, softmax, selection and
// merging. Exit code 3: there is no such device. 4: not enough time for some runs; these are reported, too.

#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include "traffic.hpp"
#include <libtorch/scores.hpp>
#include <libtorch/torch_transformer.hpp>

#if SLUICE_TORCH_CUDA
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#endif

#include <ATen/Context.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using example::HostScores, example::TorchShape, example::TorchTransformer, example::TorchWeights;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct OutOfTime : std::runtime_error {
  OutOfTime() : std::runtime_error("no time was left") {}
};

/// Where scores become candidates.
enum class Way {
  host,    ///< scores copied to the host, LogSoftmaxTopK there
  lists,   ///< on the device; every line's list is copied
  device,  ///< on the device, beams merged there
};
constexpr char const* name(Way way) {
  return way == Way::host ? "host" : way == Way::lists ? "device, whole lists" : "device, merged";
}

enum class Schedule { sorted, file_order, streaming, refilled };
constexpr char const* name(Schedule schedule) {
  switch (schedule) {
    case Schedule::sorted: return "batched, sorted";
    case Schedule::file_order: return "batched";
    case Schedule::streaming: return "streaming";
    case Schedule::refilled: return "streaming, refill 1";
  }
  return "";
}

struct Setting {
  std::int32_t width = 1;  ///< 1: greedy
  Schedule schedule = Schedule::sorted;
  Way way = Way::host;
  std::string_view type = "float16";  ///< of all numbers
};

struct Plan {
  TorchShape shape;
  std::size_t size = 64;        ///< sentences decoded together
  std::size_t sentences = 640;  ///< a fifth of them for wide beams
  int runs = 3;
  std::vector<Setting> settings;  ///< the most telling first
};

Plan plan(std::string_view which, bool on_device) {
  Plan plan;
  std::string_view const type = on_device ? "float16" : "float32";
  std::vector<Way> ways{Way::host};
#if SLUICE_TORCH_CUDA
  if (on_device) ways = {Way::device, Way::lists, Way::host};
#endif
  auto const best = ways.front();
  using enum Schedule;
  auto& settings = plan.settings;
  if (which == "smoke") {
    plan.shape = {.d = 32, .ff = 64, .heads = 4, .encoder_layers = 1, .decoder_layers = 1, .vocabulary = 300};
    plan.size = 4, plan.sentences = 16, plan.runs = 1;
    for (auto const width : {1, 5})
      for (auto const way : ways)
        for (auto const schedule : {sorted, file_order, streaming, refilled})
          settings.push_back({width, schedule, way, type});
    settings.push_back({20, sorted, best, type});
    return plan;
  }
  if (which != "usual" && which != "all")
    throw std::invalid_argument("--shapes: smoke, usual or all, not " + std::string(which));
  for (auto const width : {5, 1, 50})
    for (auto const schedule : {sorted, file_order, streaming, refilled})
      settings.push_back({width, schedule, best, type});
  for (auto const width : {5, 1, 50})
    for (auto const way : ways)
      if (way != best) settings.push_back({width, sorted, way, type});
  if (which == "all")
    for (std::string_view const kind : {"float16", "bfloat16", "float32"})
      for (auto const width : {5, 1, 50})
        for (auto const way : ways)
          for (auto const schedule : {sorted, file_order, streaming, refilled})
            if ((on_device || kind == "float32") && (kind != type || (way != best && schedule != sorted)))
              settings.push_back({width, schedule, way, kind});
  return plan;
}

/// A model that measures its time; `waiting`: including the device's work.
class TimedTransformer : public TorchTransformer {
 public:
  using TorchTransformer::TorchTransformer;
  at::Tensor logits(std::span<Row const> rows) {
    auto const begin = Clock::now();
    auto scores = TorchTransformer::logits(rows);
    if (waiting && stream()) stream()->synchronize();
    seconds += seconds_since(begin);
    return scores;
  }
  bool waiting = false;
  double seconds = 0;
};

#if SLUICE_TORCH_CUDA
/// cuda::LogSoftmaxTopK without the groups of lines.
class WholeLists {
 public:
  template <class T>
  Expansion expand(cuda::Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    groups_.assign(groups.begin(), groups.end());
    for (auto& group : groups_) group.keep = 0;
    return expander_.expand(scores, queries, groups_);
  }

 private:
  cuda::LogSoftmaxTopK expander_;
  std::vector<Group> groups_;
};
#endif

struct Outcome {
  double seconds = 0;
  Statistics statistics;
};

/// Decodes all sentences.
template <class Expander, class Model, class S, class P>
Outcome decode(Model& model, std::span<bench::Sentence const> sentences, S const& search, P const& schedule,
               Intake const& intake, Clock::time_point end) {
  Decoder decoder(model, search, schedule, Expander(), NoTrace(), intake);
  for (auto const& sentence : sentences) {
    auto own = search;
    own.length.max = sentence.length;
    decoder.submit({.source = sentence.source, .search = own});
  }
  Result result;
  std::size_t ended = 0;
  auto const collect = [&] {
    for (; decoder.poll(result); ++ended) {
      if (!result.ok()) throw std::runtime_error(std::string(name(result.failure)) + ": " + result.message);
      auto const length = sentences[static_cast<std::size_t>(result.id)].length;
      if (result.hypotheses.empty() || std::ssize(result.hypotheses[0].tokens) != length)
        throw std::runtime_error("wrong: a sentence is not as long as asked");
    }
  };
  auto const begin = Clock::now();
  while (decoder.step()) {
    collect();
    if (Clock::now() > end) throw OutOfTime();
  }
  collect();
  if (ended != sentences.size()) throw std::runtime_error("wrong: sentences are missing");
  return {seconds_since(begin), decoder.statistics()};
}

class Bench {
 public:
  Bench(std::string device, std::string_view which, double seconds)
      : device_(std::move(device)),
        plan_(plan(which, device_ != "cpu")),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        sentences_(bench::traffic(plan_.sentences, static_cast<Token>(plan_.shape.vocabulary))) {}

  int run() {
    for (auto const& setting : plan_.settings) {
      nlohmann::ordered_json record{{"name", setting.width == 1 ? "greedy" : "beam " + std::to_string(setting.width)},
                                    {"experiment", "end to end"},
                                    {"schedule", name(setting.schedule)},
                                    {"search", name(setting.way)},
                                    {"type", setting.type},
                                    {"size", plan_.size},
                                    {"model", model_name()},
                                    {"device", device_}};
      try {
        if (Clock::now() > end_) throw OutOfTime();
        measure(setting, record);
      } catch (OutOfTime const& error) {
        record["error"] = error.what(), late_ = true;
      } catch (c10::Error const& error) {
        record["error"] = first_line(error.what_without_backtrace()), failed_ = true;
      } catch (std::exception const& error) {
        record["error"] = first_line(error.what()), failed_ = true;
      }
      std::cout << record.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
    }
    return failed_ ? 1 : late_ ? 4 : 0;
  }

 private:
  static std::string first_line(std::string const& text) { return text.substr(0, text.find('\n')); }
  std::string model_name() const {
    auto const& s = plan_.shape;
    return std::to_string(s.encoder_layers) + "+" + std::to_string(s.decoder_layers) + ", d " + std::to_string(s.d) +
           ", ff " + std::to_string(s.ff) + ", V " + std::to_string(s.vocabulary);
  }

  std::shared_ptr<TorchWeights const> weights(std::string_view type) {
    if (weights_ == nullptr || type_ != type) {
      auto const numbers = type == "float16" ? at::kHalf : type == "bfloat16" ? at::kBFloat16 : at::kFloat;
      weights_ = TorchWeights::random(plan_.shape, at::TensorOptions(at::Device(device_)).dtype(numbers));
      type_ = type;
    }
    return weights_;
  }

  void measure(Setting const& setting, nlohmann::ordered_json& record) {
#if SLUICE_TORCH_CUDA
    auto const on_device = [&]<class T>(T) {
      example::DeviceScores<TimedTransformer, T> model(weights(setting.type));
      if (setting.way == Way::lists) with<WholeLists>(model, setting, record);
      else with<cuda::LogSoftmaxTopK>(model, setting, record);
    };
    if (setting.way != Way::host) {
      if (setting.type == "float16") return on_device(__half());
      if (setting.type == "bfloat16") return on_device(__nv_bfloat16());
      return on_device(float());
    }
#endif
    HostScores<TimedTransformer> model(weights(setting.type));
    with<LogSoftmaxTopK>(model, setting, record);
  }

  template <class Expander, class Model>
  void with(Model& model, Setting const& setting, nlohmann::ordered_json& record) {
    if (setting.width == 1) with<Expander>(model, Greedy(), setting, record);
    else with<Expander>(model, BeamSearch{.width = setting.width}, setting, record);
  }
  template <class Expander, class Model, class S>
  void with(Model& model, S const& search, Setting const& setting, nlohmann::ordered_json& record) {
    switch (setting.schedule) {
      case Schedule::sorted:
      case Schedule::file_order: return with<Expander>(model, search, Batched{.size = plan_.size}, setting, record);
      case Schedule::streaming: return with<Expander>(model, search, Streaming{.size = plan_.size}, setting, record);
      case Schedule::refilled:
        return with<Expander>(model, search, Streaming{.size = plan_.size, .refill_below = 1}, setting, record);
    }
  }
  template <class Expander, class Model, class S, class P>
  void with(Model& model, S const& search, P const& schedule, Setting const& setting, nlohmann::ordered_json& record) {
    std::span<bench::Sentence const> all(sentences_);
    if (setting.width > 10) all = all.first(std::max(2 * plan_.size, all.size() / 5));
    // Encodes in groups as large as a batch, for every schedule.
    Intake const intake{.window = setting.schedule == Schedule::sorted ? all.size() : 0,
                        .encode_ahead = plan_.size,
                        .encoder_thread = false};
    auto const run = [&](std::span<bench::Sentence const> sentences) {
      return decode<Expander>(model, sentences, search, schedule, intake, end_);
    };

    run(all.first(2 * plan_.size));
    model.waiting = true, model.seconds = 0;
    auto const account = run(all.first(2 * plan_.size)).statistics.seconds;
    auto const steps = account.total() - account.encode, in_model = model.seconds;
    model.waiting = false;

    std::vector<Outcome> outcomes;
    auto const begin = Clock::now();
    do outcomes.push_back(run(all));
    while (static_cast<int>(outcomes.size()) < plan_.runs && seconds_since(begin) < 5);
    std::ranges::sort(outcomes, {}, &Outcome::seconds);
    auto const& [seconds, statistics] = outcomes[outcomes.size() / 2];
    record["sentences"] = all.size(), record["tokens"] = statistics.tokens, record["steps"] = statistics.steps;
    record["rows"] = statistics.rows, record["seconds"] = seconds, record["runs"] = outcomes.size();
    record["sentences_per_s"] = static_cast<double>(all.size()) / seconds;
    record["tokens_per_s"] = static_cast<double>(statistics.tokens) / seconds;
    record["outside"] = 100 * (steps - in_model) / steps;
    record["output"] = 100 * (account.output + account.model - in_model) / steps;
  }

  std::string device_;
  Plan plan_;
  Clock::time_point end_;
  std::vector<bench::Sentence> sentences_;
  std::shared_ptr<TorchWeights const> weights_;
  std::string type_;
  bool failed_ = false, late_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  std::string which = "usual", device = at::hasCUDA() ? "cuda" : "cpu";
  auto seconds = 1e6;
  std::span const arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  try {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      std::string const argument = arguments[i];
      auto const value = [&]() -> std::string {
        if (i + 1 == arguments.size()) throw std::invalid_argument(argument + ": a value is missing");
        return arguments[++i];
      };
      if (argument == "--shapes") which = value();
      else if (argument == "--seconds") seconds = std::stod(value());
      else if (argument == "--device") device = value();
      else throw std::invalid_argument("what is " + argument + "?");
    }
    if (device != "cpu" && device != "cuda") throw std::invalid_argument("--device: cpu or cuda, not " + device);
    if (device == "cuda" && !at::hasCUDA()) {
      std::cout << "SKIPPED: torch finds no GPU; nothing was measured\n";
      return 3;
    }
    return Bench(device, which, seconds).run();
  } catch (std::invalid_argument const& error) {
    std::cerr << "sluice.bench.torch: " << error.what() << '\n';
    return 2;
  } catch (std::exception const& error) {
    std::cerr << "sluice.bench.torch: " << error.what() << '\n';
    return 1;
  }
}
