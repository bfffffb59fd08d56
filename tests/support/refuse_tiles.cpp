// SPDX-License-Identifier: Apache-2.0
// refuse_tiles PROGRAM ARGUMENTS...: runs a program as if the kernel did not grant the registers of matrix units, like
// old kernels and some virtual machines.
#include <cerrno>
#include <cstddef>
#include <cstdio>

#if defined(__linux__) && defined(__x86_64__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x1023, 0, 1),  // ARCH_REQ_XCOMP_PERM
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog const filter{sizeof(rules) / sizeof(rules[0]), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("refuse_tiles");
    return 2;
  }
  if (syscall(SYS_arch_prctl, 0x1023, 18) == 0) {
    std::fputs("refuse_tiles: the kernel grants tiles all the same\n", stderr);
    return 2;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 2;
}
#else
int main() { return 77; }  // no such kernel
#endif
