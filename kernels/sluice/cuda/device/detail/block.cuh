// SPDX-License-Identifier: Apache-2.0
/// \file
/// A block of threads on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// The few machine operations that kernels need; the tests replace it by an emulated one.
/// \tparam producers_  threads behind these that take part in no barrier but sync_all(): whole warps
template <int threads_, int producers_ = 0>
struct DeviceBlock {
  static constexpr int threads = threads_;
  static constexpr int producers = producers_;
  static constexpr int warps = threads / 32;

  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x % 32); }
  __device__ __forceinline__ int warp() const { return static_cast<int>(threadIdx.x / 32); }

  __device__ __forceinline__ void sync(Barrier) {
    if constexpr (producers == 0) __syncthreads();
    else asm volatile("bar.sync 1, %0;" : : "n"(threads) : "memory");  // 0 is __syncthreads()
  }
  /// Waits for the producers, too.
  __device__ __forceinline__ void sync_all(Barrier) { __syncthreads(); }
  __device__ __forceinline__ void sync_warp(Barrier) { __syncwarp(); }
  /// Brings the lanes of a warp together, without an exchange of memory.
  __device__ __forceinline__ void converge() { __syncwarp(); }
  /// The value of the lane whose number differs in the bit `distance` (a warp shuffle).
  template <class Value>
  __device__ __forceinline__ Value exchange(Value value, int distance) {
    return __shfl_xor_sync(0xffffffffu, value, distance);
  }
  /// The largest of the lanes' values (redux.sync).
  __device__ __forceinline__ std::uint32_t largest(std::uint32_t value) {
    return __reduce_max_sync(0xffffffffu, value);
  }
  /// One bit per lane.
  __device__ __forceinline__ std::uint32_t ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }

  /// sums += A B on the warp's matrix unit, for 16 x 16 and 16 x 8 numbers of 16 bits: mma.m16n8k16; each lane holds
  /// the parts that the PTX ISA gives (9.7.14.5.8). Products are exact; the order and rounding of the sum depend on the
  /// device.
  template <class Format>
  __device__ __forceinline__ void multiply_add(float (&sums)[4], std::uint32_t const (&a)[4],
                                               std::uint32_t const (&b)[2]) {
#define SLUICE_MULTIPLY_ADD(type)                                                                                      \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                                          \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                       \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    static_assert(std::is_same_v<Format, Float16> || std::is_same_v<Format, BFloat16>);
    if constexpr (std::is_same_v<Format, Float16>) SLUICE_MULTIPLY_ADD("f16");
    else SLUICE_MULTIPLY_ADD("bf16");
#undef SLUICE_MULTIPLY_ADD
  }

  // Shared memory.
  __device__ __forceinline__ int add(int* counter, int n) { return atomicAdd(counter, n); }
  __device__ __forceinline__ void set(std::uint32_t* word, std::uint32_t bits) { atomicOr(word, bits); }

  // Memory that no block writes.
  __device__ __forceinline__ Words read16(void const* from) const {
    auto const v = __ldg(static_cast<uint4 const*>(from));
    return {{v.x, v.y, v.z, v.w}};
  }
  template <class Value>
  __device__ __forceinline__ Value read(Value const* from) const {
    return __ldg(from);
  }

  // Memory that no other thread reads or writes.
  __device__ __forceinline__ void write16(void* to, Words const& words) {
    *static_cast<uint4*>(to) = make_uint4(words.word[0], words.word[1], words.word[2], words.word[3]);
  }

  // Data exchanged between blocks, bypassing the L1 caches. Needs a barrier and a fence between store() and a ticket, a
  // fence and a barrier between a ticket and load(). Does what __stcg does, which Clang 22 lacks.
  __device__ __forceinline__ void store(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.global.cg.u64 [%0], %1;" : : "l"(to), "l"(value) : "memory");
  }
  __device__ __forceinline__ void store(PartialSum* to, PartialSum value) {
    asm volatile("st.global.cg.v2.f32 [%0], {%1, %2};" : : "l"(to), "f"(value.maximum), "f"(value.sum) : "memory");
  }
  __device__ __forceinline__ void store(float* to, float value) {
    asm volatile("st.global.cg.f32 [%0], %1;" : : "l"(to), "f"(value) : "memory");
  }
  /// The same for any 4 * n bytes, a word at a time.
  template <class Value>
  __device__ __forceinline__ void store(Value* to, Value const& value) {
    static_assert(sizeof(Value) % 4 == 0 && alignof(Value) == 4);
    constexpr int words = sizeof(Value) / 4;
    struct Words4 {
      unsigned word[words];
    };
    auto const all = __builtin_bit_cast(Words4, value);
#pragma unroll
    for (int i = 0; i < words; ++i)
      asm volatile("st.global.cg.u32 [%0], %1;"
                   :
                   : "l"(reinterpret_cast<unsigned*>(to) + i), "r"(all.word[i])
                   : "memory");
  }
  __device__ __forceinline__ float load(float const* from) { return __ldcg(from); }
  __device__ __forceinline__ std::uint64_t load(std::uint64_t const* from) {
    return __ldcg(reinterpret_cast<unsigned long long const*>(from));
  }
  __device__ __forceinline__ PartialSum load(PartialSum const* from) {
    auto const v = __ldcg(reinterpret_cast<float2 const*>(from));
    return {v.x, v.y};
  }
  __device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }
  /// Returns how many tickets came before; after `last`, it starts from 0 again.
  __device__ __forceinline__ unsigned ticket(unsigned* counter, unsigned last) { return atomicInc(counter, last); }

  // Blocks of a cluster, which write to the shared memory of its first one; sm_90 and newer. PTX ISA,
  // "barrier.cluster", "mapa". Every thread calls these, in this order.
  __device__ __forceinline__ void arrive_cluster(Barrier) {
    asm volatile("barrier.cluster.arrive.relaxed;" : : : "memory");
  }
  __device__ __forceinline__ void wait_cluster(Barrier) {
    asm volatile("barrier.cluster.wait.acquire;" : : : "memory");
  }
  __device__ __forceinline__ void sync_cluster(Barrier) {
    asm volatile("barrier.cluster.arrive.release;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire;" : : : "memory");
  }
  /// Stores at the same place of the first block's memory.
  __device__ __forceinline__ void store_first(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.shared::cluster.u64 [%0], %1;" : : "r"(of_first(to)), "l"(value) : "memory");
  }
  __device__ __forceinline__ void store_first(PartialSum* to, PartialSum value) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};"
                 :
                 : "r"(of_first(to)), "f"(value.maximum), "f"(value.sum)
                 : "memory");
  }

  // Shared memory filled by bulk copies, and the mbarriers on which they complete; sm_90 and newer. The `which` of a
  // wait is for tests, as for sync(). PTX ISA, "cp.async.bulk", "mbarrier".
  /// Called by one thread; then publish_mbarriers(), then sync().
  __device__ __forceinline__ void init_mbarrier(std::uint64_t* mbarrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared(mbarrier)), "r"(arrivals) : "memory");
  }
  /// Makes this thread's initialised mbarriers visible to copies.
  __device__ __forceinline__ void publish_mbarriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  }
  __device__ __forceinline__ void arrive(Barrier, std::uint64_t* mbarrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared(mbarrier)) : "memory");
  }
  /// The phase then ends only after so many bytes have arrived, too.
  __device__ __forceinline__ void arrive_expecting(std::uint64_t* mbarrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(shared(mbarrier)), "r"(bytes)
                 : "memory");
  }
  /// Waits until the phase of this parity has ended.
  __device__ __forceinline__ void wait(Barrier, std::uint64_t* mbarrier, unsigned parity) {
    for (unsigned ended = 0; ended == 0;)
      asm volatile("{\n"
                   ".reg .pred ended;\n"
                   "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                   "selp.u32 %0, 1, 0, ended;\n"
                   "}"
                   : "=r"(ended)
                   : "r"(shared(mbarrier)), "r"(parity)
                   : "memory");
  }
  /// Orders other threads' reads, known to be complete through wait(), before a copy that overwrites the data.
  __device__ __forceinline__ void order_copies() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
  /// Enqueues a copy to shared memory; addresses and bytes (> 0) are multiples of 16.
  __device__ __forceinline__ void copy_bulk(void* to, void const* from, unsigned bytes, std::uint64_t* mbarrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :
                 : "r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared(mbarrier))
                 : "memory");
  }
  /// Reads what a copy has delivered.
  __device__ __forceinline__ Words read_stage(void const* from) const {
    auto const v = *static_cast<uint4 const*>(from);
    return {{v.x, v.y, v.z, v.w}};
  }

  __device__ __forceinline__ static float exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
  __device__ __forceinline__ static float log(float x) { return logf(x); }

 private:
  __device__ __forceinline__ static unsigned shared(void const* at) {
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
  }
  __device__ __forceinline__ static unsigned of_first(void const* at) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(shared(at)));
    return there;
  }
};

}  // namespace sluice::inline v0::cuda::detail
