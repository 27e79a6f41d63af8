import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SliceState } from "../../src/controller/networks/slice-state.ts";
import { ANOTHERS, Cluster, type PodFields, pod, type ServiceFields, service } from "../support/slices.ts";

function settled(pods: readonly PodFields[], of: ServiceFields = {}) {
  const [state, cluster] = [new SliceState(), new Cluster()];
  state.setService("lab/web", service(of));
  for (const fields of pods) state.setPod(`${fields.namespace ?? "lab"}/${fields.name}`, pod(fields));
  const plans = cluster.settle(state);
  return { state, cluster, problems: plans.flatMap(({ problems }) => problems), writes: cluster.writes };
}

const A = { name: "a", ips: ["192.168.50.10"] } as const;
const B = { name: "b", ips: ["192.168.50.11"] } as const;

describe("endpoints of a Service on a secondary network", () => {
  test("the addresses of the network, in one slice", () => {
    const { cluster, problems, writes } = settled([A, B]);
    expect(cluster.endpoints()).toEqual(["192.168.50.10:8080 ready serving", "192.168.50.11:8080 ready serving"]);
    expect({ problems, writes }).toEqual({ problems: [], writes: 1 });
  });

  test.each<[what: string, PodFields, endpoints: readonly string[]]>([
    ["not ready", { ...A, ready: false }, ["192.168.50.10:8080"]],
    ["terminating", { ...A, terminating: true }, ["192.168.50.10:8080 serving terminating"]],
    ["ended", { ...A, phase: "Succeeded" }, []],
    ["failed", { ...A, phase: "Failed" }, []],
    ["starting: without an address, and so without a status", { ...A, hasIP: false, status: null }, []],
    ["in the host's network", { ...A, hostNetwork: true }, []],
    ["of another namespace", { ...A, namespace: "other" }, []],
    ["with other labels", { ...A, labels: { app: "db" } }, []],
    ["without the named port", { ...A, port: 0 }, ["192.168.50.10: ready serving"]],
  ])("a pod that is %s", (_, fields, endpoints) => {
    const { cluster, problems } = settled([fields]);
    expect(cluster.endpoints()).toEqual(endpoints);
    expect(problems).toEqual([]);
  });

  test("publishNotReadyAddresses: ready before the pod is", () => {
    const { cluster } = settled([{ ...A, ready: false }], { spec: { publishNotReadyAddresses: true } });
    expect(cluster.endpoints()).toEqual(["192.168.50.10:8080 ready"]);
  });

  test("both families: a slice of each; a pod of one family is an endpoint in that", () => {
    const dual = { ...A, ips: ["192.168.50.10", "fd00:50::10"] };
    const { cluster, problems } = settled([dual, B], { spec: { ipFamilies: ["IPv6", "IPv4"] } });
    expect([...cluster.slices.values()].map(({ addressType }) => addressType).sort()).toEqual(["IPv4", "IPv6"]);
    expect(cluster.endpoints()).toHaveLength(3);
    expect(problems).toEqual([]);
  });

  test("a named port has each pod's number: pods with different numbers are in different slices", () => {
    const { cluster } = settled([A, { ...B, port: 9090 }]);
    expect(cluster.endpoints()).toEqual(["192.168.50.10:8080 ready serving", "192.168.50.11:9090 ready serving"]);
    expect(cluster.slices.size).toBe(2);
  });

  test("slices have the Service's labels, its owner reference, and name their manager", () => {
    const { cluster } = settled([A], { labels: { team: "storage", "kubernetes.io/service-name": "else" } });
    const [slice] = [...cluster.slices.values()];
    expect(slice?.metadata).toMatchObject({
      labels: {
        team: "storage",
        "kubernetes.io/service-name": "web",
        "service.kubernetes.io/service-proxy-name": "storage",
        "endpointslice.kubernetes.io/managed-by": "networks.fairlead.dev",
      },
    });
    // With blockOwnerDeletion the API server may ask for the right to update services/finalizers.
    expect(slice?.metadata.ownerReferences).toEqual([
      { apiVersion: "v1", kind: "Service", name: "web", uid: "uid-web", controller: true },
    ]);
  });

  test.each([
    ["PreferClose", { forZones: [{ name: "z1" }] }],
    ["PreferSameZone", { forZones: [{ name: "z1" }] }],
    ["PreferSameNode", { forZones: [{ name: "z1" }], forNodes: [{ name: "node-a" }] }],
    ["Nonsense", undefined],
  ])("zones, and hints for trafficDistribution %s", (trafficDistribution, hints) => {
    const { state, cluster } = settled([A, { ...B, ready: false }], { spec: { trafficDistribution } });
    state.setZone("node-a", "z1");
    cluster.settle(state);
    const [ready, waiting] = [...cluster.slices.values()].flatMap(({ endpoints }) => endpoints);
    expect(ready).toMatchObject({ nodeName: "node-a", zone: "z1" });
    expect(ready?.hints).toEqual(hints);
    expect(waiting?.hints).toBeUndefined();
  });
});

describe("what is wrong is reported, and only that is left out", () => {
  const status = (...entries: readonly unknown[]) => JSON.stringify(entries);

  test.each<[reason: string, PodFields]>([
    ["NoNetworkStatus", { name: "p", status: null }],
    ["InvalidNetworkStatus", { name: "p", status: "{" }],
    ["InvalidNetworkStatus", { name: "p", status: status({ name: "lab/storage", ips: ["nonsense"] }) }],
    ["InvalidNetworkStatus", { name: "p", status: `[${" ".repeat(70_000)}]` }],
    ["NoNetworkAddress", { name: "p" }],
    ["NoNetworkAddress", { name: "p", ips: [] }],
    ["NoNetworkAddress", { name: "p", ips: ["fd00::1"] }],
    ["NoNetworkAddress", { name: "p", ips: ["127.0.0.1"] }],
    ["AddressInServiceCIDR", { name: "p", ips: ["10.96.3.4"] }],
    [
      "SeveralInterfaces",
      { name: "p", status: status({ name: "lab/storage", ips: ["192.168.50.1"] }, { name: "lab/storage", ips: [] }) },
    ],
  ])("%s of a pod", (reason, fields) => {
    const { state, cluster } = settled([]);
    state.setServiceCIDRs(["10.96.0.0/12", "fd00:96::/112"]);
    state.setPod("lab/p", pod(fields));
    state.setPod("lab/a", pod(A));
    const problems = cluster.settle(state).flatMap((plan) => plan.problems);
    expect(problems).toMatchObject([{ reason, pod: "p" }]);
    expect(cluster.endpoints()).toEqual(["192.168.50.10:8080 ready serving"]);
  });

  test("a pod that goes is not worth a report", () => {
    expect(settled([{ name: "p", status: null, terminating: true }]).problems).toEqual([]);
  });

  test("many pods are one report for each reason, with the first names", () => {
    const pods = Array.from({ length: 12 }, (_, i) => ({ name: `p${i + 10}`, status: null }));
    expect(settled(pods).problems).toEqual([
      {
        reason: "NoNetworkStatus",
        pod: "p10",
        message: "pods p10, p11, p12, and 9 more are left out: p10 has no annotation k8s.v1.cni.cncf.io/network-status",
      },
    ]);
  });

  test.each<[reason: string, ServiceFields]>([
    ["HeadlessService", { spec: { clusterIP: "None" } }],
    ["ExternalName", { spec: { type: "ExternalName", externalName: "example.org" } }],
    ["NoSelector", { spec: { selector: {} } }],
    ["InvalidNetworkName", { network: "two, networks" }],
    ["InvalidNetworkName", { network: "storage@net1" }],
  ])("%s: the Service's slices stay as they were", (reason, fields) => {
    const { state, cluster, writes } = settled([A]);
    state.setService("lab/web", service(fields));
    expect(cluster.settle(state).flatMap(({ problems }) => problems)).toMatchObject([{ reason }]);
    expect(cluster.writes).toBe(writes);
  });

  test("NetworkNotFound says why no pod is attached; while networks cannot be read, none is missing", () => {
    const { state, cluster } = settled([{ name: "p" }]);
    state.setNetworks(new Set(["lab/other"]));
    expect(cluster.settle(state)[0]?.problems).toMatchObject([{ reason: "NetworkNotFound" }]);
    state.setNetworks(undefined);
    expect(cluster.settle(state)[0]?.problems).toMatchObject([{ reason: "NoNetworkAddress" }]);
  });
});

describe("only what changed is written", () => {
  const many = Array.from({ length: 250 }, (_, i) => ({ name: `p${i}`, ips: [`192.168.${50 + (i >> 7)}.${i & 127}`] }));

  test.each<[what: string, change: (state: SliceState) => void]>([
    ["becomes unready", (state) => state.setPod("lab/p7", pod({ ...many[7], name: "p7", ready: false }))],
    ["goes", (state) => state.setPod("lab/p7", undefined)],
    ["comes", (state) => state.setPod("lab/new", pod({ name: "new", ips: ["192.168.60.1"] }))],
    ["gets another address", (state) => state.setPod("lab/p7", pod({ name: "p7", ips: ["192.168.60.1"] }))],
    ["loses the label", (state) => state.setPod("lab/p7", pod({ ...many[7], name: "p7", labels: {} }))],
  ])("a pod that %s is one write among 250", (_, change) => {
    const { state, cluster } = settled(many);
    expect(cluster.writes).toBe(3);
    change(state);
    cluster.settle(state);
    expect(cluster.writes).toBe(4);
  });

  test("events that change nothing here make no Service dirty", () => {
    const { state } = settled(many);
    for (const key of [...state.dirty]) state.plan(key, 100);
    state.setPod("lab/p7", pod({ ...many[7], name: "p7" }));
    state.setPod("lab/else", pod({ name: "else", labels: { app: "db" } }));
    state.setPod("other/p7", pod({ name: "p7", namespace: "other" }));
    state.setZone("node-b", undefined);
    expect([...state.dirty]).toEqual([]);
  });

  test("another controller's slice of the Service is not touched, and is no reason to write", () => {
    const { state, cluster, writes } = settled([A]);
    state.setSlice("lab/web-abcde", ANOTHERS);
    state.setService("lab/web", undefined);
    const [plan] = cluster.settle(state);
    expect(plan?.remove.map(({ name }) => name)).toEqual(["made-1"]);
    expect(cluster.writes).toBe(writes + 1);
  });

  test("a slice that another client damaged or removed is written again", () => {
    const { state, cluster } = settled([A, B]);
    const [name, slice] = [...cluster.slices][0] ?? [];
    state.setSlice(`lab/${name}`, JSON.parse(JSON.stringify({ ...slice, endpoints: slice?.endpoints.slice(1) })));
    cluster.settle(state);
    expect(cluster.endpoints()).toHaveLength(2);
    state.setSlice(`lab/${name}`, undefined);
    cluster.slices.clear();
    cluster.settle(state);
    expect(cluster.endpoints()).toHaveLength(2);
  });

  test("a Service that is being deleted gets no slice in place of one that the garbage collector has taken", () => {
    const { state, cluster, writes } = settled([A]);
    state.setService("lab/web", service({ terminating: true }));
    state.setPod("lab/b", pod(B));
    cluster.settle(state);
    expect(cluster.endpoints()).toHaveLength(2);
    for (const name of cluster.slices.keys()) state.setSlice(`lab/${name}`, undefined);
    cluster.settle(state);
    expect(cluster.writes).toBe(writes + 1);
  });

  test("without the annotation the slices go", () => {
    const { state, cluster } = settled([A]);
    state.setService("lab/web", { metadata: { namespace: "lab", name: "web" }, spec: {} });
    cluster.settle(state);
    expect(cluster.slices.size).toBe(0);
  });
});

const MOST = 3;

const anyPod: fc.Arbitrary<PodFields> = fc
  .record({
    id: fc.integer({ min: 1, max: 12 }),
    ready: fc.boolean(),
    terminating: fc.boolean(),
    attached: fc.boolean(),
    port: fc.constantFrom(8080, 9090),
  })
  .map(({ id, attached, ...rest }) => ({
    name: `p${id}`,
    ...rest,
    ...(attached && { ips: [`192.168.50.${id}`, `fd00:50::${id}`] }),
  }));

const gone = fc.integer({ min: 1, max: 12 }).map((id) => ({ gone: `p${id}` }));
const history = fc.array(fc.array(fc.oneof(anyPod, gone), { maxLength: 6 }), { minLength: 1, maxLength: 8 });

function settle(state: SliceState, cluster: Cluster): void {
  // What it wrote comes back as events, which make it dirty once more.
  for (let round = 0; round < 3; round += 1) cluster.settle(state, MOST);
}

test("whatever happened, slices hold each endpoint once, none too many, and then nothing is written", () => {
  fc.assert(
    fc.property(history, (rounds) => {
      const [state, cluster] = [new SliceState(), new Cluster()];
      const pods = new Map<string, PodFields>();
      state.setService("lab/web", service({ spec: { ipFamilies: ["IPv4", "IPv6"] } }));
      for (const round of rounds) {
        for (const event of round) {
          if ("gone" in event) {
            pods.delete(event.gone);
            state.setPod(`lab/${event.gone}`, undefined);
          } else {
            pods.set(event.name, event);
            state.setPod(`lab/${event.name}`, pod(event));
          }
        }
        settle(state, cluster);
        const fresh = freshly([...pods.values()]);
        expect(cluster.endpoints()).toEqual(fresh.endpoints());
        for (const { endpoints } of cluster.slices.values()) {
          expect(endpoints.length).toBeGreaterThan(0);
          expect(endpoints.length).toBeLessThanOrEqual(MOST);
        }
        const { writes } = cluster;
        settle(state, cluster);
        expect(cluster.writes).toBe(writes);
      }
    }),
    { numRuns: runs(100) },
  );
});

function freshly(pods: readonly PodFields[]): Cluster {
  const [state, cluster] = [new SliceState(), new Cluster()];
  state.setService("lab/web", service({ spec: { ipFamilies: ["IPv4", "IPv6"] } }));
  for (const fields of pods) state.setPod(`lab/${fields.name}`, pod(fields));
  settle(state, cluster);
  return cluster;
}

test("no object stops the others: anything is read, reported or left out", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("pod", "service", "slice"), fc.jsonValue())),
      fc.string(),
      (all, text) => {
        const [state, cluster] = [new SliceState(), new Cluster()];
        state.setService("lab/web", service());
        state.setPod("lab/a", pod({ name: "a", ips: ["192.168.50.10"] }));
        state.setPod("lab/b", pod({ name: "b", status: text }));
        for (const [kind, raw] of all) {
          if (kind === "pod") state.setPod("lab/any", raw);
          else if (kind === "service") state.setService("lab/any", raw);
          else state.setSlice("lab/any", raw);
        }
        settle(state, cluster);
        expect(cluster.endpoints()).toEqual(["192.168.50.10:8080 ready serving"]);
      },
    ),
    { numRuns: runs(100) },
  );
});
