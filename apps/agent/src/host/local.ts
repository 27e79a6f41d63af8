import { once } from "node:events";
import type { NodeAddress } from "@fairlead/kernel";
import type { Kernel } from "./kernel.ts";

const LOOPBACK: readonly NodeAddress[] = [
  { family: "IPv4", address: "127.0.0.1", prefixLength: 8, interface: "lo", scope: "host", up: true },
  { family: "IPv6", address: "::1", prefixLength: 128, interface: "lo", scope: "host", up: true },
];

/**
 * What of the kernel an agent needs that programs nothing: it runs without root, without tools and alongside other
 * agents.
 */
export type LocalKernel = Pick<Kernel, "addresses" | "sourceAddress" | "nfacct"> & Partial<Pick<Kernel, "tracking">>;

export function localKernel(): LocalKernel {
  return {
    addresses: {
      list: async () => LOOPBACK,
      async *watch({ signal }) {
        yield LOOPBACK;
        if (!signal.aborted) await once(signal, "abort");
      },
    },
    sourceAddress: async () => undefined,
    nfacct: {
      ensure: async () => ({ ok: false, reason: "nothing is counted without rules" }),
      read: async () => undefined,
    },
  };
}
