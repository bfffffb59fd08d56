// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/viewer.md.
#include <sluice/decode/server.hpp>
#include <sluice/decode/trace_each.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>

#include "typist.hpp"

#include <cstdint>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

int main() {
  Typist typist;
  std::ostringstream file;  // in yours: std::ofstream file("trace.html", std::ios::binary);
  {
    // [page]
    sluice::TracePage page(file);
    auto const text_of = [](sluice::Token token) { return Typist::text({&token, 1}); };
    sluice::Decoder decoder(typist, sluice::BeamSearch{.width = 4, .n_best = 4}, sluice::Batched{.size = 2},
                            Typist::keyboard(), sluice::TraceFile(file, text_of));
    for (std::string const word : {"hello", "world", "sluice"}) {
      auto const id = decoder.submit({.source = word});
      decoder.trace().describe(id, word);  // its title on the page
    }
    while (decoder.step()) {
    }
    page.finish();  // throws if the page could not be written
    // [/page]
  }
  std::map<std::uint64_t, std::ostringstream> traces;
  std::string shown;
  {
    // [each]
    auto const make = [&](std::uint64_t id) {
      sluice::TraceFile trace(traces[id]);
      trace.describe(id, "request " + std::to_string(id));
      return trace;
    };
    sluice::Server server(typist, sluice::BeamSearch{.width = 4}, sluice::Streaming{.size = 8, .refill_below = 1}, {},
                          Typist::keyboard(), sluice::TraceEach<sluice::TraceFile>(make));
    for (std::string const word : {"hello", "world", "sluice"}) {
      auto const done = [&](sluice::Result const& result) {
        if (!traces.contains(result.id)) return;  // it was not traced
        std::istringstream lines(traces[result.id].str());
        std::ostringstream page;  // in yours: a file, or what a client gets
        sluice::write_trace_page(lines, page);
        shown = page.str();
        traces.erase(result.id);
      };
      server.submit({.source = word, .traced = word == "world"}, {.done = done});
    }
    // [/each]
    server.drain();
    if (!shown.ends_with("</html>\n") || shown.find("request 1") == shown.npos)
      throw std::logic_error("this is no page");
  }
  std::ostringstream lines;
  {
    sluice::Decoder decoder(typist, sluice::Greedy{}, {}, Typist::keyboard(), sluice::TraceFile(lines));
    decoder.submit({.source = "a"});
    while (decoder.step()) {
    }
  }
  std::istringstream some(lines.str());
  std::ostringstream later;
  // [later]
  sluice::write_trace_page(some, later);  // a page from the lines of a trace file
  // [/later]
  for (auto const& page : {file.str(), later.str()})
    if (!page.starts_with("<!doctype html>") || !page.ends_with("</html>\n")) throw std::logic_error("this is no page");
  return 0;
}
