import { bracketed } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";

/**
 * Ends what an address has open at a local port; both ends are told by a reset, and each connection is a line of
 * output.
 * Kernels without CONFIG_INET_DIAG_DESTROY end none.
 */
export function cutArgv(port: string, address: string): Argv {
  const to = bracketed(address);
  return ["ss", "-K", "-H", "state", "established", "sport", `:${port}`, "dst", to];
}
