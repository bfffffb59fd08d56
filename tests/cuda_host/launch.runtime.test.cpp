// SPDX-License-Identifier: Apache-2.0
// Kernels that may start early: where device and code allow it, and where they do not (support/host_cuda).
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>

#include <support/catch.hpp>

#include <cuda_runtime.h>

using namespace sluice;
using namespace sluice::test;

namespace {

void increment(int* const number) { ++*number; }
void twice(int* const number) { *number *= 2; }

}  // namespace

TEST_CASE("a kernel starts early where it was asked to and its code can wait", "[cuda]") {
  auto& machine = HostCuda::get();
  auto const before = machine.use;
  int number = 0;
  cuda::detail::launch<increment>(1, 32, nullptr, cuda::detail::Start::after, "increment", &number);
  CHECK(machine.use.codes_asked == before.codes_asked);  // nobody needs to know
  cuda::detail::launch<increment>(1, 32, nullptr, cuda::detail::Start::early, "increment", &number);
  cuda::detail::launch<increment>(1, 32, nullptr, cuda::detail::Start::early, "increment", &number);
  CHECK(machine.use.early_starts == before.early_starts + 2);
  CHECK(machine.use.codes_asked == before.codes_asked + 1);  // once a kernel and device
  cuda::detail::launch<increment>(1, 32, nullptr, cuda::detail::Start::after, "increment", &number);
  CHECK(machine.use.early_starts == before.early_starts + 2);

  machine.device = 1, machine.code_version = 80;  // code for sm_80, which may run on a newer device
  cuda::detail::launch<increment>(1, 32, nullptr, cuda::detail::Start::early, "increment", &number);
  CHECK(machine.use.early_starts == before.early_starts + 2);
  cuda::detail::launch<twice>(1, 32, nullptr, cuda::detail::Start::early, "twice", &number);
  CHECK(machine.use.early_starts == before.early_starts + 2);
  machine.device = 0, machine.code_version = 90;
  cuda::detail::launch<twice>(1, 32, nullptr, cuda::detail::Start::early, "twice", &number);
  CHECK(machine.use.early_starts == before.early_starts + 3);
  CHECK(machine.use.wrong_starts == before.wrong_starts);
  CHECK(number == 0);
  machine.wait();
  CHECK(number == 20);
}

TEST_CASE("a launch may ask for clusters, and start early beside", "[cuda]") {
  auto& machine = HostCuda::get();
  auto const early = machine.use.early_starts;
  int number = 0;
  using cuda::detail::Start;
  cuda::detail::launch<increment>(1, 32, nullptr, Start::after, "increment", &number);
  cuda::detail::launch<increment>(cuda::detail::Blocks{8, 4}, 32, nullptr, Start::early, "increment", &number);
  CHECK(machine.use.of_cluster == 4);
  CHECK(machine.use.early_starts == early + 1);
  CHECK_THROWS_AS(
      cuda::detail::launch<increment>(cuda::detail::Blocks{6, 4}, 32, nullptr, Start::after, "increment", &number),
      cuda::Error);
  machine.wait();
  CHECK(number == 2);
}

TEST_CASE("a launch that is refused is an error", "[cuda]") {
  int number = 0;
  CHECK_THROWS_AS(cuda::detail::launch<increment>(0, 32, nullptr, cuda::detail::Start::after, "increment", &number),
                  cuda::Error);
}
