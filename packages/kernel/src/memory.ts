let opened: Promise<(pad: number) => number> | undefined;

/**
 * Gives the kernel back what malloc holds without use (malloc_trim(3), glibc): what came from tools and sockets leaves
 * holes between what stays. Takes some milliseconds; does nothing with another C library.
 */
export async function releaseMemory(): Promise<void> {
  try {
    opened ??= openTrim();
    (await opened)(0);
  } catch {
    // The memory stays where it is, as with any other program.
  }
}

async function openTrim(): Promise<(pad: number) => number> {
  const { default: koffi } = await import("koffi");
  return koffi.load(null).func("int malloc_trim(size_t)");
}
