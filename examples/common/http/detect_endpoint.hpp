// SPDX-License-Identifier: Apache-2.0
/// \file
/// POST /detect.
#pragma once

#include <sluice/watermark/watermark.hpp>

#include <http/flight.hpp>
#include <http/service.hpp>
#include <httplib.h>

namespace serve {

/// Whether a text carries the mark of the server's key (detect_watermark). Done in the connection's thread, in the fair order of
/// clients, as requests are prepared.
/// \throws BadField, Refused, Gone, OverBudget
void answer_detect(House const& house, sluice::Watermark const& watermark, httplib::Request const& request,
                   httplib::Response& response);
/// The path that answers so.
Endpoint detecting(sluice::Watermark const& watermark);

}  // namespace serve
