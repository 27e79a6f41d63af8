/** What the agent asks of Windows alongside HCN: the node's addresses. */

import { networkInterfaces } from "node:os";
import { prefixLengthOf, sleep, type Timers } from "@fairlead/base";
import type { NodeAddress } from "@fairlead/kernel";
import { type LocalKernel, localKernel, sourceAddress } from "../kernel.ts";

/** Milliseconds between two looks at the node's addresses: Node does not report their changes. */
const LOOK_MS = 10_000;

/** @param list default: those of this machine */
export function windowsKernel(timers: Timers, list: () => readonly NodeAddress[] = nodeAddresses): LocalKernel {
  return {
    ...localKernel(),
    addresses: {
      list: async () => list(),
      async *watch({ signal }) {
        let last = "";
        while (!signal.aborted) {
          const now = list();
          const text = JSON.stringify(now);
          if (text !== last) yield now;
          last = text;
          await sleep(timers, LOOK_MS, signal);
        }
      },
    },
    sourceAddress,
    probed: true,
  };
}

function nodeAddresses(): readonly NodeAddress[] {
  return Object.entries(networkInterfaces()).flatMap(([name, list = []]) =>
    list.map(({ address, cidr, family, internal }) => ({
      family,
      // Windows gives an address the number of its interface.
      address: address.replace(/%.*/, ""),
      prefixLength: cidr === null ? 0 : prefixLengthOf(cidr),
      interface: name,
      scope: internal ? "host" : "global",
      up: true,
    })),
  );
}
