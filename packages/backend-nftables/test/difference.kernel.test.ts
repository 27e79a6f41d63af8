import { NFT_FAMILY } from "@fairlead/netfilter/nft";
import { expect } from "vitest";
import { createNftablesBackend } from "../src/index.ts";
import { DAMAGES, lookedAt } from "./support/damages.ts";
import { described } from "./support/described.ts";
import { planOfEveryKind } from "./support/every-kind.ts";
import { kernelTest } from "./support/real-kernel.ts";

kernelTest(
  "the kernel's own table does not differ from what was written, until it is damaged",
  async ({ nft, runner }) => {
    for (const family of ["IPv4", "IPv6"] as const) {
      const backend = createNftablesBackend(nft, { family });
      const plan = planOfEveryKind(family);
      await backend.sync(plan);
      expect(await lookedAt(backend), family).toBeUndefined();
      const before = await nft.table(NFT_FAMILY[family], "kube-proxy");
      if (family === "IPv6" || before === undefined) continue;
      const repaired = async (what: string, said: string) => {
        const difference = await lookedAt(backend);
        expect(difference?.what.join("; "), what).toContain(said);
        if (difference?.repaired === false) await backend.sync(plan);
        const after = await nft.table("ip", "kube-proxy");
        expect(after && described(after), what).toEqual(described(before));
        expect(await lookedAt(backend), what).toBeUndefined();
      };
      for (const [what, [damage, said]] of Object.entries(DAMAGES)) {
        await nft.commit(damage(before));
        await repaired(what, said);
      }
      await runner.run(["nft", "add table ip kube-proxy { flags dormant; }"]);
      await repaired("dormant", "the table is dormant");
      const { stdout } = await runner.run(["nft", "list", "table", "ip", "kube-proxy"]);
      await runner.run(["nft", "-f", "-"], { input: `delete table ip kube-proxy\n${stdout}` });
      await repaired("written again by nft", "differs in its rules");
    }
  },
);
