// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stops a compiler that is not told to read C++20, or to do without exceptions, at the first line of any header: by a file that is
/// not there, as behind an #error it would go on, and report thousands of others.
#pragma once

// A #line spares the excerpt of this file.
#if __cplusplus < 202002L
#line 1 "sluice"
#include <sluice needs C++20: -std=c++20, or /std:c++20 with /Zc:__cplusplus>
#elif !defined(__cpp_exceptions) && !defined(__CUDA_ARCH__)
#line 1 "sluice"
#include <sluice needs exceptions: compile without -fno-exceptions, or with /EHsc>
#endif
