// SPDX-License-Identifier: Apache-2.0
// Behind the macros that other libraries leave in their users' files (Qt, windows.h), and with the warnings that users have: no
// header may take notice. Of the standard library all comes first, as it minds.
#include <standard.hpp>

#define slots
#define signals public
#define emit
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
#define interface struct
#define ERROR 0
#define IN
#define OUT

// A program may declare a class before it includes it.
namespace sluice::inline v0 {
struct BeamSearch;
class StopAt;
}  // namespace sluice::inline v0

#include <sluice/c/sluice.h>

#include <everything.hpp>

sluice::Version const* version_seen_from_b();

sluice::Version const* version_seen_from_b() { return &sluice::version; }
