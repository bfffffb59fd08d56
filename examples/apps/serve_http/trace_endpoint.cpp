// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/trace_page.hpp>

#include <http/answers.hpp>
#include <memory>
#include <serve_http/settings.hpp>
#include <serve_http/trace_endpoint.hpp>
#include <sstream>
#include <stdexcept>

namespace serve {

namespace {

constexpr std::size_t most_bytes = std::size_t{32} << 20;  // of a page

}  // namespace

void answer_trace(House const& house, TracingBackend& backend, FairQueue& tracing, Offer const& offer,
                  httplib::Request const& request, httplib::Response& response) {
  Fields fields(request.body);
  auto const index = fields.integer("index", 0, static_cast<std::int64_t>(house.bounds.sentences) - 1);
  auto const task = read_task(fields, house.bounds, offer);
  if (task.stream) throw BadField("stream", "stream has no effect on a trace");
  auto const place = static_cast<std::size_t>(index.value_or(0));
  if (place >= task.asks.size())
    throw BadField("index", "index is not one of the " + std::to_string(task.asks.size()) + " sentences");
  auto const settings = std::make_shared<TranslationSettings>(dynamic_cast<TranslationSettings const&>(*task.settings));
  settings->scores = true;
  auto const until = Clock::now() + task.time;
  Admitted const admitted(house.admission, Connection::current()->client(), 1);
  Task const one{.settings = settings, .asks = {task.asks[place]}};
  auto const job = [&] {
    Turn const turn(house.preparing, admitted.client(), static_cast<double>(1000 + one.asks[0].text.size()), until);
    Work const work(until);
    return backend.prepare(one)->job(one.asks[0]);
  }();
  Event const never;
  auto const* const connection = Connection::current();
  auto const between = [&](std::size_t bytes) {
    if (connection->wait(never, Clock::now()) == Connection::Woken::gone) throw Gone();
    if (Clock::now() > until) throw BadField("", "late: the trace is not ready", 504);
    if (bytes > most_bytes) throw BadField("", "the trace has more than " + std::to_string(most_bytes) + " bytes", 413);
  };
  Turn const turn(tracing, admitted.client(), static_cast<double>(job->rows() * job->steps()), until);
  response.set_content(backend.trace(*job, task.asks[place].text, between), "text/html; charset=utf-8");
}

std::string trace_page_source(std::string const& directive) {
  std::ostringstream out;
  sluice::TracePage(out).finish();
  auto const text = out.str();
  auto const begin = text.find(directive + " '");
  if (begin == text.npos) throw std::logic_error("the page of a trace has no " + directive);
  auto const source = begin + directive.size() + 1;
  return text.substr(source, text.find('\'', source + 1) + 1 - source);
}

}  // namespace serve
