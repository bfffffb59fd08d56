// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/results.hpp>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace translate {

namespace {

constexpr std::size_t member_size = std::size_t{1} << 20;        // of text
constexpr std::uint64_t large_journal = std::uint64_t{4} << 20;  // worth to be written anew
constexpr std::chrono::seconds between_syncs{1};

}  // namespace

Results::Results(Destination destination, std::size_t before, Say say)
    : destination_(std::move(destination)),
      say_(std::move(say)),
      before_(before),
      member_(destination_.format == Format::plain ? 0 : member_size) {
  auto const& file = destination_.file;
  if (!destination_.journal) {
    if (file.empty()) file_.emplace();
    else file_.emplace(file);
    return;
  }
  auto const journal = file.string() + ".journal";
  std::error_code none;
  if (auto const size = std::filesystem::file_size(file, none); !none && size > 0 && !std::filesystem::exists(journal))
    throw text::InputError(file.string() + ": is there, without the journal of a run with --resume; remove it");
  file_.emplace(file, true);  // locked until we are done
  journal_.emplace(journal, *destination_.journal);
  recover();
}

/// Keeps the longest beginning of the output that the journal has: after a power failure either file may be behind.
void Results::recover() {
  auto known = journal_->written();
  std::sort(known.begin(), known.end(), [](auto const& a, auto const& b) { return a.bytes < b.bytes; });
  std::vector<char> buffer(std::size_t{1} << 16);
  text::Checksum sum;
  for (auto const& record : known) {
    auto got = std::size_t{1};
    while (sum.length() < record.bytes && got > 0) {
      got = file_->read(buffer.data(), std::min<std::uint64_t>(buffer.size(), record.bytes - sum.length()));
      sum.add({buffer.data(), got});
    }
    if (sum.length() < record.bytes) break;
    if (sum.value() == record.checksum) written_ = record, sum_ = sum;
  }
  ahead_ = journal_->take_ahead();
  if (journal_->done()) {
    if (known.empty() || written_.lines != known.back().lines || file_->read(buffer.data(), 1) > 0)
      throw text::InputError(file_->name() + ": is not what its journal says was finished; remove " + file_->name() +
                             ".journal to begin anew");
    complete_ = true;
    return;
  }
  file_->truncate(written_.bytes);
}

std::optional<Finished> Results::done_before(std::size_t number) {
  auto found = ahead_.extract(number);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

void Results::finish(std::size_t number, Finished line, bool again) {
  auto const place = number - before_ - written_.lines - 1, written = written_.lines;
  // A line that is written at once need not be in the journal.
  if (journal_ && !again && (place > ready_ || member_ > 0)) journal_->ahead(number, line);
  lines_[place] = std::move(line);
  advance();
  if (journal_ && !complete_) note(written_.lines > written);
}

void Results::end() {
  ended_ = true;
  advance();
}

void Results::advance() {
  auto some = false;
  for (; ready_ < lines_.size() && lines_[ready_]; some = true) {
    auto const& line = *lines_[ready_++];
    ready_bytes_ += line.text.size();
    std::istringstream messages(line.messages);
    for (std::string message; std::getline(messages, message);) say_(message);
    if (ready_bytes_ >= member_) write_member();
  }
  auto const last = ended_ && ready_ == lines_.size() && !complete_;
  if (last && (ready_ > 0 || (member_ > 0 && written_.bytes == 0))) write_member();  // no bytes are no gzip file
  if (some && destination_.at_once) file_->flush();
  if (last) close();
}

void Results::write_member() {
  std::string text;
  for (; ready_ > 0; --ready_, ++written_.lines) {
    text += lines_.front()->text, written_.code = std::max(written_.code, lines_.front()->code);
    lines_.pop_front();
  }
  ready_bytes_ = 0;
  auto const bytes = member_ > 0 ? compressed(destination_.format, text) : std::move(text);
  file_->write(bytes);
  sum_.add(bytes);
  written_.bytes = sum_.length(), written_.checksum = sum_.value();
}

/// The output first: the journal must not record what is not there.
void Results::note(bool more) {
  if (more) file_->flush(), journal_->written(written_);
  auto const now = std::chrono::steady_clock::now();
  auto const large = journal_->size() > large_journal;
  if (now - synchronised_ < between_syncs && !large) return;
  file_->sync(), journal_->sync();
  synchronised_ = std::chrono::steady_clock::now();
  if (!large) return;
  journal_->begin_compaction();
  journal_->written(written_);
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (lines_[i]) journal_->ahead(before_ + written_.lines + i + 1, *lines_[i]);
  for (auto const& [number, line] : ahead_) journal_->ahead(number, line);
  journal_->end_compaction();
}

void Results::close() {
  complete_ = true;
  if (!journal_) return file_->flush();
  file_->sync();
  journal_->begin_compaction();
  journal_->written(written_);
  journal_->finish();
  journal_->end_compaction();
}

}  // namespace translate
