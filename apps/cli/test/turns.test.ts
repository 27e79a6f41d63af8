import { systemClock, toEnd } from "@fairlead/base";
import { parseArguments } from "@fairlead/config";
import { dryRun, dryTables, type Mode, planNode, readCluster, restored } from "@fairlead/inspect";
import { filterSettings } from "@fairlead/intake";
import { endpointSlice, service } from "@fairlead/testkit";
import { createManifestsSnapshot } from "@fairlead/watch";
import { afterEach, expect, test, vi } from "vitest";
import { check } from "../src/commands/verify/check.ts";

afterEach(() => void vi.restoreAllMocks());

const SERVICES = 50;

test.each<Mode>(["iptables", "nftables"])("%s mode: a comparison lets others have their turn", async (mode) => {
  const { planned, config } = await plannedServices(mode);
  const plan = planned.planner.plan("IPv4");
  const texts = mode === "iptables" ? await dryRun(plan, { mode, config }) : [];
  const pieces = texts.flatMap((text) => text.pieces);
  const nftables = toEnd(dryTables(plan, { mode, config }));
  const held = { ruleSet: toEnd(restored(pieces, "IPv4")), nftables, environment: { localAddresses: ["10.201.0.10"] } };
  // Each look at the clock finds the slice used up.
  let now = 0;
  vi.spyOn(systemClock, "monotonic").mockImplementation(() => {
    now += 1_000;
    return now;
  });
  const done = new AbortController();
  const turns = countTurns(done.signal);
  try {
    expect(await check(planned, { config }, "IPv4", held)).toMatchObject({ services: [] });
  } finally {
    done.abort();
  }
  // One for each chain or element, of which a service has several.
  expect(await turns).toBeGreaterThan(4 * SERVICES);
});

/** What a server would do meanwhile. */
async function countTurns(signal: AbortSignal): Promise<number> {
  let turns = 0;
  for (; !signal.aborted; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  return turns;
}

async function plannedServices(mode: Mode) {
  const parsed = parseArguments([`--proxy-mode=${mode}`], { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(`flags of the test are wrong: ${JSON.stringify(parsed)}`);
  const { config } = parsed;
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  const objects = Array.from({ length: SERVICES }, (_, at) => [
    service(`web-${at}`, { clusterIPs: [`10.96.1.${at}`], ports: [{ port: 80, targetPort: 8080 }] }),
    endpointSlice(`web-${at}-1`, {
      service: `web-${at}`,
      family: "IPv4",
      ports: [{ port: 8080 }],
      endpoints: [{ address: `10.144.1.${at + 1}` }],
    }),
  ]);
  const readStandardInput = async () => Buffer.from(JSON.stringify(objects.flat()));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  const cluster = await readCluster(source, new AbortController().signal);
  const planned = planNode({ config, filter: filter.options, cluster, nodeName: "node-a", mode });
  return { planned, config };
}
