/**
 * How long it takes to compare the traffic of two tables of nftables that differ in one endpoint: services of which
 * both say the same left out, as `diff` does, and (up to 1,000 services) all of them traced.
 *
 *   pnpm exec node --conditions=@fairlead/source bench/diff-tables.ts [services] [endpoints]
 */
import { toEnd } from "@fairlead/base";
import { addressHex, type NftTable, readTables, tableText } from "@fairlead/netfilter/nft";
import { endpointSlice, goldenScenario, kubernetesService, type RawObject, service } from "@fairlead/testkit";
import { compareTraffic, dryTables, type KernelState } from "../src/index.ts";
import { planned, settingsOf } from "../test/support/scenario.ts";

const [services = 10_000, endpoints = 10] = process.argv.slice(2).map(Number);
const NODE_ADDRESS = "10.201.0.10";
const { node } = goldenScenario("01-clusterip");
const plan = await planned({ objects: [...kubernetesService(), ...workload()], node }, { mode: "nftables" });
const before = toEnd(dryTables(plan.planner.plan("IPv4"), settingsOf(node, "nftables")));
const [first, other] = ["10.144.0.1", "10.144.250.250"].map(addressHex);
const after = readTables(before.map(tableText).join("")).map((table): NftTable => {
  const sets = Array.from(table.sets, ([name, set]) => {
    const elements = Array.from(set.elements, ([key, element]) => {
      const { value } = element;
      const isOther = typeof value === "string" && first !== undefined && value.startsWith(first);
      return [key, isOther ? { ...element, value: value.replace(first, other ?? "") } : element] as const;
    });
    return [name, { ...set, elements: new Map(elements) }] as const;
  });
  return { ...table, sets: new Map(sets) };
});
const state = (nftables: readonly NftTable[], more = {}): KernelState => {
  return { ruleSet: new Map(), nftables, environment: { localAddresses: [NODE_ADDRESS], ...more } };
};
timed("left out", state(after));
// Nobody can say that surroundings of which more is known are the same. It takes minutes for thousands of services.
if (services <= 1_000) timed("all traced", state(after, { broadcastAddresses: [] }));

function timed(what: string, now: KernelState): void {
  const start = performance.now();
  const { compared, changes } = compareTraffic(state(before), now, "IPv4", NODE_ADDRESS);
  const took = (performance.now() - start).toFixed(0);
  console.log(
    `${services} services of ${endpoints}, ${what}: ${took} ms, ${compared} compared, ${changes.length} differ`,
  );
}

function workload(): readonly RawObject[] {
  return Array.from({ length: services }, (_, at) => {
    const name = `service-${at}`;
    const addresses = Array.from({ length: endpoints }, (_, index) => ({
      address: `10.${144 + (at >> 12)}.${(at >> 4) & 255}.${(((at & 15) * 10 + index) % 250) + 1}`,
    }));
    const clusterIPs = [`10.96.${(at >> 8) + 1}.${at & 255}`];
    return [
      service(name, { clusterIPs, ports: [{ port: 80, targetPort: 8080 }] }),
      endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 8080 }], endpoints: addresses }),
    ];
  }).flat();
}
