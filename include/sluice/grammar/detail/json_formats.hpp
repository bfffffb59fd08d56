// SPDX-License-Identifier: Apache-2.0
/// \file
/// String formats as regular expressions.
#pragma once

#include <sluice/language.hpp>

#include <string>
#include <string_view>

namespace sluice::inline v0::detail {

/// The regular expression of a JSON schema format; empty if the format is unknown. Dates must exist in the calendar,
/// leap years included; times have no leap seconds.
inline std::string json_format(std::string_view name) {
  static std::string const leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
  static std::string const date =
      "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"
      "02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
      leap + ")";
  static std::string const time =
      "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
  if (name == "date") return date;
  if (name == "time") return time;
  if (name == "date-time") return date + "T" + time;
  if (name == "uuid") return "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
  if (name == "email") {
    std::string const part = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+", label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
    return part + "(?:\\." + part + ")*@" + label + "(?:\\." + label + ")*";
  }
  if (name == "ipv4") {
    std::string const byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    return byte + "(?:\\." + byte + "){3}";
  }
  return "";
}

}  // namespace sluice::inline v0::detail
