// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <http/metrics.hpp>
#include <sstream>

namespace serve {

namespace {

void head(std::ostream& out, std::string const& name, char const* type, char const* help) {
  out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n';
}

template <class T>
void single(std::ostream& out, std::string const& name, char const* type, char const* help, T value) {
  head(out, name, type, help);
  out << name << ' ' << value << '\n';
}

/// Rows of the model's calls: how full the batch was.
void fill(std::ostream& out, sluice::Statistics const& statistics) {
  std::string const name = "sluice_step_rows";
  head(out, name, "histogram", "Rows in a call of the model: how full the batch is.");
  auto const& calls = statistics.rows_histogram;
  std::uint64_t below = 0;
  std::size_t rows = 0;
  for (std::size_t bound = 1; bound <= 1024; bound *= 2) {
    for (; rows < calls.size() && rows <= bound; ++rows) below += calls[rows];
    out << name << "_bucket{le=\"" << bound << "\"} " << below << '\n';
  }
  out << name << "_bucket{le=\"+Inf\"} " << statistics.model_calls << '\n'
      << name << "_sum " << statistics.rows << '\n'
      << name << "_count " << statistics.model_calls << '\n';
}

}  // namespace

void Histogram::add(double seconds) {
  auto const place = std::ranges::lower_bound(bounds, seconds) - bounds.begin();
  ++counts_[static_cast<std::size_t>(place)], sum_ += seconds;
}

void Histogram::write(std::ostream& out, std::string const& name, std::string const& labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    out << name << "_bucket{" << labels << "le=\"";
    if (i < bounds.size()) out << bounds[i];
    else out << "+Inf";
    out << "\"} " << below << '\n';
  }
  auto const plain = labels.empty() ? std::string() : "{" + labels.substr(0, labels.size() - 1) + "}";
  out << name << "_sum" << plain << ' ' << sum_ << '\n' << name << "_count" << plain << ' ' << below << '\n';
}

void Metrics::request(std::string const& path, int status, Seconds took) {
  std::lock_guard const lock(mutex_);
  ++requests_[{path, status}];
  request_seconds_[path].add(took.count());
}

void Metrics::sentence(sluice::Failure failure, Seconds took) {
  std::lock_guard const lock(mutex_);
  ++sentences_[sluice::name(failure)];
  sentence_seconds_.add(took.count());
}

void Metrics::blocks(sluice::Result const& result) {
  std::lock_guard const lock(mutex_);
  for (auto const& hypothesis : result.hypotheses)
    for (auto const size : hypothesis.blocks) ++rounds_, round_tokens_ += static_cast<std::uint64_t>(size);
}

void Metrics::first_text(Seconds took) {
  std::lock_guard const lock(mutex_);
  first_seconds_.add(took.count());
}

std::string Metrics::write(Backend const& backend, Admission const& admission, MemoryPool const& memory) const {
  auto const statistics = backend.statistics();
  auto const open = admission.sentences();
  std::ostringstream out;
  single(out, "sluice_sentences_open", "gauge", "Sentences without a result, waiting or running.", open);
  single(out, "sluice_sentences_waiting", "gauge", "Open sentences for which the batch has no room.",
         open - std::min(open, backend.size()));
  single(out, "sluice_sentences_most", "gauge", "Number of open sentences at which more are refused.",
         admission.most());
  single(out, "sluice_requests_open", "gauge", "Requests without an answer.", admission.requests());
  single(out, "sluice_requests_bytes", "gauge", "Memory reserved for requests, in bytes.", memory.used());
  single(out, "sluice_requests_bytes_most", "gauge", "How much there may be.", memory.most());
  single(out, "sluice_batch_size", "gauge", "Sentences that are decoded together.", backend.size());
  single(out, "sluice_steps_total", "counter", "Steps of the decoders.", statistics.steps);
  single(out, "sluice_tokens_total", "counter", "Tokens of best hypotheses.", statistics.tokens);
  single(out, "sluice_fed_total", "counter", "Tokens fed to the models, including prompts.", statistics.fed);
  single(out, "sluice_shared_total", "counter", "Prompt tokens not fed, thanks to prefix caching.", statistics.shared);
  single(out, "sluice_encoded_total", "counter", "Sentences that were encoded.", statistics.encoded);
  fill(out, statistics);
  if (auto const kept = backend.remembered()) {
    single(out, "sluice_remembered_texts", "gauge", "Earlier outputs from which guesses come.", kept->texts);
    single(out, "sluice_remembered_tokens", "gauge", "Their tokens.", kept->tokens);
    single(out, "sluice_remembered_bytes", "gauge", "Their memory.", kept->bytes);
  }
  std::string const busy = "sluice_decoder_seconds_total";
  head(out, busy, "counter", "Time of the decoders, by part.");
  for (auto const& [part, seconds] : {std::pair("encode", statistics.seconds.encode),
                                      {"model", statistics.seconds.model},
                                      {"output", statistics.seconds.output},
                                      {"search", statistics.seconds.search}})
    out << busy << "{part=\"" << part << "\"} " << seconds << '\n';

  std::lock_guard const lock(mutex_);
  single(out, "sluice_rounds_total", "counter", "Rounds of blockwise decoding.", rounds_);
  single(out, "sluice_round_tokens_total", "counter", "Tokens that they settled: one each, and the guesses accepted.",
         round_tokens_);
  head(out, "sluice_sentences_total", "counter", "Results, by failure.");
  for (auto const& [failure, count] : sentences_)
    out << "sluice_sentences_total{failure=\"" << failure << "\"} " << count << '\n';
  head(out, "sluice_sentence_seconds", "histogram", "From the queue to the result.");
  sentence_seconds_.write(out, "sluice_sentence_seconds", "");
  head(out, "sluice_first_text_seconds", "histogram", "From the queue to the first settled text of a stream.");
  first_seconds_.write(out, "sluice_first_text_seconds", "");
  head(out, "sluice_http_requests_total", "counter", "Answers, by path and code.");
  for (auto const& [which, count] : requests_)
    out << "sluice_http_requests_total{path=\"" << which.first << "\",code=\"" << which.second << "\"} " << count
        << '\n';
  head(out, "sluice_http_request_seconds", "histogram", "From a request's first byte to its answer's last.");
  for (auto const& [path, histogram] : request_seconds_)
    histogram.write(out, "sluice_http_request_seconds", "path=\"" + path + "\",");
  return out.str();
}

}  // namespace serve
