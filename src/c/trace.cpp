// SPDX-License-Identifier: Apache-2.0
// The traces of the C interface, and their page; a separate file, compiled beside sluice.cpp.

#include <sluice/c/sluice.h>
#include <sluice/decode/trace_page.hpp>

#include "handles.hpp"
#include "passing.hpp"

#include <sstream>

using namespace sluice::c;

namespace {

sluice_trace& complete(sluice_trace* trace) {
  auto& its = not_null(trace, "trace");
  sluice::require(!its.taken, "trace", "taken", "is not complete before its request has its result");
  return its;
}

}  // namespace

extern "C" {

sluice_status sluice_trace_create(char const* about, sluice_trace** trace) {
  return guarded([&] {
    auto& made = not_null(trace, "trace");
    made = new sluice_trace{about == nullptr ? "" : about};
    return SLUICE_OK;
  });
}
void sluice_trace_free(sluice_trace* trace) { delete trace; }

sluice_status sluice_trace_lines(sluice_trace* trace, sluice_bytes* lines) {
  return guarded([&] {
    auto& its = complete(trace);
    auto& to = not_null(lines, "lines");
    its.text = its.lines.str();
    to = {its.text.data(), its.text.size()};
    return SLUICE_OK;
  });
}
sluice_status sluice_trace_page(sluice_trace* trace, sluice_bytes* page) {
  return guarded([&] {
    auto& its = complete(trace);
    auto& to = not_null(page, "page");
    std::istringstream from(its.lines.str());
    std::ostringstream made;
    sluice::write_trace_page(from, made);
    its.text = made.str();
    to = {its.text.data(), its.text.size()};
    return SLUICE_OK;
  });
}

}  // extern "C"
