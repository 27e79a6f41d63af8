/**
 * One decision for a service with 10 endpoints, by the number of excluded CIDRs, in processor time. However many they
 * are, they cover the same half of the addresses.
 * Run: pnpm exec node --conditions=@fairlead/source bench/lookup.ts
 */
import type { Service } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";

const SERVICES = 10_000;
const ENDPOINTS = 10;
const COUNTS = [8, 64, 1_024];

const SERVICE: Service = {
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

/** The next 16 bits of a linear congruential generator: every run has the same addresses. */
function generator(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 16;
  };
}

/** `count` is a power of two; the networks are every other one of their length. */
const FAMILIES = {
  IPv4: {
    cidr(index: number, count: number) {
      const address = 10 * 2 ** 24 + index * (2 ** 24 / count);
      return `10.${(address >>> 16) & 255}.${(address >>> 8) & 255}.0/${9 + Math.log2(count)}`;
    },
    address: (next: () => number) => `10.${next() & 255}.${next() & 255}.${1 + (next() % 250)}`,
  },
  IPv6: {
    cidr: (index: number, count: number) =>
      `fd00:${((index * 65_536) / count).toString(16)}::/${17 + Math.log2(count)}`,
    address: (next: () => number) =>
      `fd00:${next().toString(16)}:0:${next().toString(16)}::${(1 + next()).toString(16)}`,
  },
};

for (const [family, { cidr, address }] of Object.entries(FAMILIES)) {
  const next = generator();
  const endpoints = Array.from({ length: SERVICES }, () => Array.from({ length: ENDPOINTS }, () => address(next)));
  for (const count of COUNTS) {
    const filter = createEndpointFilter({
      excludeCIDRs: Array.from({ length: count }, (_, index) => cidr(index, count)),
      mixedServices: "own-endpoints",
      excludedFrontends: "all",
      ownershipAnnotation: true,
    });
    let excluded = 0;
    const rounds = Array.from({ length: 15 }, () => {
      const start = process.threadCpuUsage();
      for (const list of endpoints) excluded += filter.decide(SERVICE, "IPv4", list, undefined).excludedEndpoints;
      const { user, system } = process.threadCpuUsage(start);
      return (user + system) / SERVICES;
    }).sort((a, b) => a - b);
    const share = Math.round((100 * excluded) / (rounds.length * SERVICES * ENDPOINTS));
    const microseconds = (rounds[7] ?? 0).toFixed(1);
    console.log(`${family}, ${count} CIDRs: ${microseconds} µs a decision, ${share} % of the endpoints excluded`);
  }
}
