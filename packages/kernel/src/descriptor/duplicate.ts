/** fcntl.h: the new descriptor is closed in programs that this process starts. */
const F_DUPFD_CLOEXEC = 1030;

/**
 * Another descriptor of the same open file or socket, which is what Node cannot make.
 *
 * @throws Error when koffi has no binary for this machine, or the process may have no more descriptors
 */
export async function duplicateDescriptor(descriptor: number): Promise<number> {
  const { default: koffi } = await import("koffi");
  const fcntl = koffi.load(null).func("int fcntl(int, int, int)");
  const made: number = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (made < 0) throw new Error(`descriptor ${descriptor} cannot be duplicated (errno ${koffi.errno()})`);
  return made;
}
