import type { IPFamily } from "@fairlead/core";
import { applySettings } from "@fairlead/lab/wire";
import { tableText } from "@fairlead/netfilter/nft";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { nftTables } from "../../src/cases/tracer/arbitrary-nft.ts";
import { PORTS, sentPackets } from "../../src/cases/tracer/arbitrary-rules.ts";
import { compare } from "../../src/cases/tracer/compare.ts";
import { labFor } from "./lab-for.ts";

/** FAIRLEAD_TRACE_SEED: other pairs of packet and table. */
const { FAIRLEAD_TRACE_SEED: seed = "1" } = process.env;
const PACKETS = 25;
const numRuns = runs(20);
const LISTEN = { tcp: PORTS, udp: PORTS };

const situations = fc.constantFrom<IPFamily>("IPv4", "IPv6").chain((family) =>
  fc.record({
    family: fc.constant(family),
    table: nftTables(family),
    packets: fc.array(sentPackets(family), { minLength: PACKETS, maxLength: PACKETS }),
  }),
);

describe("the tracer and the real kernel, with tables of nftables", () => {
  const lab = labFor({ podPorts: LISTEN, landingPorts: LISTEN });

  beforeAll(async () => {
    await applySettings(lab.runner("node-a"), { "net/ipv4/conf/all/route_localnet": "1" });
  });

  test(`agree on ${numRuns * PACKETS} packets through random tables`, async () => {
    const runner = lab.runner("node-a");
    const seen = new Set<string>();
    const property = fc.asyncProperty(situations, async ({ family, table, packets }) => {
      const name = [table.family, table.name] as const;
      await runner.run(["nft", "-f", "-"], { input: tableText(table) });
      try {
        const { differences, kinds } = await compare(lab, { nftables: [table] }, packets, family);
        for (const kind of kinds) seen.add(kind);
        expect(differences).toEqual([]);
      } finally {
        await runner.run(["nft", "delete", "table", ...name]);
      }
    });
    await fc.assert(property, { numRuns, seed: Number(seed), endOnFailure: true });
    // By chance, and not in every run.
    seen.delete("accept, port taken");
    expect([...seen].sort()).toEqual(["accept", "accept, masqueraded", "drop", "reject"]);
  });
});
