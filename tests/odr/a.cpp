// SPDX-License-Identifier: Apache-2.0
#include <everything.hpp>

sluice::Version const* version_seen_from_b();

int main() { return &sluice::version == version_seen_from_b() ? 0 : 1; }
