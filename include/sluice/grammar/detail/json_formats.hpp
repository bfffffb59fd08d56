// SPDX-License-Identifier: Apache-2.0
/// \file
/// String formats as regular expressions.
#pragma once

#include <sluice/language.hpp>

#include <string>
#include <string_view>

namespace sluice::inline v0::detail {

/// RFC 3986 and 3987. \param wide  characters beyond ASCII that may stand for themselves, within a class
inline std::string uri_format(std::string const& wide, std::string const& wide_query, bool relative) {
  std::string const escaped = "|%[0-9A-Fa-f]{2})", open = "A-Za-z0-9._~!$&'()*+,;=" + wide + "-";
  auto const one = [&](std::string const& more) { return "(?:[" + more + open + "]" + escaped; };
  auto const letter = one(":@");
  std::string const byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  std::string v4 = byte + "(?:\\." + byte + "){3}";
  std::string const h = "[0-9A-Fa-f]{1,4}", end = "(?:" + h + ":" + h + "|" + v4 + ")";
  auto const head = [&](int count) {
    auto const n = std::to_string(count - 1);
    return count == 0 ? std::string() : "(?:(?:" + h + ":){0," + n + "}" + h + ")?";
  };
  std::string v6 = "(?:(?:" + h + ":){6}" + end + "|::(?:" + h + ":){5}" + end + "|" + head(1) + "::(?:" + h + ":){4}" +
                   end + "|" + head(2) + "::(?:" + h + ":){3}" + end + "|" + head(3) + "::(?:" + h + ":){2}" + end +
                   "|" + head(4) + "::" + h + ":" + end + "|" + head(5) + "::" + end + "|" + head(6) + "::" + h + "|" +
                   head(7) + "::)";
  if (wide == "v6") return v6;
  std::string const host = "(?:\\[(?:" + v6 + "|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|" + one("") + "*)";
  std::string const authority = "(?:" + one(":") + "*@)?" + host + "(?::[0-9]*)?";
  std::string const rooted = "/(?:" + letter + "+(?:/" + letter + "*)*)?", empty_or_more = "(?:/" + letter + "*)*";
  std::string const rest =
      "(?:\\?(?:[/?:@" + wide_query + open + "]" + escaped + "*)?(?:#(?:[/?:@" + open + "]" + escaped + "*)?";
  auto const part = [&](std::string const& first) {
    return "(?://" + authority + empty_or_more + "|" + rooted + "|" + first + empty_or_more + "|)";
  };
  auto const whole = "[A-Za-z][A-Za-z0-9+.-]*:" + part(letter + "+") + rest;
  return relative ? "(?:" + whole + "|" + part(one("@") + "+") + rest + ")" : whole;
}

/// The regular expression of a JSON schema format; empty if the format is unknown. Dates must exist in the calendar,
/// leap years included. A leap second is the last one of a day of UTC, written as such.
inline std::string json_format(std::string_view name) {
  std::string const leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
  std::string date =
      "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"
      "02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
      leap + ")";
  std::string const part = "(?:\\.[0-9]+)?";
  std::string time = "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" + part +
                     "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|23:59:60" + part + "(?:[Zz]|[+-]00:00))";
  std::string const wide =
      "\\x{A0}-\\x{D7FF}\\x{F900}-\\x{FDCF}\\x{FDF0}-\\x{FFEF}\\x{10000}-\\x{1FFFD}\\x{20000}-"
      "\\x{2FFFD}\\x{30000}-\\x{3FFFD}\\x{40000}-\\x{4FFFD}\\x{50000}-\\x{5FFFD}\\x{60000}-"
      "\\x{6FFFD}\\x{70000}-\\x{7FFFD}\\x{80000}-\\x{8FFFD}\\x{90000}-\\x{9FFFD}\\x{A0000}-"
      "\\x{AFFFD}\\x{B0000}-\\x{BFFFD}\\x{C0000}-\\x{CFFFD}\\x{D0000}-\\x{DFFFD}\\x{E1000}-\\x{EFFFD}";
  std::string const own = R"(\x{E000}-\x{F8FF}\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD})";
  std::string const byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  std::string v4 = byte + "(?:\\." + byte + "){3}";
  std::string const pointer = "(?:/(?:[^~/]|~[01])*)*";
  if (name == "date") return date;
  if (name == "time") return time;
  if (name == "date-time") return date + "[Tt]" + time;
  if (name == "duration") {
    std::string const clock = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    return "P(?:[0-9]+W|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)(?:" + clock + ")?|" + clock +
           ")";
  }
  if (name == "uuid") return "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
  if (name.size() == 5 && name.starts_with("uuid") && name[4] >= '1' && name[4] <= '8')  // as pydantic writes them
    return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-" + std::string(1, name[4]) + "[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
  if (name == "email" || name == "idn-email") {
    std::string const more = name == "email" ? "" : R"(\x{80}-\x{D7FF}\x{E000}-\x{10FFFF})";
    std::string const atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~" + more + "-]+", letter = "[a-zA-Z0-9" + more + "]";
    std::string const label = letter + "(?:[a-zA-Z0-9" + more + "-]*" + letter + ")?";
    return "(?:" + atom + "(?:\\." + atom + R"()*|"(?:[ !#-\[\]-~)" + more + R"(]|\\[ -~])*")@(?:)" + label + "(?:\\." +
           label + ")*|\\[(?:" + v4 + "|IPv6:" + uri_format("v6", "", false) + ")\\])";
  }
  if (name == "hostname" || name == "idn-hostname") {
    std::string const more =
        name == "hostname" ? ""
                           : R"(\x{80}-\x{3001}\x{3003}-\x{D7FF}\x{E000}-\x{FF0D}\x{FF0F}-\x{FF60}\x{FF62}-\x{10FFFF})";
    std::string const letter = "[a-zA-Z0-9" + more + "]";
    auto const label = letter + "(?:[a-zA-Z0-9" + more + "-]{0,61}" + letter + ")?";
    return label + "(?:" + (more.empty() ? "\\." : R"([.\x{3002}\x{FF0E}\x{FF61}])") + label + ")*";
  }
  if (name == "ipv4") return v4;
  if (name == "ipv6") return uri_format("v6", "", false);
  if (name == "uri") return uri_format("", "", false);
  if (name == "uri-reference") return uri_format("", "", true);
  if (name == "iri") return uri_format(wide, own, false);
  if (name == "iri-reference") return uri_format(wide, own, true);
  if (name == "uri-template") {
    std::string const character = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})",
                      variable = character + "(?:\\.?" + character + ")*";
    std::string const one = variable + "(?::[1-9][0-9]{0,3}|\\*)?";
    return "(?:[!#$&(-;=?-\\[\\]_a-z~" + wide + own + "]|%[0-9A-Fa-f]{2}|\\{[+#./;?&=,!@|]?" + one + "(?:," + one +
           ")*\\})*";
  }
  if (name == "json-pointer") return "(?s)" + pointer;
  if (name == "relative-json-pointer") return "(?s)(?:0|[1-9][0-9]*)(?:#|" + pointer + ")";
  return "";
}

}  // namespace sluice::inline v0::detail
