// SPDX-License-Identifier: Apache-2.0
// CompiledProjection: the best of the shared objects beside the library that the processor runs, or what the library was compiled for.
#include "projection_of.hpp"

#include <memory>
#include <span>

#ifdef SLUICE_PLUGINS
#include <array>
#include <cpuid.h>
#include <dlfcn.h>
#include <string>
#endif

namespace sluice::inline v0::detail {

#ifdef SLUICE_PLUGINS  // the folder, relative to that of the library

namespace {

using Make = AnyProjection*(MatrixView<float const> const&, float const*, std::size_t, Precision);

struct Processor {
  bool avx2_vnni = false, avx512_vnni = false, avx512_bf16 = false, amx = false;

  Processor() {
    __builtin_cpu_init();  // what it supports includes that the kernel saves its registers
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return;
    auto const has = [](unsigned bits, int bit) { return (bits >> bit & 1u) != 0; };
    auto const tiles = has(d, 22) && has(d, 24) && has(d, 25), vnni = has(c, 11);
    auto const most = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 ? a : 0;
    auto const v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    auto const v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    avx2_vnni = v3 && has(most, 4), avx512_vnni = v4 && vnni, avx512_bf16 = avx512_vnni && has(most, 5);
    amx = avx512_bf16 && tiles;
  }
};

// How good the library itself is, by the order of plugins.
#if defined(__AMX_INT8__) && defined(__AMX_BF16__)
constexpr int own = 4;
#elif defined(__AVX512VNNI__) && defined(__AVX512BF16__)
constexpr int own = 3;
#elif defined(__AVX512VNNI__)
constexpr int own = 2;
#elif defined(__AVXVNNI__)
constexpr int own = 1;
#else
constexpr int own = 0;
#endif

/// The function of a plugin, which stays loaded; null if it is not there.
Make* load(std::string const& name) {
  Dl_info here{};
  if (dladdr(reinterpret_cast<void const*>(&make_projection), &here) == 0 || here.dli_fname == nullptr) return nullptr;
  std::string const path = here.dli_fname;
  auto const folder = path.substr(0, path.rfind('/') + 1);
  for (auto const* up : {"", "../../"}) {  // the library for a level of processors lies two folders below
    auto* const plugin = dlopen((folder + up + SLUICE_PLUGINS "/" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin != nullptr) return reinterpret_cast<Make*>(dlsym(plugin, "sluice_projection"));
  }
  return nullptr;
}

Make* best() {
  Processor const processor;
  struct Plugin {
    char const* name;
    bool runs;
    int rank;
  };
  for (auto const& one :
       std::array{Plugin{"avx512_amx", processor.amx, 4}, Plugin{"avx512_vnni_bf16", processor.avx512_bf16, 3},
                  Plugin{"avx512_vnni", processor.avx512_vnni, 2}, Plugin{"avx2_vnni", processor.avx2_vnni, 1}})
    if (one.runs && one.rank > own)
      if (auto* const make = load(one.name); make != nullptr) return make;
  return nullptr;
}

}  // namespace

std::unique_ptr<AnyProjection> make_projection(MatrixView<float const> weights, std::span<float const> bias,
                                               Precision precision) {
  static auto* const make = best();
  if (make == nullptr) return projection_of(weights, bias, precision);
  return std::unique_ptr<AnyProjection>(make(weights, bias.data(), bias.size(), precision));
}

#else

std::unique_ptr<AnyProjection> make_projection(MatrixView<float const> weights, std::span<float const> bias,
                                               Precision precision) {
  return projection_of(weights, bias, precision);
}

#endif

}  // namespace sluice::inline v0::detail
