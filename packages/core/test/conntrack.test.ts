import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ClusterState,
  type EndpointFilter,
  frontendLookup,
  goneEndpoints,
  orphans,
  Planner,
  releasedFlows,
  type Service,
  type SliceEndpoint,
  staleFlows,
} from "../src/index.ts";
import {
  addressesOf,
  DRAINING,
  endpoint,
  fakeFilter,
  flow,
  Memory,
  NOT_READY,
  OPTIONS,
  replan,
  service,
  slice,
} from "./objects.ts";

const DNS = {
  ports: [{ name: "", protocol: "UDP", port: 53, nodePort: 30_053 }],
  externalIPs: ["198.51.100.1"],
  loadBalancerIPs: ["203.0.113.1"],
} as const;
const POD = "10.144.1.5";

function planned(
  fields: Partial<Service>,
  endpoints: readonly SliceEndpoint[],
  protocol: "UDP" | "TCP" | "SCTP" = "UDP",
) {
  const state = new ClusterState();
  const ports = [{ name: "", protocol, port: 8080 }];
  state.upsertService(service("web", fields));
  state.upsertSlice(slice("web", endpoints, { ports }));
  const memory = new Memory();
  const planner = new Planner({ ...OPTIONS, filter: fakeFilter() });
  const change = replan(planner, state, memory).changes.get("IPv4");
  if (change === undefined) throw new Error("nothing is planned");
  const move = (addresses: readonly string[]) => {
    state.upsertSlice(
      slice(
        "web",
        addresses.map((address) => endpoint(address)),
        { ports },
      ),
    );
    return replan(planner, state, memory);
  };
  return { planner, move, change };
}

function isStale(planner: Planner, text: string, nodeAddresses?: ReadonlySet<string>): boolean {
  const options = nodeAddresses === undefined ? {} : { nodeAddresses };
  return [...staleFlows(planner.lookup("IPv4"), [flow(text)], options)].length > 0;
}

describe("stale", () => {
  const { planner } = planned(DNS, [
    endpoint(POD),
    endpoint("10.144.1.6", DRAINING),
    endpoint("10.144.1.7", NOT_READY),
  ]);

  test.each([
    ["udp 10.96.0.10:53 <- 10.144.1.5:8080", false],
    ["udp 10.96.0.10:53 <- 10.144.1.6:8080", false],
    ["udp 10.96.0.10:53 <- 10.144.1.7:8080", true],
    ["udp 10.96.0.10:53 <- 10.144.9.9:8080", true],
    ["udp 10.96.0.10:53 <- 10.144.1.5:53", true],
    ["udp 10.96.0.10:53 <- 10.96.0.10:53", true],
    ["udp 198.51.100.1:53 <- 10.144.9.9:8080", true],
    ["udp 203.0.113.1:53 <- 10.144.9.9:8080", true],
    ["udp 203.0.113.1:53 <- 10.144.1.5:8080", false],
    ["udp 10.201.0.10:30053 <- 10.144.9.9:8080", true],
    ["udp 10.201.0.10:30053 <- 10.144.1.5:8080", false],
    ["tcp 10.96.0.10:53 <- 10.144.9.9:8080", false],
    ["sctp 10.96.0.10:53 <- 10.144.9.9:8080", false],
    ["icmp 10.96.0.10 <- 10.144.9.9", false],
    ["udp 10.96.0.10:54 <- 10.144.9.9:8080", false],
    ["udp 10.96.0.11:53 <- 10.144.9.9:8080", false],
  ])("%s: %s", (text, stale) => expect(isStale(planner, text)).toBe(stale));

  test("flows of the other family are passed over", () => {
    const other = { ...flow("udp 10.96.0.10:53 <- 10.144.9.9:8080"), family: "IPv6" as const };
    expect([...staleFlows(planner.lookup("IPv4"), [other])]).toEqual([]);
  });

  test("flows come back as they were given, with whatever else they carry", () => {
    const given = flow("udp 10.96.0.10:53 <- 10.144.9.9:8080");
    expect([...staleFlows(planner.lookup("IPv4"), [given])]).toEqual([given]);
    expect([...staleFlows(planner.lookup("IPv4"), [given])][0]).toBe(given);
  });
});

test("without serving endpoints addresses are still cleaned, node ports are not", () => {
  const { planner } = planned(DNS, [endpoint(POD, NOT_READY)]);
  expect(isStale(planner, "udp 10.96.0.10:53 <- 10.144.1.5:8080")).toBe(true);
  expect(isStale(planner, "udp 10.201.0.10:30053 <- 10.144.1.5:8080")).toBe(false);
});

describe("where the node's own addresses are known, a node port's entry is one", () => {
  const own = new Set(["10.201.0.10"]);
  const [AT_NODE, ELSEWHERE] = ["udp 10.201.0.10:30053", "udp 192.0.2.77:30053"];
  const { planner } = planned(DNS, [endpoint(POD)]);
  const { planner: scaledDown } = planned(DNS, [endpoint(POD, NOT_READY)]);

  test("that was sent to one of these, translated or not, while there are endpoints", () => {
    expect(isStale(planner, `${AT_NODE} <- 10.144.9.9:8080`, own)).toBe(true);
    expect(isStale(planner, `${AT_NODE} <- 10.201.0.10:30053`, own)).toBe(true);
    expect(isStale(planner, `${AT_NODE} <- ${POD}:8080`, own)).toBe(false);
  });

  test("that was translated from one of these, when the last endpoint is gone", () => {
    expect(isStale(scaledDown, `${AT_NODE} <- ${POD}:8080`, own)).toBe(true);
    expect(isStale(scaledDown, `${AT_NODE} <- 10.201.0.10:30053`, own)).toBe(false);
    expect(isStale(scaledDown, `${ELSEWHERE} <- ${POD}:8080`, own)).toBe(false);
  });

  test("elsewhere only if it was translated: what passes by to another host's port is not ours", () => {
    expect(isStale(planner, `${ELSEWHERE} <- 10.144.9.9:8080`, own)).toBe(true);
    expect(isStale(planner, `${ELSEWHERE} <- 192.0.2.77:30053`, own)).toBe(false);
    expect(isStale(planner, `${ELSEWHERE} <- 192.0.2.77:30053`)).toBe(true);
  });
});

test("SCTP is cleaned as UDP is, TCP never", () => {
  const ports = (protocol: "SCTP" | "TCP") => ({ ports: [{ name: "", protocol, port: 80 }] });
  const sctp = planned(ports("SCTP"), [endpoint(POD)], "SCTP");
  expect(isStale(sctp.planner, "sctp 10.96.0.10:80 <- 10.144.9.9:8080")).toBe(true);
  expect(isStale(sctp.planner, "sctp 10.96.0.10:80 <- 10.144.1.5:8080")).toBe(false);
  const tcp = planned(ports("TCP"), [endpoint(POD)], "TCP");
  expect(isStale(tcp.planner, "tcp 10.96.0.10:80 <- 10.144.9.9:8080")).toBe(false);
});

describe("an SCTP association lasts as long as its endpoint, as a TCP connection does", () => {
  const ports = { ports: [{ name: "", protocol: "SCTP", port: 80, nodePort: 30_080 }] } as const;
  const { planner } = planned(
    ports,
    [endpoint(POD), endpoint("10.144.1.6", NOT_READY), endpoint("10.144.1.7", { ...DRAINING, serving: false })],
    "SCTP",
  );
  test.each([
    ["sctp 10.96.0.10:80 <- 10.144.1.6:8080", false],
    ["sctp 10.96.0.10:80 <- 10.144.1.7:8080", false],
    ["sctp 10.201.0.10:30080 <- 10.144.1.6:8080", false],
    ["sctp 10.96.0.10:80 <- 10.144.1.8:8080", true],
    ["sctp 10.96.0.10:80 <- 10.144.1.6:80", true],
  ])("%s: %s", (text, stale) => expect(isStale(planner, text)).toBe(stale));

  test("and that an unready endpoint is gone is a change that makes one look", () => {
    const { move, change } = planned(ports, [endpoint(POD), endpoint("10.144.1.6", NOT_READY)], "SCTP");
    expect(change.groups.get("default/web/sctp")?.after?.present).toHaveLength(2);
    const gone = move([POD]);
    expect(gone.changes.get("IPv4")?.groups.get("default/web/sctp")?.after?.present).toBeUndefined();
  });

  test("one that another network takes over is released with all that was there", () => {
    const { move } = planned(ports, [endpoint(POD), endpoint("10.144.1.6", NOT_READY)], "SCTP");
    const flows = ["10.144.1.5", "10.144.1.6", "10.144.1.7"].map((ip) => flow(`sctp 10.96.0.10:80 <- ${ip}:8080`));
    expect([...releasedFlows(move(["10.244.1.5"]).released, flows)]).toEqual(flows.slice(0, 2));
  });
});

test("policies and topology mean nothing: an endpoint elsewhere keeps its conversations under Local", () => {
  const { planner } = planned({ ...DNS, internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" }, [
    endpoint(POD, { nodeName: "node-b", zoneHints: ["z2"] }),
  ]);
  expect(isStale(planner, "udp 10.96.0.10:53 <- 10.144.1.5:8080")).toBe(false);
});

test("an address comes before a node port of the same number", () => {
  const { planner } = planned({ ...DNS, ports: [{ name: "", protocol: "UDP", port: 30_053, nodePort: 30_053 }] }, []);
  expect(isStale(planner, "udp 10.96.0.10:30053 <- 10.144.9.9:8080")).toBe(true);
});

describe("a service that another network took over", () => {
  test("is none of ours from then on", () => {
    const { planner, move } = planned(DNS, [endpoint(POD)]);
    move(["10.244.1.5"]);
    for (const to of ["10.96.0.10:53", "203.0.113.1:53", "10.201.0.10:30053"]) {
      expect(isStale(planner, `udp ${to} <- 10.244.1.5:8080`)).toBe(false);
      expect(isStale(planner, `udp ${to} <- 10.144.1.5:8080`)).toBe(false);
    }
  });

  test.each([
    ["udp 10.96.0.10:53 <- 10.144.1.5:8080", true],
    ["udp 203.0.113.1:53 <- 10.144.1.5:8080", true],
    ["udp 10.201.0.10:30053 <- 10.144.1.5:8080", true],
    ["udp 10.96.0.10:53 <- 10.244.1.5:8080", false],
    ["udp 10.96.0.10:53 <- 10.96.0.10:53", false],
    ["tcp 10.96.0.10:53 <- 10.144.1.5:8080", false],
    ["udp 10.96.0.11:53 <- 10.144.1.5:8080", false],
  ])("gets once the flows that our DNAT made: %s: %s", (text, ours) => {
    const { move } = planned(DNS, [endpoint(POD)]);
    const { released } = move(["10.244.1.5"]);
    expect([...releasedFlows(released, [flow(text)])].map((one) => one.text)).toEqual(ours ? [text] : []);
    expect(move(["10.244.1.6"]).released).toEqual([]);
  });
});

test("a lookup from only a plan answers as the planner's", () => {
  const { planner } = planned(DNS, [endpoint(POD)]);
  const plan = planner.plan("IPv4");
  const made = frontendLookup("IPv4", plan.groups.values());
  for (const address of ["10.96.0.10", "198.51.100.1", "203.0.113.1", "192.0.2.1"]) {
    expect(made.at("UDP", address, 53)).toBe(planner.lookup("IPv4").at("UDP", address, 53));
    expect(made.at("TCP", address, 53)).toBeUndefined();
  }
  expect(made.atNodePort("UDP", 30_053)?.id).toBe("default/web/udp");
});

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

  test("is as ready as upstream has it where resets are not enabled", () => {
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
    // What another program translated, or no program.
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
