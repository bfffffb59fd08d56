// SPDX-License-Identifier: Apache-2.0
/// \file
/// Server-sent events.
#pragma once

#include <http/answers.hpp>
#include <http/flight.hpp>
#include <httplib.h>
#include <memory>
#include <string>
#include <utility>

namespace serve {

inline std::string event(char const* name, Json const& data) {
  return std::string("event: ") + name + "\ndata: " + dump(data) + "\n\n";
}

/// Sends what `write` returns for each letter, and `end` at the end.
/// \param write  std::string (Flight&, Flight::Letter&)
/// \param end    std::string ()
template <class Write, class End>
void stream(httplib::Response& response, std::shared_ptr<Flight> flight, Write write, End end) {
  response.set_header("X-Accel-Buffering", "no");  // else proxies would buffer all of it
  auto next = [flight = std::move(flight), write = std::move(write),
               end = std::move(end)](std::size_t, httplib::DataSink& sink) mutable {
    std::string text;
    try {
      for (auto& letter : flight->wait()) text += write(*flight, letter);
    } catch (Gone const&) {
      return false;
    }
    auto const over = flight->open() == 0;
    if (over) text += end();
    if (!text.empty() && !sink.write(text.data(), text.size())) return false;
    if (over) sink.done();
    return true;
  };
  // HTTP/1.0 has no chunks: there the answer ends with the connection.
  if (Connection::current()->is_old()) response.set_content_provider("text/event-stream", std::move(next));
  else response.set_chunked_content_provider("text/event-stream", std::move(next));
}

/// Whether server-sent events are wanted.
inline bool wants_events(httplib::Request const& request, bool asked) {
  return asked || request.get_header_value("Accept").find("text/event-stream") != std::string::npos;
}

}  // namespace serve
