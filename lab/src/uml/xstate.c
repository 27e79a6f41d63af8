/*
 * User-Mode Linux carries its processes' extended registers in buffers whose size was fixed when it was built. A CPU with
 * larger ones (AMX) makes the host refuse so short a set, and User-Mode Linux panics. Preloaded into it, this completes a
 * set that is too short with what the process has in the registers behind it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long (*ptrace_function)(enum __ptrace_request, pid_t, void *, void *);

static long complete(ptrace_function real, pid_t pid, void *set, const struct iovec *given) {
  static __thread char registers[1 << 16] __attribute__((aligned(64)));
  struct iovec whole = {.iov_base = registers, .iov_len = sizeof registers};
  if (real(PTRACE_GETREGSET, pid, set, &whole) < 0) return -1;
  if (given->iov_len >= whole.iov_len) {
    errno = EFAULT;
    return -1;
  }
  memcpy(registers, given->iov_base, given->iov_len);
  return real(PTRACE_SETREGSET, pid, set, &whole);
}

long ptrace(enum __ptrace_request request, ...) {
  static ptrace_function real;
  if (!real) real = (ptrace_function)dlsym(RTLD_NEXT, "ptrace");
  va_list arguments;
  va_start(arguments, request);
  pid_t pid = va_arg(arguments, pid_t);
  void *address = va_arg(arguments, void *);
  void *data = va_arg(arguments, void *);
  va_end(arguments);
  long result = real(request, pid, address, data);
  int refused = result < 0 && errno == EFAULT && request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE;
  return refused ? complete(real, pid, address, data) : result;
}
