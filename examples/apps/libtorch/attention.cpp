// SPDX-License-Identifier: Apache-2.0
#include <libtorch/attention.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace sluice::example {

void Upload::send(at::Device device) {
  auto const to_gpu = !device.is_cpu();
  auto const host = at::empty({std::ssize(numbers_)}, at::TensorOptions(at::kLong).pinned_memory(to_gpu));
  std::ranges::copy(numbers_, host.data_ptr<std::int64_t>());
  sent_ = host.to(device, at::kLong, to_gpu);  // torch keeps pinned memory until the copy is done
}

Layout::Layout(std::span<std::int64_t const> slots, std::span<std::int64_t const> limits, Upload& upload) {
  auto const [least, most] = std::ranges::minmax(slots);
  first_ = least;
  auto const range = most - first_ + 1;
  std::vector<std::int64_t> count(static_cast<std::size_t>(range)), chosen;  // by slot: queries
  for (auto const slot : slots) width_ = std::max(width_, ++count[static_cast<std::size_t>(slot - first_)]);
  auto const distinct = range - std::ranges::count(count, 0);
  auto const sparse = range > 2 * distinct;
  slots_ = sparse ? distinct : range;
  std::vector<std::int64_t> place(count.size());  // by slot: of its next query
  for (std::int64_t i = 0; i < range; ++i) {
    place[static_cast<std::size_t>(i)] = (sparse ? std::ssize(chosen) : i) * width_;
    if (sparse && count[static_cast<std::size_t>(i)] > 0) chosen.push_back(first_ + i);
  }
  std::vector<std::int64_t> spread(static_cast<std::size_t>(slots_ * width_)), gather(slots.size());
  std::vector<std::int64_t> seen(spread.size(), 1);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto& next = place[static_cast<std::size_t>(slots[i] - first_)];
    auto const query = static_cast<std::int64_t>(i);
    // A slot's first query in its other places too, until they are taken: another slot's may be no number.
    if (next % width_ == 0) std::fill_n(spread.begin() + next, width_, query);
    spread[static_cast<std::size_t>(next)] = query;
    seen[static_cast<std::size_t>(next)] = limits[i];
    gather[i] = next++;
  }
  length_ = *std::ranges::max_element(limits);
  auto in_order = std::ssize(slots) == slots_ * width_;
  for (std::size_t i = 0; in_order && i < gather.size(); ++i) in_order = gather[i] == static_cast<std::int64_t>(i);
  if (!in_order) spread_part_ = upload.add(spread), gather_part_ = upload.add(gather);
  if (sparse) chosen_part_ = upload.add(chosen);
  limits_part_ = upload.add(seen);
}

void Layout::receive(Upload const& upload) {
  if (chosen_part_.size > 0) chosen_ = upload[chosen_part_];
  if (spread_part_.size > 0) spread_ = upload[spread_part_], gather_ = upload[gather_part_];
  auto const limits = upload[limits_part_].view({slots_, 1, width_, 1});
  hidden_ = at::arange(length_, limits.options()).view({1, 1, 1, length_}).ge(limits);
}

at::Tensor Layout::spread(at::Tensor const& rows) const {
  return spread_.defined() ? rows.index_select(0, spread_) : rows;
}

/// What all queries together may see, [slots * heads, length, size].
at::Tensor Layout::seen(at::Tensor const& cache) const {
  auto const part = cache.narrow(2, 0, length_);
  return (chosen_.defined() ? part.index_select(0, chosen_) : part.narrow(0, first_, slots_)).flatten(0, 1);
}

at::Tensor Layout::attend(at::Tensor const& queries, at::Tensor const& keys, at::Tensor const& values) const {
  auto const heads = keys.size(1), size = keys.size(3);
  auto const laid_out =
      spread(queries).reshape({slots_, width_, heads, size}).transpose(1, 2).reshape({slots_ * heads, width_, size});
  auto const scores = at::bmm(laid_out, seen(keys).transpose(1, 2));
  scores.view({slots_, heads, width_, length_}).masked_fill_(hidden_, -std::numeric_limits<double>::infinity());
  auto const attended = at::bmm(scores.softmax(-1), seen(values))
                            .view({slots_, heads, width_, size})
                            .transpose(1, 2)
                            .reshape({slots_ * width_, heads * size});
  return gather_.defined() ? attended.index_select(0, gather_) : attended;
}

}  // namespace sluice::example
