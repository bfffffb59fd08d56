// SPDX-License-Identifier: Apache-2.0
// Knows too little: see tests/cli/mutate.test.sh.
#include <tiny/steps.hpp>

int main() { return tiny::steps(6, 4) == 2 && tiny::apart(5, 5) == 0 ? 0 : 1; }
