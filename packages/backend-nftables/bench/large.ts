import type { ForwardingPlan, GroupChange, PlanChange, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { openNftables } from "@fairlead/kernel";
import { createNamespace, netlinkIn } from "@fairlead/kernel/netns";
import { createNftablesBackend } from "../src/index.ts";

/**
 * A full sync and single changes on the real kernel, in a namespace of its own, and how long the event loop waited:
 *
 *     node --conditions=@fairlead/source bench/large.ts [services] [endpoints] [sticky services]
 */
const [services = 10_000, endpoints = 10, sticky = 0] = process.argv.slice(2).map(Number);
const ROUNDS = 50;

const PROXIED = { verdict: "proxy", set: "cluster", masquerade: false } as const;

function endpoint(service: number, number: number): PlanEndpoint {
  const at = service * 32 + number;
  return { address: `10.${144 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`, port: 8080, local: false };
}

function group(service: number, list: readonly PlanEndpoint[]): ServicePortGroup {
  return {
    id: `default/web-${service}:http/tcp`,
    name: `default/web-${service}:http`,
    service: `default/web-${service}`,
    family: "IPv4",
    protocol: "TCP",
    cluster: list,
    local: [],
    serving: list,
    endpointCount: list.length,
    ...(service < sticky && { affinitySeconds: 10_800 }),
    frontends: [
      {
        kind: "cluster-ip",
        reach: "internal",
        at: "address",
        address: `10.96.${service >> 8}.${service & 255}`,
        port: 80,
        policy: "Cluster",
        treatments: { pod: PROXIED, node: PROXIED, outside: PROXIED },
      },
    ],
    annotations: {},
  };
}

const groups = new Map<string, ServicePortGroup>();
for (let service = 0; service < services; service++) {
  const made = group(
    service,
    Array.from({ length: endpoints }, (_, number) => endpoint(service, number)),
  );
  groups.set(made.id, made);
}
const plan: ForwardingPlan = {
  family: "IPv4",
  groups,
  node: { detector: { kind: "none" }, nodePortAddresses: { kind: "list", addresses: ["10.0.0.1"] } },
  healthChecks: new Map(),
  foreignClusterIPs: new Set(),
  endpointCount: services * endpoints,
};

function change(before: ServicePortGroup | undefined, after: ServicePortGroup | undefined): PlanChange {
  const id = (after ?? before)?.id ?? "";
  if (after === undefined) groups.delete(id);
  else groups.set(id, after);
  const one: GroupChange = { ...(before && { before }), ...(after && { after }) };
  return {
    family: "IPv4",
    groups: new Map([[id, one]]),
    healthChecks: new Map(),
    foreignClusterIPs: { added: [], removed: [] },
  };
}

await using namespace = await createNamespace();
const nft = await openNftables({ open: netlinkIn(namespace).transactions });
let sent = 0;
const port = {
  ...nft,
  commit: async (batch: Parameters<typeof nft.commit>[0]) => {
    const started = performance.now();
    await nft.commit(batch);
    sent += performance.now() - started;
  },
};
const backend = createNftablesBackend(port, { family: "IPv4" });

let longest = 0;
let turned = performance.now();
const turns = setInterval(() => {
  longest = Math.max(longest, performance.now() - turned);
  turned = performance.now();
}, 1);

async function timed(what: string, work: () => Promise<unknown>): Promise<void> {
  sent = 0;
  longest = 0;
  turned = performance.now();
  const cpu = process.cpuUsage();
  const started = performance.now();
  await work();
  const took = performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  const ms = (value: number) => value.toFixed(2);
  console.log(
    `${what}: ${ms(took)} ms, of which the kernel ${ms(sent)}; CPU user ${ms(user / 1000)} system ${ms(system / 1000)}; longest turn ${ms(longest)}`,
  );
}

const heap = () => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
};
const before = heap();
await timed("full sync", () => backend.sync(plan));
console.log(`kept: ${(heap() - before).toFixed(1)} MB (only told with --expose-gc)`);
await timed("a look at all of it", () => backend.difference(plan));
if (!process.env["ONCE"]) await timed("full sync again", () => backend.sync(plan));
const each = async (step: (service: number) => readonly PlanChange[]) => {
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of step((round * 37) % services)) await backend.apply(plan, one);
  }
};
const list = (service: number) => groups.get(`default/web-${service}:http/tcp`) ?? group(service, []);
await timed(`${ROUNDS} endpoints replaced`, () =>
  each((service) => {
    const before = list(service);
    return [change(before, { ...before, cluster: [...before.cluster.slice(1), endpoint(service, 30)] })];
  }),
);
await timed(`${ROUNDS} endpoints more, ${ROUNDS} less`, () =>
  each((service) => {
    const before = list(service);
    const more = { ...before, cluster: [...before.cluster, endpoint(service, 31)] };
    return [change(before, more), change(more, before)];
  }),
);
await timed(`${ROUNDS} services more`, () =>
  each((service) => [change(undefined, group(services + service, [endpoint(1, 1), endpoint(1, 2)]))]),
);
clearInterval(turns);
await nft.close();
