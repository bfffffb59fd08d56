// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command lines of the examples: what CLI11 leaves to its users, once. A bad value is an InputError that names the option and the
/// value: "--width: '0' is not a number from 1 to 10000".
#pragma once

#include <sluice/version.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace text {

/// Options and flags of a program, with --help and --version.
class CommandLine : public CLI::App {
 public:
  CommandLine(std::string const& what, std::string const& program) : CLI::App(what, program) {
    set_version_flag("--version", program + " (sluice " + std::to_string(SLUICE_VERSION_MAJOR) + "." +
                                      std::to_string(SLUICE_VERSION_MINOR) + "." +
                                      std::to_string(SLUICE_VERSION_PATCH) + ")");
    get_formatter()->column_width(34);
  }

  /// An option with a value.
  /// \param name  "--width", "-m,--model", or without dashes for what stands alone
  /// \param type  what the help shows for the value: "N", "FILE"
  template <class T>
  CLI::Option* add(std::string const& name, T& value, std::string const& type, std::string const& what) {
    return add_option(name, value, what)->type_name(type);
  }

  /// Reads the arguments.
  /// \returns false  if they asked for help or version, which has been printed
  /// \throws InputError  for what the options do not allow
  bool read(int argc, char const* const* argv) {
    try {
      parse(argc, argv);
    } catch (CLI::Success const& asked) {
      exit(asked);
      return false;
    } catch (CLI::ParseError const& error) {
      throw InputError(error.what());
    }
    return true;
  }
};

/// A whole number. CLI11 by itself takes -1 for the largest number there is, and 2.5 for 2.
inline CLI::Validator whole(std::uint64_t lowest, std::uint64_t highest = std::numeric_limits<std::uint64_t>::max()) {
  auto const to =
      highest == std::numeric_limits<std::uint64_t>::max() ? " on, of 64 bits" : " to " + std::to_string(highest);
  return {[=](std::string const& value) {
            std::uint64_t x = 0;
            auto const* const end = value.data() + value.size();
            auto const [rest, error] = std::from_chars(value.data(), end, x);
            if (rest == end && error == std::errc() && x >= lowest && x <= highest) return std::string();
            return "'" + value + "' is not a number from " + std::to_string(lowest) + to;
          },
          ""};
}

/// A number for which `fits` holds, as `what` says behind "is not a number". "inf" is one, too.
template <class Number, class Fits>
CLI::Validator number(Fits fits, std::string const& what) {
  return {[=](std::string const& value) {
            Number x = 0;
            if (CLI::detail::lexical_cast(value, x) && fits(x)) return std::string();
            return "'" + value + "' is not a number" + what;
          },
          ""};
}

/// One of these words.
inline CLI::Validator one_of(std::vector<std::string> const& words) {
  return {[=](std::string const& value) {
            std::string all;
            for (auto const& word : words) {
              if (word == value) return std::string();
              all += (all.empty() ? "" : ", ") + word;
            }
            return "'" + value + "' is not one of " + all;
          },
          ""};
}
inline CLI::Validator one_of(std::initializer_list<char const*> words) {
  return one_of(std::vector<std::string>(words.begin(), words.end()));
}
/// One of the keys.
template <class Value>
CLI::Validator one_of(std::map<std::string, Value> const& names) {
  std::vector<std::string> words;
  for (auto const& [name, value] : names) words.push_back(name);
  return one_of(words);
}

}  // namespace text
