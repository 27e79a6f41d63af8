import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClusterState, Planner, type Service } from "../src/index.ts";
import { endpoint, HERE, OPTIONS, replan, service, slice } from "./objects.ts";

const NODE_PORT = [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }] as const;
const BOTH = ["10.96.0.10", "fd00:96::10"];
const asks = (value: string) => ({ "fairlead.dev/node-port-source-ranges": value });

function planned(fields: Partial<Service>) {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  state.upsertSlice(slice("web", [endpoint("10.144.1.5", HERE)]));
  state.upsertService(service("web", { ports: NODE_PORT, clusterIPs: BOTH, ...fields }));
  const { problems, notices = [] } = replan(planner, state);
  const gates = (["IPv4", "IPv6"] as const).flatMap((family) =>
    [...planner.plan(family).groups.values()].flatMap(({ frontends }) =>
      frontends.flatMap(({ kind, gate }) => (gate === undefined ? [] : [`${family} ${kind} ${gate.ranges.join(" ")}`])),
    ),
  );
  return { gates, problems, notices };
}

describe("fairlead.dev/node-port-source-ranges", () => {
  test("gates node ports, and nothing else", () => {
    const fields = { externalIPs: ["192.0.2.1"], loadBalancerIPs: ["203.0.113.1"] };
    const { gates, problems } = planned({ ...fields, annotations: asks(" 198.51.100.7/24, 2001:db8::/32") });
    expect(gates).toEqual(["IPv4 node-port 198.51.100.0/24", "IPv6 node-port 2001:db8::/32"]);
    expect(problems).toEqual([]);
  });

  test("those of the load balancer stay its own", () => {
    const fields = { loadBalancerIPs: ["203.0.113.1"], loadBalancerSourceRanges: ["198.18.0.0/24"] };
    const { gates } = planned({ ...fields, clusterIPs: ["10.96.0.10"], annotations: asks("198.51.100.0/24") });
    expect(gates).toEqual(["IPv4 load-balancer 198.18.0.0/24", "IPv4 node-port 198.51.100.0/24"]);
  });

  test("of a load balancer whose ranges cannot be read there is a gate without one", () => {
    const fields = { loadBalancerIPs: ["203.0.113.1"], unreadableSourceRanges: true } as const;
    expect(planned({ ...fields, clusterIPs: ["10.96.0.10"] }).gates).toEqual(["IPv4 load-balancer "]);
  });

  test("a range of all clients is no gate", () => {
    expect(planned({ annotations: asks("0.0.0.0/0,10.0.0.0/8,::/0") }).gates).toEqual([]);
  });

  test("a family without a range lets no client in, and says so", () => {
    const { gates, problems, notices } = planned({ annotations: asks("198.51.100.0/24") });
    expect(gates).toEqual(["IPv4 node-port 198.51.100.0/24", "IPv6 node-port "]);
    expect(problems).toEqual([]);
    expect(notices.filter(({ effect }) => effect === "lost")).toMatchObject([
      { reason: expect.stringContaining("has no CIDR of IPv6") },
    ]);
  });

  test.each(["", "198.51.100.7", "198.51.100.0/24,", "the office"])("%j lets no client in, reported once", (value) => {
    const { gates, problems } = planned({ annotations: asks(value) });
    expect(gates).toEqual(["IPv4 node-port ", "IPv6 node-port "]);
    expect(problems).toMatchObject([
      {
        field: "metadata.annotations",
        value: JSON.stringify(value),
        reason:
          "fairlead.dev/node-port-source-ranges must be CIDRs separated by commas, as 192.0.2.0/24,2001:db8::/64; " +
          "the node ports of this Service let no client in",
      },
    ]);
  });

  test("no value lets anybody in that it does not name", () => {
    const parts = fc.array(fc.oneof(fc.constantFrom("198.51.100.0/24", "2001:db8::/32", "10.0.0.0/33"), fc.string()));
    fc.assert(
      fc.property(parts, (list) => {
        const { gates } = planned({ annotations: asks(list.join(",")) });
        const ranges = gates.flatMap((gate) => gate.split(" ").slice(2)).filter((range) => range !== "");
        expect(gates).toHaveLength(2);
        for (const range of ranges) expect(list.map((one) => one.trim())).toContain(range);
      }),
      { numRuns: runs(100) },
    );
  });
});

describe("fairlead.dev/no-local-endpoint", () => {
  const refuses = (value: string) => ({ "fairlead.dev/no-local-endpoint": value });

  test("a value that cannot be followed is reported once", () => {
    const { problems } = planned({ annotations: refuses("refuse"), internalTrafficPolicy: "Local" });
    expect(problems).toMatchObject([
      { value: '"refuse"', reason: "fairlead.dev/no-local-endpoint must be drop or reject; using drop" },
    ]);
  });

  test.each(["drop", "reject"])("%s is right", (value) => {
    const fields = { annotations: refuses(value), clusterIPs: ["10.96.0.10"] };
    expect(planned({ ...fields, internalTrafficPolicy: "Local" })).toMatchObject({
      problems: [],
      notices: [],
    });
  });
});
