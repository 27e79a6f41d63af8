/**
 * Ends this process without what exit(3) waits for: the threads of Node's pool, one of which may be reading a FIFO or
 * waiting for a name server. Also ends the first process of a container, which signals of its own do not (_exit(2)).
 *
 * @param code what the process's parent gets
 */
export async function exitAtOnce(code: number): Promise<void> {
  try {
    const { default: koffi } = await import("koffi");
    koffi.load(null).func("void _exit(int)")(code);
  } catch {
    // There is no koffi for this machine: it waits.
    process.exit(code);
  }
}
