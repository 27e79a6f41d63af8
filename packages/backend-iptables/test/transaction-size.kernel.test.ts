import { compareRuleSets } from "@fairlead/netfilter";
import { expect } from "vitest";
import { createIptablesBackend } from "../src/index.ts";
import { fresh, manyServices, syncUntilTaken } from "./support/many-services.ts";
import { kernelTest } from "./support/real-kernel.ts";

kernelTest(
  "in a user namespace, where the kernel takes small transactions only, 900 services are served and removed",
  async (kernel) => {
    const port = await kernel.open("IPv4", "nft");
    const backend = createIptablesBackend(port);
    const plan = manyServices({ served: 500, without: 400 });
    expect(await syncUntilTaken(backend, plan)).toBeGreaterThan(0);
    for (const table of ["nat", "filter"] as const) {
      const wanted = new Map([...(await fresh(plan))].filter(([name]) => name === table));
      expect(compareRuleSets(wanted, new Map([[table, await port.save(table)]]))).toEqual([]);
    }
    await createIptablesBackend(await kernel.open("IPv4", "nft")).cleanup();
    expect([...(await port.chains("nat"))].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
  },
  { user: true },
);
