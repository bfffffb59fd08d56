// SPDX-License-Identifier: Apache-2.0
// The main function of programs that scripts/mutate builds: Catch2 3 has one in its library, 2 makes it here.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#else
#include <catch2/catch_session.hpp>
int main(int count, char** arguments) { return Catch::Session().run(count, arguments); }
#endif
