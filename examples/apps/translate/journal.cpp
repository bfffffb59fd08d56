// SPDX-License-Identifier: Apache-2.0
#include <text/checksum.hpp>
#include <text/lines.hpp>
#include <translate/journal.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

namespace translate {

namespace {

std::string const title = "sluice-journal 1 ";

std::string shown(Fingerprint const& all, std::string const& name) {
  auto const found = all.find(name);
  return found == all.end() ? "not there" : "'" + found->second + "'";
}

}  // namespace

Journal::Journal(std::filesystem::path const& file, Fingerprint const& now) : path_(file), fingerprint_(now) {
  if (std::ifstream stream(path_, std::ios::binary); stream) {
    std::string const text{std::istreambuf_iterator<char>(stream), {}};
    if (stream.bad()) throw text::InputError(path_.string() + ": cannot be read");
    read(text);
    file_.emplace(path_, true);
    file_->truncate(size_);
    return;
  }
  // Never seen without its head.
  auto const made = path_.string() + ".new";
  file_.emplace(made);
  file_->write(head());
  replace(made);
}

std::string Journal::head() const { return title + nlohmann::json(fingerprint_).dump() + "\n"; }

void Journal::replace(std::filesystem::path const& by) {
  file_->sync();
  std::error_code error;
  std::filesystem::rename(by, path_, error);
  if (error) throw text::InputError(path_.string() + ": cannot be written");
  size_ = 0;
}

void Journal::read(std::string const& text) {
  auto const line_end = text.find('\n');
  auto const refuse = [&](std::string const& why) {
    throw text::InputError(path_.string() + ": " + why + "; remove it to begin anew");
  };
  if (line_end == text.npos || !text.starts_with(title)) refuse("is no journal of translate");
  auto const before = nlohmann::json::parse(text.substr(title.size(), line_end - title.size()), nullptr, false);
  if (!before.is_object()) refuse("is no journal of translate");
  auto const then = before.get<Fingerprint>();
  auto all = then;
  all.insert(fingerprint_.begin(), fingerprint_.end());
  for (auto const& [name, value] : all)
    if (auto const was = shown(then, name), is = shown(fingerprint_, name); was != is)
      refuse("is of another run: " + name + " was " + was + " and is " + is);

  auto at = line_end + 1;
  for (;; size_ = at) {
    size_ = at;
    auto const end = text.find('\n', at);
    if (end == text.npos) return;
    std::istringstream record(text.substr(at, end - at));
    std::string sum, kind;
    record >> sum >> kind;
    std::size_t number = 0, texts = 0, messages = 0;
    Finished line;
    Written written;
    if (kind == "ahead") record >> number >> line.code >> texts >> messages;
    else if (kind == "written") record >> written.lines >> written.bytes >> written.checksum >> written.code;
    // What the number of bytes says cannot be trusted before the sum has been looked at.
    auto const left = text.size() - end - 1;
    if (!record || texts > left || messages > left - texts) return;
    at += sum.size() + 1;
    auto const next = end + 1 + texts + messages;
    if (sum != text::hexadecimal(text::checksum(std::string_view(text).substr(at, next - at)))) return;
    at = next;
    if (kind == "ahead") {
      line.text = text.substr(end + 1, texts), line.messages = text.substr(end + 1 + texts, messages);
      ahead_[number] = std::move(line);
    } else if (kind == "written") {
      written_.push_back(written);
    } else if (kind == "done") {
      done_ = true;
    }
  }
}

void Journal::add(std::string record, std::string_view more) {
  record += '\n';
  record += more;
  record.insert(0, text::hexadecimal(text::checksum(record)) + " ");
  file_->write(record);
  file_->flush();
  size_ += record.size();
}

void Journal::ahead(std::size_t number, Finished const& line) {
  add("ahead " + std::to_string(number) + " " + std::to_string(line.code) + " " + std::to_string(line.text.size()) +
          " " + std::to_string(line.messages.size()),
      line.text + line.messages);
}

void Journal::written(Written const& now) {
  add("written " + std::to_string(now.lines) + " " + std::to_string(now.bytes) + " " + std::to_string(now.checksum) +
      " " + std::to_string(now.code));
}

void Journal::finish() {
  add("done");
  done_ = true;
}

void Journal::begin_compaction() {
  file_.reset();
  file_.emplace(path_.string() + ".new");
  file_->write(head());
}

void Journal::end_compaction() { replace(path_.string() + ".new"); }

}  // namespace translate
