import { contains } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClusterState, type Frontend, Planner, type PlannerOptions, type Service } from "../src/index.ts";
import { endpoint, HERE, OPTIONS, replan, service, slice } from "./objects.ts";

const HOSTS = { IPv4: ["10.201.0.10", "10.202.0.10"], IPv6: ["fd00:201::10", "fd00:202::10"] } as const;
const asks = (value: string) => ({ "fairlead.dev/node-port-addresses": value });

function cluster(fields: Partial<Service>, options: Partial<PlannerOptions> = {}) {
  const state = new ClusterState();
  const planner = new Planner({ ...OPTIONS, nodePortHosts: HOSTS, ...options });
  state.upsertSlice(slice("web", [endpoint("10.144.1.5", HERE)]));
  const put = (more: Partial<Service>) => {
    state.upsertService(
      service("web", { ports: [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }], ...more }),
    );
    return replan(planner, state);
  };
  const first = put(fields);
  const reasons = ({ problems }: typeof first) =>
    problems.map(({ field, value, reason }) => `${field} ${value} ${reason}`);
  const setOptions = (more: Partial<PlannerOptions>) =>
    planner.setOptions({ ...OPTIONS, nodePortHosts: HOSTS, ...more });
  return { state, planner, put, setOptions, problems: reasons(first), reasons };
}

type Planned = Pick<ReturnType<typeof cluster>, "planner">;

const nodePorts = ({ planner }: Planned) =>
  [...planner.plan("IPv4").groups.values(), ...planner.plan("IPv6").groups.values()]
    .flatMap(({ frontends }) => frontends)
    .filter(({ kind }) => kind === "node-port");
const at = (frontends: readonly Frontend[]) => frontends.map(({ at, address, port }) => `${at} ${address} ${port}`);

describe("fairlead.dev/node-port-addresses", () => {
  test("opens node ports on the addresses in it", () => {
    const one = cluster({ annotations: asks("10.202.0.0/16") });
    expect(at(nodePorts(one))).toEqual(["address 10.202.0.10 30080"]);
    expect(one.problems).toEqual([]);
  });

  test("without it they are where all node ports are", () => {
    expect(at(nodePorts(cluster({})))).toEqual(["node-port undefined 30080"]);
  });

  test("several CIDRs, white space and host bits are fine", () => {
    const one = cluster({ annotations: asks(" 10.201.0.10/32 , 10.202.0.1/24") });
    expect(at(nodePorts(one))).toEqual(["address 10.201.0.10 30080", "address 10.202.0.10 30080"]);
  });

  test.each(["", "10.202.0.10", "10.202.0.0/16,", "eth1", "10.202.0.0/16 10.201.0.0/16", "10.202.0.0/33"])(
    "%j opens nothing, which is reported once, in one family",
    (value) => {
      const fields = { annotations: asks(value), clusterIPs: ["10.96.0.10", "fd00:96::10"] };
      const one = cluster(fields);
      expect(nodePorts(one)).toEqual([]);
      expect(one.problems).toEqual([
        `metadata.annotations ${JSON.stringify(value)} fairlead.dev/node-port-addresses must be CIDRs separated by ` +
          "commas, as 192.0.2.0/24,2001:db8::/64; no node port of this Service is open",
      ]);
      expect(one.put({ ...fields, externalIPs: ["192.0.2.1"] }).problems).toEqual([]);
    },
  );

  test.each(["IPv4", "IPv6"] as const)("a node that serves %s only reports what cannot be read", (family) => {
    const clusterIPs = ["10.96.0.10", "fd00:96::10"];
    expect(cluster({ annotations: asks("eth1"), clusterIPs }, { families: [family] }).problems).toHaveLength(1);
  });

  test("networks that the node is not in open nothing, and each family says so", () => {
    const one = cluster({ annotations: asks("192.168.0.0/16"), clusterIPs: ["10.96.0.10", "fd00:96::10"] });
    expect(nodePorts(one)).toEqual([]);
    expect(one.problems).toEqual([
      'metadata.annotations "192.168.0.0/16" fairlead.dev/node-port-addresses has none of the addresses on which this ' +
        "node serves node ports; no IPv4 node port of this Service is open here",
      'metadata.annotations "192.168.0.0/16" fairlead.dev/node-port-addresses has no CIDR of IPv6; no IPv6 node port ' +
        "of this Service is open here",
    ]);
  });

  test("a service without node ports has nothing to report", () => {
    const ports = [{ name: "", protocol: "TCP" as const, port: 80 }];
    expect(cluster({ ports, annotations: asks("eth1") }).problems).toEqual([]);
  });

  test("until the node's addresses are known nothing is open, and nothing is wrong", () => {
    const { planner, state, setOptions, ...one } = cluster(
      { annotations: asks("10.202.0.0/16") },
      { nodePortHosts: {} },
    );
    expect(nodePorts({ planner })).toEqual([]);
    expect(one.problems).toEqual([]);
    expect(setOptions({})).toBe("concerned");
    expect(replan(planner, state).changes.get("IPv4")?.groups.size).toBe(1);
    expect(at(nodePorts({ planner }))).toEqual(["address 10.202.0.10 30080"]);
  });

  test("addresses that come and go move its node ports; other services are not planned again", () => {
    const { planner, state, setOptions } = cluster({ annotations: asks("10.202.0.0/16") });
    expect(setOptions({ nodePortHosts: { IPv4: ["10.201.0.10", "10.202.0.11"] } })).toBe("concerned");
    replan(planner, state);
    expect(at(nodePorts({ planner }))).toEqual(["address 10.202.0.11 30080"]);
    const plain = cluster({});
    expect(plain.setOptions({ nodePortHosts: {} })).toBe("nothing");
  });

  test("the health-check node port is on the same addresses", () => {
    const fields = { healthCheckNodePort: 31_000, externalTrafficPolicy: "Local" as const };
    const checks = ({ planner }: Planned) => [...planner.plan("IPv4").healthChecks.values()];
    expect(checks(cluster({ ...fields, annotations: asks("10.202.0.0/16") }))).toMatchObject([
      { port: 31_000, addresses: ["10.202.0.10"] },
    ]);
    expect(checks(cluster(fields))[0]).not.toHaveProperty("addresses");
  });

  test("it takes no address and port from an external IP, however old it is", () => {
    const { planner, state } = cluster({ annotations: asks("10.202.0.0/16"), created: 1 });
    const ports = [{ name: "", protocol: "TCP" as const, port: 30_080 }];
    state.upsertService(
      service("other", { clusterIPs: ["10.96.0.11"], ports, externalIPs: ["10.202.0.10"], created: 2 }),
    );
    state.upsertSlice(slice("other", [endpoint("10.144.1.6")]));
    expect(replan(planner, state).problems).toMatchObject([{ name: "web", field: "spec.ports" }]);
    expect(planner.lookup("IPv4").at("TCP", "10.202.0.10", 30_080)?.service).toBe("default/other");
  });
});

/** Where the node ports of all services are reached: host, protocol and port. */
function open({ planner }: Planned): ReadonlySet<string> {
  const reached = (["IPv4", "IPv6"] as const).flatMap((family) =>
    [...planner.plan(family).groups.values()].flatMap(({ protocol, frontends }) =>
      frontends
        .filter(({ kind }) => kind === "node-port")
        .flatMap(({ address, port }) =>
          (address === undefined ? HOSTS[family] : [address]).map((host) => `${host} ${protocol} ${port}`),
        ),
    ),
  );
  return new Set(reached);
}

const cidrs = fc.oneof(
  fc.constantFrom("0.0.0.0/0", "::/0", "10.201.0.0/16", "10.202.0.0/24", "fd00:202::/64", "127.0.0.0/8", "10.202.0.10"),
  fc.string({ maxLength: 12 }),
);

test("whatever the value, it opens no more than without it, and only on addresses in it", () => {
  fc.assert(
    fc.property(fc.array(cidrs, { maxLength: 3 }), (parts) => {
      const value = parts.join(",");
      const fields = { clusterIPs: ["10.96.0.10", "fd00:96::10"] };
      const everywhere = open(cluster(fields));
      const chosen = open(cluster({ ...fields, annotations: asks(value) }));
      for (const one of chosen) {
        expect(everywhere).toContain(one);
        const [host = ""] = one.split(" ");
        expect(parts.some((cidr) => contains(cidr.trim(), host))).toBe(true);
      }
    }),
    { numRuns: runs(200) },
  );
});
