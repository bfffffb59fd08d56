// SPDX-License-Identifier: Apache-2.0
/// \file
/// CtcStream: a model over frames that come while they are decoded, and FrameStream, its source. Endpoint: where an utterance
/// is over, although frames go on.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/ctc_frames.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

class CtcStream;

/// When a search over frames ends an utterance by itself, for sound that does not end. Each rule is a number of frames; 0: off. They look
/// at the best hypothesis, after every frame, so where an utterance ends does not depend on how its frames come. The rules of Kaldi's
/// online endpoint detection (and of sherpa-onnx: rule1, rule2, rule3) with silence counted in frames without a token.
struct Endpoint {
  std::int32_t silence = 0;  ///< so many frames since its last token ended
  std::int32_t nothing = 0;  ///< so many frames, and it has no token
  std::int32_t longest = 0;  ///< so many frames at most

  bool on() const { return silence > 0 || nothing > 0 || longest > 0; }
  void check() const {
    require(silence >= 0, "endpoint.silence", silence, "must not be negative");
    require(nothing >= 0, "endpoint.nothing", nothing, "must not be negative");
    require(longest >= 0, "endpoint.longest", longest, "must not be negative");
  }
  /// \param frames  of the utterance so far
  /// \param end     of the last token: the frame after its last; 0: there is no token
  bool reached(std::int32_t frames, std::int32_t end) const {
    return (longest > 0 && frames >= longest) || (end > 0 && silence > 0 && frames - end >= silence) ||
           (end == 0 && nothing > 0 && frames >= nothing);
  }
};

/// The source of a CtcStream: frames that have come, and whether more will come. Begins without frames; give it to a request, then append to
/// the request. Copies are the same stream: several requests may read it, each from its first frame on and at its own pace, if they begin
/// before frames are forgotten. While requests of one model read it, those of another (a second Server's, say) are refused. It belongs to
/// the thread that steps: with a Server, do not ask it anything while a request reads it.
class FrameStream {
 public:
  std::int32_t length() const { return held_->length; }  ///< frames that have come
  bool over() const { return held_->over; }              ///< nothing more will come

 private:
  friend class CtcStream;
  struct Held {
    std::vector<float> numbers{};                     // [length - first, V]
    std::atomic<std::int32_t> first = 0, length = 0;  // those before `first` are forgotten
    std::atomic<bool> over = false;
    struct Reader {
      std::weak_ptr<std::int32_t const> read{};  // how many frames
      CtcStream const* model = nullptr;
    };
    std::vector<Reader> readers{};
    std::mutex mutex{};  // of start and append, which another model's thread may call
  };
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

/// CtcFrames for sound and pictures that come while they are decoded: frames are appended to running requests (Decoder::append,
/// Server::append). The result is that of the whole at once, bit for bit, however the frames are cut into pieces.
///
/// Frames that all requests of a stream have read are forgotten, all but the last 1,024, so what a request holds does not grow with its
/// frames. A request that begins later, or again, is refused: give it rest(). It may have 2^31 - 1 of them. A frame is copied once when it comes, and once in a step of several sentences. For searches that wait for more and
/// need one slot, as CtcBeamSearch does.
class CtcStream {
 public:
  using Source = FrameStream;
  static constexpr Abilities abilities{.ragged = true, .blocks = true};

  /// \param size   labels, the blank among them: the columns of all frames
  /// \param blank  the label that means "nothing here"
  /// \param kind   what the numbers are
  /// \throws std::invalid_argument  for a blank outside the vocabulary
  explicit CtcStream(std::int32_t size, Token blank = 0, Kind kind = Kind::logits)
      : vocabulary_(ctc_vocabulary(size, blank)), kind_(kind) {}

  Vocabulary const& vocabulary() const { return vocabulary_; }
  std::int32_t source_length(FrameStream const& stream) const { return stream.over() ? stream.length() : -1; }
  SourceGrowth growth(FrameStream const& stream) const { return {stream.length(), stream.over()}; }

  /// Adds frames, [any, V].
  /// \param last  whether nothing more will come
  /// \throws std::invalid_argument  for frames of another number of labels, or after the last, and for a stream that another model reads
  SLUICE_LAZY void append(FrameStream& stream, MatrixView<float const> const& frames, bool last = false) const {
    auto const size = std::ptrdiff_t{vocabulary_.size};
    auto& held = *stream.held_;
    std::scoped_lock const lock(held.mutex);
    require_own(held);
    if (frames.rows != 0 && frames.columns != size)  // no message is made while all is well
      require(false, "frames.columns", frames.columns, "must be the number of labels, " + std::to_string(size));
    require(!held.over, "frames", frames.rows, "nothing may come after the last frame");
    require(frames.rows <= std::ptrdiff_t{(std::numeric_limits<std::int32_t>::max)() - held.length}, "frames",
            frames.rows, "are more than a request can hold");
    forget(held);
    for (std::ptrdiff_t i = 0; i < frames.rows; ++i) {
      auto const* const line = frames.data + i * frames.stride;
      held.numbers.insert(held.numbers.end(), line, line + size);
    }
    held.length += static_cast<std::int32_t>(frames.rows), held.over = last;
  }
  /// The same for numbers that the call holds, [any, V]: for Server::append.
  SLUICE_LAZY void append(FrameStream& stream, std::vector<float> const& numbers, bool last = false) const {
    auto const size = std::ptrdiff_t{vocabulary_.size};
    require(std::ssize(numbers) % size == 0, "frames", std::to_string(numbers.size()) + " numbers",
            "must be a multiple of the number of labels, " + std::to_string(size));
    append(stream, MatrixView<float const>{numbers.data(), std::ssize(numbers) / size, size, size}, last);
  }
  /// The frames from `begin` on as a stream of its own: for the next request where an endpoint has ended one (Result::frames).
  /// \throws std::invalid_argument  for frames that have not come, or are forgotten
  SLUICE_LAZY FrameStream rest(FrameStream const& stream, std::int32_t begin) const {
    auto const& held = *stream.held_;
    require(begin >= held.first && begin <= held.length, "begin", begin,
            "must be between " + std::to_string(held.first) + " and " + std::to_string(held.length));
    FrameStream next;
    next.held_->numbers.assign(held.numbers.begin() + offset(begin - held.first), held.numbers.end());
    next.held_->length = held.length - begin, next.held_->over = held.over.load();
    return next;
  }

  /// \throws std::invalid_argument  for a stream whose first frames are forgotten, or that another model reads
  SLUICE_LAZY void start(std::span<FrameStream const* const> sources, std::span<Slot const> slot_numbers) {
    for (auto const* source : sources) {
      std::scoped_lock const lock(source->held_->mutex);
      require_own(*source->held_);
      require(source->held_->first == 0, "stream", "its first " + std::to_string(source->held_->first) + " frames",
              "are forgotten: they have been read. Give it CtcStream::rest()");
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const slot = static_cast<std::size_t>(slot_numbers[i]);
      if (slot >= slots_.size()) slots_.resize(slot + 1);
      auto& held = *sources[i]->held_;
      Reading reading{sources[i]->held_, std::make_shared<std::int32_t>(0)};
      std::scoped_lock const lock(held.mutex);
      require_own(held);
      std::erase_if(held.readers, [](auto const& one) { return one.read.expired(); });
      held.readers.push_back({reading.read, this});
      slots_[slot] = std::move(reading);
    }
  }
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers)
      if (static_cast<std::size_t>(slot) < slots_.size()) slots_[static_cast<std::size_t>(slot)] = {};
  }

  /// \throws std::invalid_argument  for a row beyond the last frame that has come, or of frames that are forgotten
  /// \throws std::logic_error       for a search that forks a slot
  SLUICE_LAZY Scores<float> step(std::span<Row const> rows) {
    auto const size = std::ptrdiff_t{vocabulary_.size};
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      if (row.from != row.to)
        throw std::logic_error("sluice: CtcStream: a search forks a slot, and frames that are read are forgotten");
      auto const& [stream, read] = slots_[static_cast<std::size_t>(row.to)];
      auto const end = std::int64_t{row.length} + std::ssize(row.tokens);
      if (end > stream->length) require(false, "frame", end, "only " + std::to_string(stream->length) + " have come");
      if (end - row.lines < stream->first)
        require(false, "frame", end - row.lines, "the first " + std::to_string(stream->first) + " are forgotten");
      *read = static_cast<std::int32_t>(end), lines += row.lines;
    }
    auto const from = [&](Row const& row) {
      auto const& [stream, read] = slots_[static_cast<std::size_t>(row.to)];
      return stream->numbers.data() + offset(*read - row.lines - stream->first);
    };
    if (rows.size() == 1) return scores(from(rows[0]), lines, size, kind_);
    lines_.resize(static_cast<std::size_t>(lines * size));
    auto* line = lines_.data();
    for (auto const& row : rows) line = std::copy_n(from(row), row.lines * size, line);
    return scores(lines_.data(), lines, size, kind_);
  }

 private:
  std::ptrdiff_t offset(std::int32_t frames) const { return std::ptrdiff_t{frames} * vocabulary_.size; }
  /// What a slot reads, and how many frames of it it has read.
  struct Reading {
    std::shared_ptr<FrameStream::Held> stream{};
    std::shared_ptr<std::int32_t> read{};
  };

  void require_own(FrameStream::Held const& held) const {
    for (auto const& one : held.readers)
      if (one.model != this && !one.read.expired())
        require(false, "stream", "one that another model reads", "must be free: its requests have to end first");
  }
  /// Drops what all have read, if that is more than is left: each frame is moved once at most, on the average.
  void forget(FrameStream::Held& held) const {
    constexpr std::int32_t keep = 1024;
    auto read = held.length.load();
    auto any = false;
    for (auto const& one : held.readers)
      if (auto const reader = one.read.lock()) read = (std::min)(read, *reader), any = true;
    if (!any) return;
    auto const old = read - keep - held.first;
    if (old < keep || old < held.length - held.first - old) return;
    held.numbers.erase(held.numbers.begin(), held.numbers.begin() + offset(old));
    held.first += old;
  }

  Vocabulary vocabulary_;
  Kind kind_;
  std::vector<Reading> slots_;
  std::vector<float> lines_;  // [lines, V]
};

}  // namespace sluice::inline v0
