// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which requests are allowed, and the headers that protect browsers.
#pragma once

#include <http/admission.hpp>
#include <httplib.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace serve {

/// Whether two texts are the same, in a time that depends only on the length of `given`.
bool same(std::string_view secret, std::string_view given);

class Guard {
 public:
  /// \param tokens  of which clients must send one; empty: none
  /// \param local  whether only this machine can connect: then Host must also name this machine, which keeps off other names
  ///               that resolve to it (DNS rebinding)
  Guard(Admission const& admission, std::vector<std::string> tokens, bool local)
      : admission_(admission), tokens_(std::move(tokens)), local_(local) {}

  /// Before a body is read. True: the request is refused, and the response says why.
  bool refuses(httplib::Request const& request, httplib::Response& response) const;
  /// Headers of any answer.
  static void protect(httplib::Response& response);
  /// Gives the requests that httplib refuses a code that says what was wrong, and a body.
  static void explain(httplib::Request const& request, httplib::Response& response);

 private:
  bool knows(httplib::Request const& request) const;

  Admission const& admission_;
  std::vector<std::string> tokens_;
  bool local_;
};

}  // namespace serve
