import type Koffi from "koffi";

/**
 * The compiled code that netlink needs cannot be loaded: this package's optional dependencies
 * (`@koromix/koffi-linux-x64`,
 * `@koromix/koffi-linux-arm64`) are not installed, or the machine is another one. What needs no netlink works without.
 */
export class NativeCodeError extends Error {
  override readonly name = "NativeCodeError";

  constructor(cause: unknown) {
    const machine = `${process.platform}-${process.arch}`;
    super(
      `netlink is not available: cannot load @koromix/koffi-${machine}; install it with the optional dependencies of ` +
        "@fairlead/kernel (Linux on x64 or arm64)",
      { cause },
    );
  }
}

/**
 * Calls into the C library, which only netlink and locks need: loaded when first used.
 *
 * @throws NativeCodeError when there is no code for this machine
 */
export async function loadKoffi(): Promise<typeof Koffi> {
  try {
    return (await import("koffi")).default;
  } catch (error) {
    throw new NativeCodeError(error);
  }
}
