import { fileURLToPath } from "node:url";
import { FROM_SOURCES, type Script, startScript } from "@fairlead/lab/support/script";
import { runs } from "@fairlead/tooling/runs";
import { afterAll, beforeAll, describe, test } from "vitest";
import { groupCases, nftTable } from "../../src/cases/conformance/groups.ts";
import { strays } from "../../src/cases/conformance/probe-case.ts";
import { portsOf } from "../../src/cases/conformance/programmed.ts";
import { labFor } from "./lab-for.ts";

const PROGRAM = fileURLToPath(new URL("../../src/cases/conformance/program-nft-main.ts", import.meta.url));

/** Of an agent with a name backend-nftables has all rows on the fake; long runs send packets for all of them. */
const EVERY = runs(1) > 1 ? 1 : 5;

/** Of the first proxy of a node. */
export function nftConformance(): void {
  describe("conformance in nftables mode with real packets", () => rowsOf(""));
}

export function namedNftConformance(): void {
  const name = "conformance of a named instance alongside a first proxy in nftables mode, with real packets";
  describe(name, () => rowsOf("edge"));
}

function rowsOf(serviceProxyName: string): void {
  const table = nftTable(serviceProxyName, EVERY);
  const lab = labFor(portsOf(table));
  let node: Script;

  beforeAll(async () => {
    node = await startScript(lab.namespace("node-a"), PROGRAM, [serviceProxyName, String(EVERY)], FROM_SOURCES);
  });

  afterAll(() => node.stop());

  describe.each(groupCases(table).map(({ rows }, at) => ({ rows, at })))("options $at", ({ rows, at }) => {
    let traced: Readonly<Record<string, readonly string[]>>;

    beforeAll(async () => {
      traced = JSON.parse(await node.ask(String(at)));
    });

    for (const row of rows) {
      const { nftables } = row.expected;
      if ("skip" in nftables) continue;
      test.concurrent(row.name, async ({ expect }) => {
        expect(traced[row.name], "tracer").toEqual([]);
        if (row.unreal === undefined) expect(await strays(lab, row, nftables), "real packets").toEqual([]);
      });
    }
  });
}
