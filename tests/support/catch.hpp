// SPDX-License-Identifier: Apache-2.0
/// \file
/// Catch2, version 3 or 2: tests use only what both have. WithinAbs and WithinRel instead of Approx, no SKIP, no string
/// Contains.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace sluice::test {

// Same names and meaning in both versions.
using Catch::Matchers::Equals;
using Catch::Matchers::Message;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

}  // namespace sluice::test
