import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ClusterState,
  type EndpointFilter,
  goneEndpoints,
  orphans,
  Planner,
  type SliceEndpoint,
} from "../src/index.ts";
import { fakeFilter } from "./fake-filter.ts";
import { flow } from "./flow.ts";
import { addressesOf, DRAINING, endpoint, Memory, NOT_READY, OPTIONS, replan, service, slice } from "./objects.ts";

const STAYS = "10.144.1.5";
const GOES = "10.144.1.6";
const WEB = {
  ports: [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }],
  externalIPs: ["198.51.100.1"],
  loadBalancerIPs: ["203.0.113.1"],
} as const;

function cluster(endpoints: readonly SliceEndpoint[], resetStaleTCP = true) {
  const state = new ClusterState();
  state.upsertService(service("web", WEB));
  const planner = new Planner({ ...OPTIONS, resetStaleTCP, filter: fakeFilter() });
  const memory = new Memory();
  /** What a step takes away. */
  const lost = () => {
    const change = replan(planner, state, memory).changes.get("IPv4");
    return change === undefined ? [] : [...goneEndpoints(change)];
  };
  const move = (next: readonly SliceEndpoint[]) => {
    state.upsertSlice(slice("web", next));
    return lost();
  };
  expect(move(endpoints)).toEqual([]);
  const isOrphan = (gone: ReturnType<typeof move>, text: string) => orphans(planner.lookup("IPv4"), gone)(flow(text));
  return { state, planner, lost, move, isOrphan };
}

const BOTH = [endpoint(STAYS), endpoint(GOES)];
const GONE = { group: "default/web/tcp", address: GOES, port: 8080 };

describe("an endpoint of TCP connections", () => {
  test("is gone when no slice names it", () => {
    expect(cluster(BOTH).move([endpoint(STAYS)])).toEqual([GONE]);
    expect(cluster(BOTH).move([])).toEqual([{ ...GONE, address: STAYS }, GONE]);
  });

  test.each([
    ["turned unready", NOT_READY],
    ["serves while it terminates", DRAINING],
    ["terminates", { ...DRAINING, serving: false }],
  ])("that %s is there, until it is gone", (_, condition) => {
    const { move } = cluster(BOTH);
    expect(move([endpoint(STAYS), endpoint(GOES, condition)])).toEqual([]);
    expect(move([endpoint(STAYS)])).toEqual([GONE]);
  });

  test("goes with its service, or to another network, without a word", () => {
    const deleted = cluster(BOTH);
    deleted.state.deleteService("default", "web");
    deleted.state.deleteSlice("default", "web-1");
    expect(deleted.lost()).toEqual([]);
    expect(cluster(BOTH).move([endpoint("10.244.1.5")])).toEqual([]);
  });

  test("that is in another network from now on is there, until no slice names it", () => {
    const { planner, move } = cluster(BOTH);
    const known = fakeFilter();
    const filter: EndpointFilter = {
      decide: (...facts) => ({ ...known.decide(...facts), excludes: ({ address }) => address === GOES }),
    };
    planner.setOptions({ ...OPTIONS, resetStaleTCP: true, filter });
    expect(move([...BOTH, endpoint("10.144.1.7")])).toEqual([]);
    expect(addressesOf(planner.plan("IPv4").groups.get(GONE.group)?.cluster)).not.toContain(GOES);
    expect(move([endpoint(STAYS)])).toEqual([GONE, { ...GONE, address: "10.144.1.7" }]);
  });

  test("is as ready as upstream has it where nobody asks for resets", () => {
    const { planner } = cluster([endpoint(STAYS), endpoint(GOES, NOT_READY)], false);
    expect(planner.plan("IPv4").groups.get(GONE.group)).not.toHaveProperty("present");
  });
});

describe("an entry of connection tracking", () => {
  const { move, isOrphan } = cluster(BOTH);
  const gone = move([endpoint(STAYS)]);

  test.each([
    ["tcp 10.96.0.10:80 <- 10.144.1.6:8080", true],
    ["tcp 198.51.100.1:80 <- 10.144.1.6:8080", true],
    ["tcp 203.0.113.1:80 <- 10.144.1.6:8080", true],
    ["tcp 10.201.0.10:30080 <- 10.144.1.6:8080", true],
    ["tcp 10.96.0.10:80 <- 10.144.1.5:8080", false],
    ["tcp 10.96.0.10:80 <- 10.144.1.6:80", false],
    ["tcp 10.96.0.10:81 <- 10.144.1.6:8080", false],
    ["tcp 10.96.0.11:80 <- 10.144.1.6:8080", false],
    ["tcp 10.144.1.6:8080 <- 10.144.1.6:8080", false],
    // What another program translated, or nobody.
    ["tcp 10.96.0.10:80 <- 10.144.9.9:8080", false],
    ["tcp 198.51.100.1:80 <- 198.51.100.1:80", false],
    ["udp 10.96.0.10:80 <- 10.144.1.6:8080", false],
  ])("%s keeps a client on an endpoint that is gone: %s", (text, orphan) => {
    expect(isOrphan(gone, text)).toBe(orphan);
    expect(isOrphan([], text)).toBe(false);
  });

  test("of the other family is passed over", () => {
    const { planner } = cluster(BOTH);
    const entry = flow("tcp 10.96.0.10:80 <- 10.144.1.6:8080");
    expect(orphans(planner.lookup("IPv4"), [GONE])({ ...entry, family: "IPv6" })).toBe(false);
  });

  test("goes where no endpoint is left, too, at node ports as elsewhere", () => {
    const { move, isOrphan } = cluster(BOTH);
    const gone = move([]);
    expect(isOrphan(gone, "tcp 10.96.0.10:80 <- 10.144.1.6:8080")).toBe(true);
    expect(isOrphan(gone, "tcp 10.201.0.10:30080 <- 10.144.1.5:8080")).toBe(true);
  });

  test("stays where the endpoint is back by then", () => {
    const { move, isOrphan } = cluster(BOTH);
    const gone = move([endpoint(STAYS)]);
    move(BOTH);
    expect(isOrphan(gone, "tcp 10.96.0.10:80 <- 10.144.1.6:8080")).toBe(false);
  });
});

const conditions = fc.constantFrom({}, NOT_READY, DRAINING, { ...DRAINING, serving: false });
const HOSTS = ["10.144.1.1", "10.144.1.2", "10.144.1.3", "10.144.1.4"];
const lists = fc
  .subarray(HOSTS)
  .chain((some) => fc.tuple(...some.map((address) => conditions.map((condition) => endpoint(address, condition)))));

test("whatever the steps between, orphans are the entries to what was there and is not there in the end", () => {
  fc.assert(
    fc.property(fc.array(lists, { minLength: 2, maxLength: 5 }), ([first = [], ...steps]) => {
      const { move, isOrphan } = cluster(first);
      const gone = steps.flatMap((step) => move(step));
      const named = (list: readonly SliceEndpoint[] = []) => new Set(list.map(({ address }) => address));
      const ever = new Set([first, ...steps].flatMap((list) => [...named(list)]));
      const last = named(steps.at(-1));
      for (const host of HOSTS) {
        const orphan = isOrphan(gone, `tcp 10.96.0.10:80 <- ${host}:8080`);
        expect([host, orphan]).toEqual([host, ever.has(host) && !last.has(host)]);
      }
    }),
  );
});
