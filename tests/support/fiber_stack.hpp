// SPDX-License-Identifier: Apache-2.0
/// \file
/// A stack of its own for a function of the same host thread. On x86-64 a switch is a dozen instructions; swapcontext(), elsewhere, asks
/// the kernel for the signal mask each time, and the address sanitizer then clears the whole stack: three times as long in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_TEST_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SLUICE_TEST_ADDRESS_SANITIZER
#endif
#if defined(SLUICE_TEST_ADDRESS_SANITIZER)
extern "C" void __asan_unpoison_memory_region(void const volatile*, std::size_t);
#endif

namespace sluice::test {

#if defined(__x86_64__)

/// Where a stack is left: what a function has to keep for its caller lies there.
struct StackPlace {
  void* pointer = nullptr;
};

/// Leaves this stack, which is told to `from`, and goes on where `to` was told.
__attribute__((naked, noinline, no_sanitize("address", "undefined"))) inline void
switch_stack(StackPlace* /*from*/, StackPlace const* /*to*/) {
  asm volatile("pushq %rbp\n\t"
               "pushq %rbx\n\t"
               "pushq %r12\n\t"
               "pushq %r13\n\t"
               "pushq %r14\n\t"
               "pushq %r15\n\t"
               "movq %rsp, (%rdi)\n\t"
               "movq (%rsi), %rsp\n\t"
               "popq %r15\n\t"
               "popq %r14\n\t"
               "popq %r13\n\t"
               "popq %r12\n\t"
               "popq %rbx\n\t"
               "popq %rbp\n\t"
               "ret");
}
/// Where a new stack begins: what was told in place of two kept registers is the function, and its argument.
__attribute__((naked, noinline, no_sanitize("address", "undefined"))) inline void enter_stack() {
  asm volatile("movq %rbx, %rdi\n\t"
               "jmpq *%rbp");
}

#else

struct StackPlace {
  ucontext_t context;
};
inline void switch_stack(StackPlace* from, StackPlace const* to) { swapcontext(&from->context, &to->context); }
inline void enter_stack(unsigned high, unsigned low, unsigned function_high, unsigned function_low) {
  auto const join = [](unsigned a, unsigned b) { return static_cast<std::uintptr_t>(a) << 32 | b; };
  reinterpret_cast<void (*)(void*)>(join(function_high, function_low))(reinterpret_cast<void*>(join(high, low)));
}

#endif

/// A stack on which a function may be begun again and again, whether it had ended or not.
class FiberStack {
 public:
  /// \param function  must not return
  void begin(StackPlace& place, void (*function)(void*), void* argument) {
#if defined(SLUICE_TEST_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(memory_.data(), memory_.size());  // frames that nobody returned from
#endif
#if defined(__x86_64__)
    auto* const end = memory_.data() + memory_.size();
    auto* word = reinterpret_cast<void**>(end - reinterpret_cast<std::uintptr_t>(end) % 16);
    *--word = nullptr;                                // whom it would return to
    *--word = reinterpret_cast<void*>(&enter_stack);  // where `ret` goes
    *--word = reinterpret_cast<void*>(function);      // %rbp
    *--word = argument;                               // %rbx
    for (int i = 0; i < 4; ++i) *--word = nullptr;
    place.pointer = word;
#else
    getcontext(&place.context);
    place.context.uc_stack.ss_sp = memory_.data();
    place.context.uc_stack.ss_size = memory_.size();
    place.context.uc_link = nullptr;
    auto const at = reinterpret_cast<std::uintptr_t>(argument), to = reinterpret_cast<std::uintptr_t>(function);
    auto const high = [](std::uintptr_t x) { return static_cast<unsigned>(x >> 32); };
    auto const low = [](std::uintptr_t x) {
      return static_cast<unsigned>(x & 0xffffffffu);
    };  // makecontext passes ints
    makecontext(&place.context, reinterpret_cast<void (*)()>(&enter_stack), 4, high(at), low(at), high(to), low(to));
#endif
  }

 private:
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(128 * 1024);
};

}  // namespace sluice::test
