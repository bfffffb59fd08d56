// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a JSON schema is read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/expressions.hpp>

#include <cstdint>
#include <string>

namespace sluice::inline v0 {

/// In which order the members of an object come.
enum class JsonOrder : std::uint8_t {
  schema,  ///< that of the schema; other members come last
  any  ///< any, as far as that takes few states: with up to 10 required members (10 members, where minProperties and
       ///< the like count them, 6 in const and enum), otherwise as `schema`
};

/// Which characters of strings that a schema constrains may be written as escapes.
enum class JsonEscapes : std::uint8_t {
  usual,  ///< those that must be, and /, <, >, &, ' and all beyond ASCII, as writers of JSON do it
  any     ///< all, such as \\u0061 for a
};

/// Options for reading a JSON schema.
struct JsonSchemaOptions {
  std::int32_t white_space = 0;  ///< maximum number of white-space characters wherever JSON allows white space; 0:
                                 ///< compact; -1: any number
  GrammarLimits limits{};
  std::string item_separator = ",";  ///< a comma, with white space that must be written; `white_space` comes on top
  std::string key_separator = ":";   ///< a colon, in the same way
  JsonOrder order = JsonOrder::any;
  JsonEscapes escapes = JsonEscapes::usual;
  bool plain_numbers =
      false;             ///< numbers as most models write them: without exponents, and without zeros at the end of a
                         ///< fraction; else equal numbers are accepted however they are written (5, 5.00, 50e-1)
  bool lenient = false;  ///< ignore keywords that constrain and are not supported, instead of refusing the schema
};

}  // namespace sluice::inline v0
