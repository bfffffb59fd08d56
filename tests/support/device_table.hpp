// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table as a model on a device.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/scores.cuh>

#include <support/device_memory.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace sluice::test {

/// A table whose scores are copied to the device, as if they had been computed there.
class DeviceTable : public TableModel<> {
 public:
  using TableModel<>::TableModel;

  cuda::Scores<float> step(std::span<Row const> rows) {
    auto const host = TableModel<>::step(rows);
    auto const size = static_cast<std::size_t>(host.rows * host.columns);
    memory_ = std::make_unique<OnDevice<float>>(std::vector<float>(host.data, host.data + size));
    return cuda::scores<float>(memory_->data(), host.rows, host.columns);
  }

 private:
  std::unique_ptr<OnDevice<float>> memory_;
};

}  // namespace sluice::test
