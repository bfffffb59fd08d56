// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the programs of this folder share: arguments, the device, its limits.
///
///   PROGRAM [--shapes usual|all|smoke] [--seconds N] [--list]
///
/// Exit code 1 if an answer was wrong, 3 if there is no device, 4 if there was not enough time for all cases.
#pragma once

#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <device_array.hpp>
#include <device_work.hpp>
#include <exception>
#include <graph_timer.hpp>
#include <iostream>
#include <limits>
#include <record.hpp>
#include <reference.hpp>
#include <span>
#include <stdexcept>
#include <string>

namespace sluice::bench {

struct Machine {
  int processors = 1;
  std::size_t cache = 1;  ///< second level, bytes
  bool rings = false;     ///< bulk copies: compute capability 9.0 or newer
  GraphTimer timer;
  bool wrong = false;
  double copy = 0;   ///< bytes read and written in a microsecond
  double empty = 0;  ///< microseconds of an empty kernel in a graph

  /// The least microseconds to read so many bytes, by the copy's bandwidth.
  double reading(std::size_t bytes) const { return static_cast<double>(bytes) / copy; }
};

/// The number of inputs that together are far larger than the cache.
inline int cold_sets(std::size_t bytes, std::size_t cache) {
  return static_cast<int>(std::clamp<std::size_t>((4 * cache + bytes - 1) / bytes, 1, 1024));
}

/// Times an empty launch, and a copy within the device.
inline void time_limits(Machine& machine) {
  auto const empty = machine.timer(1, [](int, cudaStream_t stream) { launch_nothing(stream); });
  Record("empty kernel").add("cold", empty).write(std::cout);
  auto const bytes = std::max(std::size_t{1} << 30, 8 * machine.cache);
  DeviceArray<std::uint32_t> from(bytes / 4), to(bytes / 4);
  fill_scores<cuda::detail::Float32>(from.data(), static_cast<std::int64_t>(from.size()), 1, 5);
  auto const copy = machine.timer(1, [&](int, cudaStream_t stream) {
    cuda::check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  });
  Record("copy").add("bytes", 2 * bytes).add("cold", copy).write(std::cout);
  machine.empty = empty.median, machine.copy = static_cast<double>(2 * bytes) / copy.median;
}

/// The device's name and numbers.
inline void describe(cudaDeviceProp const& device) {
  int driver = 0, runtime = 0;
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  Record("device")
      .add("device", device.name)
      .add("processors", device.multiProcessorCount)
      .add("cache", device.l2CacheSize)
      .add("memory", device.totalGlobalMem)
      .add("capability", std::to_string(device.major) + "." + std::to_string(device.minor))
      .add("driver_cuda", driver)
      .add("runtime_cuda", runtime)
      .write(std::cout);
}

/// \param cases   cases(which): the cases to measure, the most informative first
/// \param record  record(name, case): the beginning of a line of JSON
/// \param run     run(machine, case): measures it
template <class Cases, class MakeRecord, class Run>
int measure(std::string const& which, double seconds, Cases const& cases, MakeRecord const& record, Run const& run) {
  auto const began = std::chrono::steady_clock::now();
  int count = 0;
  auto const status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    std::cout << "SKIPPED: there is no device (" << cudaGetErrorString(status) << "); nothing was measured\n";
    return 3;
  }
  cudaDeviceProp device{};
  cuda::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  describe(device);
  Machine machine;
  machine.processors = device.multiProcessorCount, machine.rings = device.major >= 9;
  machine.cache = static_cast<std::size_t>(std::max(device.l2CacheSize, 1 << 20));
  time_limits(machine);
  auto late = false;
  for (auto const& one : cases(which)) {
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - began;
    if (spent.count() > seconds) {
      late = true;
      record("left out", one).add("error", "no time was left").write(std::cout);
      continue;
    }
    run(machine, one);
  }
  return machine.wrong ? 1 : late ? 4 : 0;
}

/// The body of main(); parameters as for measure().
template <class Cases, class MakeRecord, class Run>
int run_program(char const* name, int argc, char** argv, Cases const& cases, MakeRecord const& record, Run const& run) {
  std::string which = "usual";
  auto seconds = std::numeric_limits<double>::infinity();
  std::span const arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  try {
    auto list = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      std::string const argument = arguments[i];
      auto const value = [&]() -> std::string {
        if (i + 1 == arguments.size()) throw std::invalid_argument(argument + ": a value is missing");
        return arguments[++i];
      };
      if (argument == "--shapes") which = value();
      else if (argument == "--seconds") seconds = std::stod(value());
      else if (argument == "--list") list = true;
      else throw std::invalid_argument("what is " + argument + "?");
    }
    if (which != "smoke" && which != "usual" && which != "all")
      throw std::invalid_argument("--shapes: smoke, usual or all, not " + which);
    check_the_check();
    if (!list) return measure(which, seconds, cases, record, run);
    for (auto const& one : cases(which)) record("shape", one).write(std::cout);
    return 0;
  } catch (std::invalid_argument const& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 2;
  } catch (std::exception const& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace sluice::bench
