// SPDX-License-Identifier: Apache-2.0
/// \file
/// Answers as JSON.
#pragma once

#include <http/backend.hpp>
#include <http/fields.hpp>
#include <httplib.h>
#include <string>

namespace serve {

/// As text; bytes that are not valid UTF-8 become U+FFFD.
std::string dump(Json const& json);
void send(httplib::Response& response, int status, Json const& json);
/// An error in OpenAI's format.
/// \param field  the invalid one; empty: none
Json error_json(int status, std::string const& message, std::string const& field = {});
void send_error(httplib::Response& response, int status, std::string const& message, std::string const& field = {});

/// A token's bytes as UTF-8; if they are not valid UTF-8, as OpenAI writes them, bytes:\xe2\x80.
std::string token_name(std::string const& bytes);
/// The failure's name and message.
std::string what_failed(Answer const& answer);
/// The code for a request of which all sentences failed.
int status_of(sluice::Failure failure);

}  // namespace serve
