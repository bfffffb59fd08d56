// SPDX-License-Identifier: Apache-2.0
#include <sluice/version.hpp>

#include <cstdio>

int main() { std::printf("sluice %d.%d.%d\n", sluice::version.major, sluice::version.minor, sluice::version.patch); }
