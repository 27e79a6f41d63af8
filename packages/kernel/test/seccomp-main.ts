import koffi from "koffi";

/**
 * Starts a program under a seccomp filter like the RuntimeDefault of containerd and Docker, for a container with
 * NET_ADMIN and NET_RAW: what those deny is denied with the same errors. The numbers are those of x86-64.
 */
const [program = "", ...args] = process.argv.slice(2);

const ERRNO = { EPERM: 1, ENOSYS: 38 } as const;

/** Of `struct seccomp_data` (linux/seccomp.h). */
const AT = { number: 0, firstArgument: 16 } as const;

/** asm/unistd_64.h: those that need other capabilities, keys, kernel modules, other namespaces, io_uring. */
const DENIED: readonly number[] = [
  // vhangup, pivot_root, _sysctl, chroot, acct, settimeofday, mount to query_module, quotactl, nfsservctl
  ...[103, 134, 136, 139, 153, 155, 156, 161, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 175, 176],
  ...[177, 178, 179, 180],
  // lookup_dcookie, clock_settime, memory policies, kexec, keys, migrate_pages, unshare, move_pages
  ...[212, 227, 237, 238, 239, 246, 248, 249, 250, 256, 272, 279],
  // perf_event_open, fanotify_init, open_by_handle_at, setns, kcmp, finit_module, kexec_file_load, bpf, userfaultfd
  ...[298, 300, 304, 308, 312, 313, 320, 321, 323],
  // io_uring, the new mount calls, pidfd_getfd, process_madvise, mount_setattr, quotactl_fd
  ...[425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 450],
];
/** The C library goes on with clone. */
const CLONE3 = 435;
/** With a flag of a new namespace. */
const CLONE = { number: 56, newNamespace: 0x7e020000 } as const;
/** AF_ALG and AF_VSOCK. */
const SOCKET = { number: 41, denied: [38, 40] } as const;

/** Instructions of classic BPF (linux/filter.h), as code, jumps and constant. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, constant: number];
const load = (at: number): Instruction => [0x20, 0, 0, at];
const skipUnlessEqual = (value: number, count: number): Instruction => [0x15, 0, count, value];
const skipUnlessAny = (bits: number, count: number): Instruction => [0x45, 0, count, bits];
const refuse = (errno: number): Instruction => [0x06, 0, 0, 0x00050000 | errno];
const ALLOW: Instruction = [0x06, 0, 0, 0x7fff0000];

const FILTER: readonly Instruction[] = [
  load(AT.number),
  ...DENIED.flatMap((number) => [skipUnlessEqual(number, 1), refuse(ERRNO.EPERM)]),
  ...[skipUnlessEqual(CLONE3, 1), refuse(ERRNO.ENOSYS)],
  skipUnlessEqual(CLONE.number, 4),
  ...[load(AT.firstArgument), skipUnlessAny(CLONE.newNamespace, 1), refuse(ERRNO.EPERM), ALLOW],
  skipUnlessEqual(SOCKET.number, 1 + 2 * SOCKET.denied.length),
  load(AT.firstArgument),
  ...SOCKET.denied.flatMap((family) => [skipUnlessEqual(family, 1), refuse(ERRNO.EPERM)]),
  ALLOW,
];

const code = Buffer.alloc(8 * FILTER.length);
for (const [at, [operation, ifTrue, ifFalse, constant]] of FILTER.entries()) {
  code.writeUInt16LE(operation, 8 * at);
  code.writeUInt8(ifTrue, 8 * at + 2);
  code.writeUInt8(ifFalse, 8 * at + 3);
  code.writeUInt32LE(constant, 8 * at + 4);
}
const [NO_NEW_PRIVILEGES, SECCOMP, FILTER_MODE] = [38, 22, 2];
const libc = koffi.load(null);
const prctl = libc.func("int prctl(int, unsigned long, void *, unsigned long, unsigned long)");
const filterProgram = koffi.struct({ length: "unsigned short", filter: "void *" });
const setFilter = libc.func("prctl", "int", ["int", "unsigned long", koffi.pointer(filterProgram), "long", "long"]);
const done = [
  prctl(NO_NEW_PRIVILEGES, 1, null, 0, 0),
  setFilter(SECCOMP, FILTER_MODE, { length: FILTER.length, filter: code }, 0, 0),
];
if (done.some((result) => result !== 0)) throw new Error(`prctl: errno ${koffi.errno()}`);
process.execve?.(program, [program, ...args]);
