/**
 * What a learnt CIDR costs beside 10,000 services of 10 endpoints, and what 1,000 subnets cost. By the clock; median of
 * 15.
 * Run: pnpm exec node --conditions=@fairlead/source bench/learn.ts
 */
import type { Service, ServiceKey } from "@fairlead/core";
import { AddressIndex, Networks, networkSource, type ServicesView } from "@fairlead/networks";

const SERVICES = 10_000;
const ENDPOINTS = 10;
const SUBNETS = 1_000;
const ROUNDS = 15;

const TEMPLATE: Service = {
  namespace: "bench",
  name: "web",
  clusterIPs: ["10.96.0.1"],
  ports: [],
  externalIPs: [],
  loadBalancerIPs: [],
  loadBalancerSourceRanges: [],
  internalTrafficPolicy: "Cluster",
  externalTrafficPolicy: "Cluster",
  annotations: {},
};

const FAMILIES = {
  IPv4: {
    address: (n: number) => `10.${128 + (n >>> 16)}.${(n >>> 8) & 255}.${n & 255}`,
    subnet: (n: number) => `10.${n >>> 8}.${n & 255}.0/24`,
    one: (n: number) => `10.200.${n}.0/24`,
    touching: (n: number) => `10.129.${n}.4/32`,
  },
  IPv6: {
    address: (n: number) => `fd00:0:${(n >>> 16).toString(16)}::${(n & 0xffff).toString(16)}`,
    subnet: (n: number) => `fd01:${n.toString(16)}::/64`,
    one: (n: number) => `fd02:${n.toString(16)}::/64`,
    touching: (n: number) => `fd00:0:1::${(n * 256 + 4).toString(16)}/128`,
  },
} as const;

for (const family of ["IPv4", "IPv6"] as const) {
  const { address, subnet, one, touching } = FAMILIES[family];
  const index = new AddressIndex();
  const addresses = new Map<ServiceKey, readonly string[]>();
  const before = process.memoryUsage().heapUsed;
  const filled = timed(() => {
    for (let n = 0; n < SERVICES; n++) {
      const key: ServiceKey = `bench/s${n}`;
      const list = Array.from({ length: ENDPOINTS }, (_, at) => address(n * ENDPOINTS + at));
      addresses.set(key, list);
      index.set(key, list);
    }
  });
  const megabytes = (process.memoryUsage().heapUsed - before) / 2 ** 20;
  const services: ServicesView = {
    size: SERVICES,
    within: (cidr) => index.within(cidr),
    service: (key) => (addresses.has(key) ? TEMPLATE : undefined),
    addresses: (key, asked) => (asked === family ? (addresses.get(key) ?? []) : []),
  };
  console.log(
    `${family}: index of ${SERVICES * ENDPOINTS} endpoints ${filled.toFixed(0)} ms, about ${megabytes.toFixed(0)} MiB with its texts`,
  );
  for (const count of [0, SUBNETS]) {
    let now = 0;
    const source = networkSource("kube-ovn-subnets");
    const networks = new Networks(
      {
        written: { own: [], excluded: [] },
        sources: { own: [], excluded: [source] },
        filter: { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true },
        debounceMs: 0,
        removalDelayMs: 0,
        maxForeignPercent: 50,
      },
      { now: () => now, monotonic: () => now++ },
    );
    const add = (name: string, cidrBlock: string) =>
      networks.upsert(source.id, 0, `Subnet/${name}`, { spec: { cidrBlock } });
    for (let n = 0; n < count; n++) add(`s${n}`, subnet(n));
    networks.setState(source.id, 0, "listed");
    const first = timed(() => networks.decide(services));
    const median = (cidr: (round: number) => string) => {
      const rounds = Array.from({ length: ROUNDS }, (_, round) => {
        add(cidr(round), cidr(round));
        return timed(() => networks.decide(services));
      });
      return rounds.sort((a, b) => a - b)[ROUNDS >>> 1] ?? 0;
    };
    const idle = median(one).toFixed(2);
    const busy = median(touching).toFixed(2);
    console.log(
      `  ${count} subnets: first decision ${first.toFixed(1)} ms; one more ${idle} ms; one more that touches a service ${busy} ms`,
    );
  }
}

function timed(run: () => void): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}
