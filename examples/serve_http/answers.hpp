// SPDX-License-Identifier: Apache-2.0
/// \file
/// Answers as JSON.
#pragma once

#include <httplib.h>
#include <serve_http/backend.hpp>
#include <serve_http/fields.hpp>
#include <string>

namespace serve {

/// As text; bytes that are no UTF-8 become U+FFFD.
std::string dump(Json const& json);
void send(httplib::Response& response, int status, Json const& json);
/// In the shape of OpenAI's.
/// \param field  the one that is wrong; empty: none
Json error_json(int status, std::string const& message, std::string const& field = {});
void send_error(httplib::Response& response, int status, std::string const& message, std::string const& field = {});

/// Of one sentence, at /translate.
Json answer_json(std::size_t index, Answer const& answer, bool scores);
/// The code for a request none of whose sentences went well.
int status_of(sluice::Failure failure);

}  // namespace serve
