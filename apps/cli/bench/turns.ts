/**
 * How long a comparison of a node's kernel with its plan, as `fairlead verify` and the console make it, keeps the event
 * loop from others: all well; in iptables mode also one rule missing, and others' rules before them (all traffic).
 *
 *   pnpm exec node --conditions=@fairlead/source bench/turns.ts [services] [endpoints] [mode]
 */
import { inSlices, toEnd } from "@fairlead/base";
import { parseArguments } from "@fairlead/config";
import { dryRun, dryTables, MODES, type Mode, planNode, readCluster } from "@fairlead/inspect";
import { filterSettings } from "@fairlead/intake";
import type { SavedRules } from "@fairlead/netfilter";
import { endpointSlice, kubernetesService, type RawObject, service } from "@fairlead/testkit";
import { restored } from "@fairlead/verify";
import { createManifestsSnapshot } from "@fairlead/watch";
import { check } from "../src/commands/verify/check.ts";

const [services = 10_000, endpoints = 10] = process.argv.slice(2, 4).map(Number);
const mode: Mode = MODES.find((one) => one === process.argv[4]) ?? "iptables";
const ADDRESS = "10.201.0.10";

const { config, filter } = configuration();
const planned = await plannedNode();
const plan = planned.planner.plan("IPv4");
const payload = (await dryRun(plan, { mode, config }))
  .filter(({ argv: [program] }) => program === "iptables-restore")
  .flatMap(({ pieces }) => pieces)
  .join("");
const environment = { localAddresses: [ADDRESS] };
const nftables = toEnd(dryTables(plan, { mode, config }));
const all = await inSlices(restored([payload], "IPv4"));

await timed("all well", all);
if (nftables.length === 0) {
  await timed("one rule missing", await damaged(/^-A KUBE-SEP-\S+ -p tcp .*DNAT.*\n/m, ""));
  const others = "*nat\n-A PREROUTING -s 192.0.2.0/24 -j ACCEPT\n";
  await timed("others' rules: all traffic", await damaged("*nat\n", others));
}

function damaged(what: string | RegExp, by: string): Promise<SavedRules> {
  return inSlices(restored([payload.replace(what, by)], "IPv4"));
}

async function timed(what: string, rules: SavedRules): Promise<void> {
  const turns = new AbortController();
  const longest = longestTurn(turns.signal);
  const start = performance.now();
  const { services: found } = await check(planned, { config }, "IPv4", { rules, nftables, environment });
  const took = performance.now() - start;
  turns.abort();
  console.log(
    `${services} services of ${endpoints}, ${mode}, ${what}: ${took.toFixed(0)} ms, at most ${(await longest).toFixed(0)} ms in one go, ${found.length} differ`,
  );
}

/** Milliseconds between two turns of the event loop, at most. */
async function longestTurn(signal: AbortSignal): Promise<number> {
  let [longest, last] = [0, performance.now()];
  while (!signal.aborted) {
    await new Promise((resolve) => setImmediate(resolve));
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}

function configuration() {
  const flags = ["--cluster-cidr=10.144.0.0/12", `--proxy-mode=${mode}`];
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(`flags of the bench are wrong: ${JSON.stringify(parsed)}`);
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  return { config: parsed.config, filter: filter.options };
}

async function plannedNode() {
  const readStandardInput = async () => Buffer.from(JSON.stringify([...kubernetesService(), ...workload()]));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  const cluster = await readCluster(source, new AbortController().signal);
  return planNode({ config, filter, cluster, nodeName: "node-a", mode, addresses: ["127.0.0.1", "::1", ADDRESS] });
}

function workload(): RawObject[] {
  return Array.from({ length: services }, (_, at) => {
    const name = `service-${at}`;
    const clusterIP = `10.96.${(at >> 8) + 1}.${at & 255}`;
    const addresses = Array.from({ length: endpoints }, (_, index) => ({
      address: `10.${144 + (at >> 12)}.${(at >> 4) & 255}.${(((at & 15) * 10 + index) % 250) + 1}`,
    }));
    return [
      service(name, { clusterIPs: [clusterIP], ports: [{ port: 80, targetPort: 8080 }] }),
      endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 8080 }], endpoints: addresses }),
    ];
  }).flat();
}
