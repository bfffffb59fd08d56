// SPDX-License-Identifier: Apache-2.0
/// \file
/// The part of the CUDA runtime that our host code calls, in host memory. Work added to a stream is done when the
/// program waits for it, and not before. For tests on machines without CUDA; it is found in place of the real header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorUnknown
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount, cudaDevAttrL2CacheSize };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDisableTiming = 2;
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

namespace sluice::test {

/// How the program has used the device so far.
struct DeviceUse {
  std::size_t allocations = 0, copies_there = 0, copies_back = 0, bytes_back = 0, line_launches = 0, merge_launches = 0;
  std::size_t ring_launches = 0;     ///< of the line_launches, those that read through rings
  std::size_t cluster_launches = 0;  ///< and those whose blocks of a line are a cluster
  unsigned of_cluster = 0;           ///< blocks of the last cluster that was launched
  std::size_t never_written = 0;     ///< words copied back that were never written
  std::size_t bytes_told = 0;        ///< bytes that kernels wrote to host memory
  std::size_t kernels = 0;           ///< in the main stream, of ours that await_earlier()
  std::size_t early_starts = 0;      ///< of kernels directly after one of ours
  std::size_t wrong_starts = 0;      ///< and of kernels after anything else
  std::size_t codes_asked = 0;       ///< calls of cudaFuncGetAttributes
  std::size_t waits = 0;             ///< for the main stream
  std::size_t broken_captures = 0;   ///< calls that would have ended another thread's capture
};

/// The main stream, and what tests want to know. Streams that the program creates do their work immediately and do not
/// wait for the main one, unless a test asks for one that runs beside it.
struct HostCuda {
  std::vector<std::function<void()>> stream;
  std::vector<std::function<void()>> late;  ///< writes by cudaMemcpy that have not reached the device yet
  DeviceUse use;
  int processors = 4, second_level_cache = 3 << 20;
  int ring_blocks = 2;          ///< blocks that can read through rings at once on a multiprocessor; 0: the device is
                                ///< too old
  int device = 0;               ///< the current one
  int code_version = 90;        ///< the architecture for which its kernels were compiled
  bool no_page_locked = false;  ///< memory that kernels can write on the host is exhausted
  bool capturing = false;       ///< work added to the main stream goes into a graph
  bool others_capture = false;  ///< another thread's stream is captured, in the usual mode
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

  static HostCuda& get() {
    static HostCuda machine;
    return machine;
  }
  void add(std::function<void()> work) {
    stream.push_back(std::move(work));
    behind_kernel = false;
  }
  /// Adds one of our kernels that await_earlier().
  /// \param early  may start while the work added last is still running
  void add_kernel(cudaStream_t to, bool early, std::function<void()> work) {
    if (to == nullptr) return add_kernel(early, std::move(work));
    if (early) ++use.wrong_starts;
    add(to, std::move(work));
  }
  void add_kernel(bool early, std::function<void()> work) {
    if (early) ++(behind_kernel ? use.early_starts : use.wrong_starts);
    add(std::move(work));
    behind_kernel = true, ++use.kernels;
  }
  bool behind_kernel = false;  ///< the last work added was such a kernel
  void wait() {
    for (auto const& work : std::exchange(stream, {})) work(), tell(), go_beside();
  }
  /// Does the work immediately in a stream of the program's own; otherwise when the program waits.
  void add(cudaStream_t to, std::function<void()> work) {
    if (to == nullptr) add(std::move(work));
    else if (has_beside) beside.push_back({std::move(work), {}});
    else work(), tell();
  }

  // The work of a stream that the program creates. It may be slow, fast or mixed; only events order it relative to the
  // main stream.
  struct Work {
    std::function<void()> run;
    std::function<bool()> ready;  ///< none: always
  };
  enum class Haste { none, most, some };
  bool has_beside = false;  ///< whether there is one
  Haste haste = Haste::none;
  std::deque<Work> beside;
  std::uint64_t random = 1;
  std::map<cudaEvent_t, std::uint64_t> asked, happened;  ///< how often each event was recorded, and has happened
  bool run_beside() {
    if (beside.empty() || (beside.front().ready && !beside.front().ready())) return false;
    auto const work = std::move(beside.front().run);
    beside.pop_front();
    work(), tell();
    return true;
  }
  void go_beside() {
    if (haste == Haste::none) return;
    do random = random * 6364136223846793005u + 1442695040888963407u;
    while ((haste == Haste::most || random >> 63 != 0) && run_beside());
  }
  void record(cudaEvent_t event, cudaStream_t at) {
    if (at != nullptr && !has_beside) return;
    add(at, [this, event, number = ++asked[event]] { happened[event] = number; });
  }
  void await(cudaEvent_t event, cudaStream_t at) {
    auto const come = [this, event, number = asked[event]] { return happened[event] >= number; };
    if (at != nullptr) return beside.push_back({[] {}, come});
    add([this, come] {
      while (!come() && run_beside()) {
      }
      if (!come()) std::abort();  // deadlock: each waits for the other
    });
  }
  /// Host memory as the device sees it: a kernel's writes go to the host, and other kernels do not see them.
  struct Mapped {
    unsigned char *host, *device;
    std::size_t bytes;
  };
  std::vector<Mapped> mapped;
  void tell() {
    constexpr std::uint32_t unwritten = 0xffffffff;
    for (auto const& piece : mapped)
      for (std::size_t at = 0; at + 4 <= piece.bytes; at += 4) {
        if (std::memcmp(piece.device + at, &unwritten, 4) == 0) continue;
        std::memcpy(piece.host + at, piece.device + at, 4), std::memcpy(piece.device + at, &unwritten, 4);
        use.bytes_told += 4;
      }
  }
  /// Refuses a call that may wait for other streams, while they are captured.
  bool refused() {
    if (!others_capture || mode == cudaStreamCaptureModeRelaxed) return false;
    ++use.broken_captures;
    return true;
  }
  cudaError_t allocate(void** to, std::size_t bytes) {
    if (refused()) return cudaErrorStreamCaptureUnsupported;
    ++use.allocations;
    *to = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(*to, 0xff, bytes);  // NaN, and positions outside of everything
    return cudaSuccess;
  }
  cudaError_t free(void* piece) {
    static_cast<void>(refused());
    wait();  // waits like the real one
    std::erase_if(mapped, [piece](Mapped const& one) {
      if (one.host != piece) return false;
      std::free(one.device);
      return true;
    });
    std::free(piece);
    return cudaSuccess;
  }
};

}  // namespace sluice::test

inline char const* cudaGetErrorString(cudaError_t) { return "an error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  auto const capturing = stream == nullptr && sluice::test::HostCuda::get().capturing;
  *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  return sluice::test::HostCuda::get().allocate(to, bytes);
}
template <class T>
cudaError_t cudaMalloc(T** to, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(to), bytes);
}
constexpr unsigned cudaHostAllocMapped = 2;
inline cudaError_t cudaHostAlloc(void** to, std::size_t bytes, unsigned flags) {
  auto& machine = sluice::test::HostCuda::get();
  if (machine.no_page_locked) return cudaErrorMemoryAllocation;
  auto const status = machine.allocate(to, bytes);
  if (status != cudaSuccess || flags != cudaHostAllocMapped) return status;
  auto* const device = static_cast<unsigned char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(device, 0xff, bytes);
  machine.mapped.push_back({static_cast<unsigned char*>(*to), device, bytes});
  return cudaSuccess;
}
inline cudaError_t cudaHostGetDevicePointer(void** to, void* host, unsigned) {
  for (auto const& piece : sluice::test::HostCuda::get().mapped)
    if (piece.host == host) return *to = piece.device, cudaSuccess;
  return cudaErrorInvalidValue;
}
inline cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return cudaMalloc(to, bytes); }
inline cudaError_t cudaFree(void* piece) { return sluice::test::HostCuda::get().free(piece); }
inline cudaError_t cudaFreeHost(void* piece) { return cudaFree(piece); }
inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, sluice::test::HostCuda::get().mode);
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  sluice::test::HostCuda::get().await(event, stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  static char made;  // any address will do
  *stream = reinterpret_cast<cudaStream_t>(&made);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  auto& machine = sluice::test::HostCuda::get();
  if (stream != nullptr) {
    while (machine.run_beside()) {
    }
    return cudaSuccess;
  }
  if (machine.capturing) return cudaErrorStreamCaptureUnsupported;
  ++machine.use.waits;
  machine.wait();
  return cudaSuccess;
}
/// An event has happened when everything added to the stream has been done.
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static std::deque<char> made;  // any addresses will do
  *event = reinterpret_cast<cudaEvent_t>(&made.emplace_back());
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  sluice::test::HostCuda::get().record(event, stream);
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) {
  sluice::test::HostCuda::get().wait();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  sluice::test::HostCuda::get().wait();
  for (auto const& copy : std::exchange(sluice::test::HostCuda::get().late, {})) copy();
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  auto& use = sluice::test::HostCuda::get().use;
  if (kind == cudaMemcpyHostToDevice) ++use.copies_there;
  if (kind == cudaMemcpyDeviceToHost) ++use.copies_back, use.bytes_back += bytes;
  sluice::test::HostCuda::get().add(stream, [=, &use] {
    if (kind == cudaMemcpyDeviceToHost)
      for (std::size_t at = 0; at + 4 <= bytes; at += 4)
        if (std::memcmp(static_cast<unsigned char const*>(from) + at, "\xff\xff\xff\xff", 4) == 0) ++use.never_written;
    std::memcpy(to, from, bytes);
  });
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  sluice::test::HostCuda::get().add(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
/// The worst case for memory that is not page-locked: it returns once it has read the host's memory, and the device has
/// the numbers only when the program waits for the device.
inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  auto& machine = sluice::test::HostCuda::get();
  machine.wait();
  if (bytes == 0) return cudaSuccess;
  if (kind == cudaMemcpyDeviceToHost) return std::memcpy(to, from, bytes), cudaSuccess;
  auto const* const first = static_cast<unsigned char const*>(from);
  machine.late.push_back(
      [to, read = std::vector<unsigned char>(first, first + bytes)] { std::memcpy(to, read.data(), read.size()); });
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  sluice::test::HostCuda::get().wait();
  std::memset(to, value, bytes);
  return cudaSuccess;
}

// ---- launches

#define CUDART_VERSION 13000
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned columns = 1, unsigned rows = 1, unsigned planes = 1) : x(columns), y(rows), z(planes) {}
};
enum cudaLaunchAttributeID {
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
    struct {
      unsigned x, y, z;
    } clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
struct cudaFuncAttributes {
  int ptxVersion;
};
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  auto& machine = sluice::test::HostCuda::get();
  ++machine.use.codes_asked;
  attributes->ptxVersion = machine.code_version;
  return cudaSuccess;
}
/// A "kernel" is called once, as soon as the program waits.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  auto& machine = sluice::test::HostCuda::get();
  if (config->gridDim.x == 0 || config->blockDim.x == 0) return cudaErrorInvalidValue;
  auto early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    auto const& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      early = attribute.val.programmaticStreamSerializationAllowed == 1;
    if (attribute.id != cudaLaunchAttributeClusterDimension) continue;
    auto const& cluster = attribute.val.clusterDim;
    if (machine.code_version < 90 || cluster.x == 0 || cluster.y != 1 || cluster.z != 1 || cluster.x > 8 ||
        config->gridDim.x % cluster.x != 0)
      return cudaErrorInvalidValue;
    machine.use.of_cluster = cluster.x;
  }
  machine.add_kernel(early, [=] { kernel(arguments...); });
  return cudaSuccess;
}

inline cudaError_t cudaGetDevice(int* device) { return *device = sluice::test::HostCuda::get().device, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  auto const& machine = sluice::test::HostCuda::get();
  *value = attribute == cudaDevAttrMultiProcessorCount ? machine.processors : machine.second_level_cache;
  return cudaSuccess;
}
