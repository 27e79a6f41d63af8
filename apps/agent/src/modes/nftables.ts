import type { ModeRemoval } from "./mode.ts";

/** kube-proxy's nftables mode is not served here, but may have served this node before. */
export const nftablesRemoval: ModeRemoval = {
  facts: { name: "nftables" },
  removeTables: (kernel) => kernel.removeNftTables(),
};
