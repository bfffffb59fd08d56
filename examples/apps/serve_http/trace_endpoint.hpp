// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /trace.
#pragma once

#include <http/flight.hpp>
#include <httplib.h>
#include <serve_http/translator.hpp>
#include <string>

namespace serve {

/// Decodes one sentence of a request to /translate again, alone, and answers with the page of its trace (docs/viewer.md).
/// \throws BadField, Refused, Gone
void answer_trace(House const& house, TracingBackend& backend, FairQueue& tracing, Offer const& offer,
                  httplib::Request const& request, httplib::Response& response);

/// The sources that the page's own content security policy allows for `directive` ('script-src', 'style-src').
std::string trace_page_source(std::string const& directive);

}  // namespace serve
