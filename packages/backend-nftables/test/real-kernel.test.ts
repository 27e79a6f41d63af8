import { expect } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { described } from "./support/described.ts";
import { recordings } from "./support/golden.ts";
import { kernelTest } from "./support/real-kernel.ts";

const FAMILIES = { IPv4: "ip", IPv6: "ip6" } as const;

kernelTest(
  "every recording: the kernel holds what was planned, and nft prints it and takes what it printed",
  async (kernel) => {
    const { nft, runner } = kernel;
    for (const { name, family, plan } of recordings()) {
      await createNftablesBackend(nft, { family }).sync(plan);
      const held = await nft.table(FAMILIES[family], "kube-proxy");
      expect(held && described(held), `${name} ${family}`).toEqual(described(planTable(plan)));
      const { stdout: printed } = await runner.run(["nft", "list", "table", FAMILIES[family], "kube-proxy"]);
      await runner.run(["nft", "delete", "table", FAMILIES[family], "kube-proxy"]);
      await runner.run(["nft", "-f", "-"], { input: printed });
      const loaded = await nft.table(FAMILIES[family], "kube-proxy");
      // Rules may differ: nft takes the maps' `tcp dport`, the only one that it reads again, at its word.
      expect(loaded && described(loaded).sets, `${name} ${family}, loaded`).toEqual(described(planTable(plan)).sets);
    }
  },
);
