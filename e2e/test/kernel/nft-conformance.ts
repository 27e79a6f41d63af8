import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, test } from "vitest";
import { groupCases } from "../../src/conformance/groups.ts";
import { nftTable } from "../../src/conformance/nft-table.ts";
import { portsOf } from "../../src/conformance/ports.ts";
import { strays } from "../../src/conformance/strays.ts";
import { type Lab, openLab } from "../../src/lab/lab.ts";
import { type Script, startScript } from "../../src/support/script.ts";

const PROGRAM = fileURLToPath(new URL("../../src/conformance/program-nft-main.ts", import.meta.url));

describe.each([
  ["conformance in nftables mode with real packets", ""],
  ["conformance of a named instance beside a first proxy in nftables mode, with real packets", "edge"],
])("%s", (_, serviceProxyName) => {
  const table = nftTable(serviceProxyName);
  let lab: Lab;
  let node: Script;

  beforeAll(async () => {
    lab = await openLab(portsOf(table));
    node = await startScript(lab.namespace("node-a"), PROGRAM, [serviceProxyName], ["--conditions=@fairlead/source"]);
  });

  afterAll(async () => {
    await node.stop();
    await lab.dispose();
  });

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
});
