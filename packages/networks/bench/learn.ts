/**
 * What learned CIDRs cost next to 10,000 services of 10 endpoints, and 1,000 subnets: by the clock, the median of 15,
 * and in processor time; and how long the longest step holds the event loop. The source has `within`, and there is a
 * pool of our own. `churn`: 100 subnets go and 100 come, each with services in it, as in one second of changes.
 * Run: pnpm exec node --conditions=@fairlead/source bench/learn.ts
 */
import type { ServiceKey } from "@fairlead/core";
import { AddressIndex, Networks, networkSource, type ServicesView } from "@fairlead/networks";

const SERVICES = 10_000;
const ENDPOINTS = 10;
const SUBNETS = 1_000;
const ROUNDS = 15;
/** Subnets that go, and as many that come. */
const CHURN = 100;
const WITHIN = { IPv4: ["10.0.0.0/8"], IPv6: ["fd00::/15"] };
const POOL = { IPv4: "172.16.0.0/12", IPv6: "fda0::/16" };

const FAMILIES = {
  IPv4: {
    address: (n: number) => `10.${128 + (n >>> 16)}.${(n >>> 8) & 255}.${n & 255}`,
    subnet: (n: number) => `10.${n >>> 8}.${n & 255}.0/24`,
    one: (n: number) => `10.200.${n}.0/24`,
    touching: (n: number) => `10.129.${n}.4/32`,
    churned: (n: number) => `10.128.${n & 255}.${(n >>> 8) * 16}/28`,
  },
  IPv6: {
    address: (n: number) => `fd00:0:${(n >>> 16).toString(16)}::${(n & 0xffff).toString(16)}`,
    subnet: (n: number) => `fd01:${n.toString(16)}::/64`,
    one: (n: number) => `fd02:${n.toString(16)}::/64`,
    touching: (n: number) => `fd00:0:1::${(n * 256 + 4).toString(16)}/128`,
    churned: (n: number) => `fd00:0:0::${(n * 16).toString(16)}/124`,
  },
} as const;

for (const family of ["IPv4", "IPv6"] as const) {
  const { address, subnet, one, touching, churned } = FAMILIES[family];
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
    keys: () => addresses.keys(),
    within: (cidr) => index.within(cidr),
    inNamespace: (namespace) => (namespace === "bench" ? addresses.keys() : []),
  };
  console.log(
    `${family}: index of ${SERVICES * ENDPOINTS} endpoints ${filled.toFixed(0)} ms, about ${megabytes.toFixed(0)} MiB with its texts`,
  );
  for (const count of [0, SUBNETS]) {
    let now = 0;
    const source = networkSource("kube-ovn-subnets");
    const pools = networkSource("calico-ippools");
    const networks = new Networks(
      {
        consentNamespace: "kube-system",
        written: { own: [], excluded: [] },
        sources: { own: [pools], excluded: [source] },
        within: new Map([[source.id, WITHIN[family]]]),
        filter: { mixedServices: "own-endpoints", excludedFrontends: "all", ownershipAnnotation: true },
        debounceMs: 0,
        removalDelayMs: 0,
      },
      { now: () => now, monotonic: () => now++ },
    );
    const add = (name: string, cidrBlock: string) =>
      networks.objects.upsert(source.id, 0, `Subnet/${name}`, { spec: { cidrBlock } });
    for (let n = 0; n < count; n++) add(`s${n}`, subnet(n));
    networks.objects.upsert(pools.id, 0, "IPPool/ours", { spec: { cidr: POOL[family] } });
    for (const { id } of [source, pools]) {
      networks.objects.setState(id, 0, "listed");
      networks.objects.setState(id, 1, "absent");
    }
    const first = stepped(networks.deciding(services));
    const median = (cidr: (round: number) => string) => {
      const rounds = Array.from({ length: ROUNDS }, (_, round) => {
        add(cidr(round), cidr(round));
        return stepped(networks.deciding(services));
      });
      const middle = (figures: readonly number[]) => figures.toSorted((a, b) => a - b)[ROUNDS >>> 1] ?? 0;
      return `${middle(rounds.map(({ all }) => all)).toFixed(1)} ms (CPU ${middle(rounds.map(({ cpu }) => cpu)).toFixed(1)})`;
    };
    const idle = median(one);
    const busy = median(touching);
    let [most, longest] = [0, 0];
    for (let round = 0; round < ROUNDS; round++) {
      for (let at = 0; at < CHURN; at++) {
        networks.objects.delete(source.id, 0, `Subnet/churn${round - 1}.${at}`);
        add(`churn${round}.${at}`, churned(round * CHURN + at));
      }
      const steps = stepped(networks.deciding(services));
      [most, longest] = [Math.max(most, steps.cpu), Math.max(longest, steps.longest)];
    }
    console.log(
      `  ${count} subnets: first decision ${first.all.toFixed(1)} ms (CPU ${first.cpu.toFixed(1)}), longest step ` +
        `CPU ${first.longest.toFixed(1)}; one more ${idle}; one more that touches a service ${busy}; ` +
        `churn at most CPU ${most.toFixed(1)}, longest step CPU ${longest.toFixed(1)}`,
    );
  }
}

interface Steps {
  readonly all: number;
  readonly longest: number;
  readonly cpu: number;
}

/**
 * Milliseconds of a decision by the clock, and of processor time: of all of it with V8's threads, and of this thread in
 * the longest step. Nobody has a turn between the steps here.
 */
function stepped(steps: Iterator<void>): Steps {
  const cpu = process.cpuUsage();
  const start = performance.now();
  let longest = 0;
  for (let done: boolean | undefined = false; done !== true; ) {
    const before = process.threadCpuUsage();
    done = steps.next().done;
    longest = Math.max(longest, milliseconds(process.threadCpuUsage(before)));
  }
  return { all: performance.now() - start, longest, cpu: milliseconds(process.cpuUsage(cpu)) };
}

function milliseconds({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}

function timed(run: () => void): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}
