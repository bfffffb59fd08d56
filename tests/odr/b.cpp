// SPDX-License-Identifier: Apache-2.0
#include <everything.hpp>

sluice::Version const* version_seen_from_b();

sluice::Version const* version_seen_from_b() { return &sluice::version; }
