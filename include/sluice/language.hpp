// SPDX-License-Identifier: Apache-2.0
/// \file
/// What all headers begin with. Stops a compiler that is not told to read C++20, or to do without exceptions, at the first line of any
/// header: by a file that is not there, as behind an #error it would go on, and report thousands of others. And SLUICE_LAZY.
#pragma once

// A #line spares the excerpt of this file.
#if __cplusplus < 202002L
#line 1 "sluice"
#include <sluice needs C++20: -std=c++20, or /std:c++20 with /Zc:__cplusplus>
#elif !defined(__cpp_exceptions) && !defined(__CUDA_ARCH__)
#line 1 "sluice"
#include <sluice needs exceptions: compile without -fno-exceptions, or with /EHsc>
#endif

/// Stands before a function that is compiled only where it is called: what a program does not call costs it nothing but reading. Why:
/// docs/design.md, "Including is not compiling".
#define SLUICE_LAZY template <class = void>
