// SPDX-License-Identifier: Apache-2.0
#include <sluice/cuda/device/detail/score_format.cuh>

#include <algorithm>
#include <cstddef>
#include <device_array.hpp>
#include <memory>
#include <peer.hpp>
#include <string>
#include <thread_lists.cuh>
#include <utility>

namespace sluice::bench {

namespace {

template <class Format, int size>
Peer online(Shape const& shape, Place place) {
  Peer peer{"online softmax, a list per thread (" + std::to_string(size) + ")"};
  peer.work = [shape, place](void const* scores, cudaStream_t stream) {
    launch_online_softmax<Format, size>(static_cast<typename Format::Bits const*>(scores), place.bias, shape.rows,
                                        shape.columns, shape.k, place.best, stream);
  };
  return peer;
}

template <class Format, int size>
Peer parts(Shape const& shape, Place place, bool third) {
  using Lists = ThreadLists<Format, size>;
  auto const rows = static_cast<std::size_t>(shape.rows);
  auto const count = static_cast<std::size_t>(Lists::parts(shape.rows, place.processors));
  auto const workspace = std::make_shared<DeviceArray<typename Lists::Part>>(rows * count);
  auto const merged = std::make_shared<DeviceArray<Candidate>>(rows * static_cast<std::size_t>(shape.k));
  auto const beams = third ? std::max(shape.beams, 1) : 0;
  Peer peer{(third ? "lists per thread, three launches (" : "lists per thread, two launches (") + std::to_string(size) +
            ")"};
  peer.launches = third ? 3 : 2;
  peer.workspace = workspace->bytes();
  peer.work = [=](void const* scores, cudaStream_t stream) {
    Lists::launch(static_cast<typename Format::Bits const*>(scores), place.bias, shape.rows, shape.columns, shape.k,
                  beams, place.processors, workspace->data(), place.best, merged->data(), stream);
  };
  return peer;
}

/// The instance for a list of `wanted`, if there is one.
template <class Format, int... sizes, class Make>
std::optional<Peer> smallest(int wanted, std::integer_sequence<int, sizes...>, Make const& make) {
  std::optional<Peer> peer;
  static_cast<void>(((wanted <= sizes && (peer = make.template operator()<Format, sizes>(), true)) || ...));
  return peer;
}

template <class Make>
std::optional<Peer> instance(Type type, int wanted, Make const& make) {
  using cuda::detail::BFloat16, cuda::detail::Float32;
  if (type == Type::float32)
    return smallest<Float32>(wanted, std::integer_sequence<int, 1, 2, 8, 16, 32, 64, 128>(), make);
  if (type == Type::bfloat16) return smallest<BFloat16>(wanted, std::integer_sequence<int, 1, 2, 8, 16>(), make);
  return {};
}

}  // namespace

std::optional<Peer> online_softmax(Shape const& shape, Place place) {
  return instance(shape.type, shape.k, [&]<class Format, int size>() -> std::optional<Peer> {
    if constexpr (size == 2 || size == 32 || size == 128) return {};
    else return online<Format, size>(shape, place);
  });
}

std::optional<Peer> thread_lists(Shape const& shape, Place place, bool twice) {
  // Beams of 1, 8, 16 and 64, as in a program compiled for a few sizes.
  auto const beam = shape.k <= 1 ? 1 : shape.k <= 8 ? 8 : shape.k <= 16 ? 16 : 64;
  return instance(shape.type, twice ? 2 * beam : beam, [&]<class Format, int size>() -> std::optional<Peer> {
    return parts<Format, size>(shape, place, twice);
  });
}

}  // namespace sluice::bench
