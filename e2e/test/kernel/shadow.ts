import type { KubeProxyMode } from "@fairlead/lab/plain/kube-proxy";
import { type Lab, openLab } from "@fairlead/lab/plain/lab";
import { requireTool } from "@fairlead/lab/tools/page-reader";
import { conformanceTable } from "@fairlead/testkit";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { portsOf } from "../../src/cases/conformance/programmed.ts";
import { damagesTold, heldBy, statesAgree } from "../../src/cases/shadow.ts";
import { IPTABLES_DAMAGES, iptablesAsNow, NFTABLES_DAMAGES, tableAsNow } from "../../src/cases/shadow-damages.ts";

const LIMIT_MS = 3_600_000;

const MODES: readonly KubeProxyMode[] = [
  { mode: "iptables", variant: "nft" },
  { mode: "iptables", variant: "legacy" },
  { mode: "nftables", variant: "nft" },
];

/** Runs where FAIRLEAD_KUBE_PROXY names the real kube-proxy. */
export function shadowBesideKubeProxy(program: string): void {
  describe("a shadow beside the real kube-proxy", () => {
    let lab: Lab;

    beforeAll(requireTool);

    beforeEach(async () => {
      lab = await openLab(portsOf(conformanceTable));
    });

    afterEach(() => lab.dispose());

    test.each(MODES)(
      "$mode $variant: nothing is told in random states, and nothing written",
      { timeout: LIMIT_MS },
      async (mode) => {
        const found = await statesAgree(lab, { ...mode, program }, () => heldBy(lab.runner("node-a")));
        expect(found.mode).toBe(mode.mode);
        expect(found.differences).toEqual([]);
        expect(found.after).toEqual(found.before);
      },
    );

    test.each([
      { mode: "iptables", variant: "nft", damages: IPTABLES_DAMAGES, mending: iptablesAsNow } as const,
      { mode: "nftables", variant: "nft", damages: NFTABLES_DAMAGES, mending: tableAsNow } as const,
    ])("$mode: each damage is told", { timeout: LIMIT_MS }, async ({ damages, mending, ...mode }) => {
      for await (const { what, kind, afterMs } of damagesTold(lab, { ...mode, program }, { damages, mending })) {
        process.stdout.write(`shadow, ${mode.mode}: ${what}: ${kind} told after ${afterMs} ms\n`);
      }
    });
  });
}
