import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  migrationState,
  type Placement,
  type ProxyName,
  placementOf,
  placementPatch,
} from "../../src/migrate/state.ts";
import { KUBE_PROXY, kubeProxyWith } from "./simulated-cluster.ts";

function node(name: string, labels: Readonly<Record<string, string>> = {}, annotations = {}) {
  const status = { conditions: [{ type: "Ready", status: "True" }] };
  return { metadata: { name, labels: { "kubernetes.io/os": "linux", ...labels }, annotations }, status };
}

function pod(
  nodeName: string,
  { status = "True", owner = "kp", restartCount = 0, generation = "1", ...metadata } = {},
) {
  const labels = { "pod-template-generation": generation };
  return {
    metadata: { ...metadata, labels, ownerReferences: [{ uid: owner }] },
    spec: { nodeName },
    status: { conditions: [{ type: "Ready", status }], containerStatuses: [{ restartCount }] },
  };
}

const annotated = (object: typeof KUBE_PROXY) => ({
  ...object,
  metadata: { ...object.metadata, annotations: { "deprecated.daemonset.template.generation": "1" } },
});
const podOf = (one: unknown, daemonSet: unknown = annotated(KUBE_PROXY)) =>
  migrationState({ kubeProxy: daemonSet, fairlead: undefined, nodes: [node("a")], pods: [one] }).nodes[0]?.pods;

describe("nodes", () => {
  const names = (...nodes: readonly object[]) =>
    migrationState({ kubeProxy: KUBE_PROXY, fairlead: undefined, nodes, pods: [] }).nodes.map(({ name }) => name);

  test("workers come first, by name", () => {
    const controlPlane = node("a", { "node-role.kubernetes.io/control-plane": "" });
    expect(names(controlPlane, node("c"), node("b"))).toEqual(["b", "c", "a"]);
  });

  test("nodes without kube-proxy's pods are not migrated", () => {
    expect(names(node("a"), node("windows", { "kubernetes.io/os": "windows" }))).toEqual(["a"]);
  });

  test("labels and annotations of others count as none", () => {
    const labeled = node("a", { "fairlead.dev/proxy": "other" }, { "fairlead.dev/proxy-proven": "fairlead" });
    const { nodes } = migrationState({ kubeProxy: KUBE_PROXY, fairlead: undefined, nodes: [labeled], pods: [] });
    expect(nodes).toEqual([
      { name: "a", ready: true, label: undefined, proven: "fairlead", problem: undefined, pods: {} },
    ]);
  });
});

describe("pods", () => {
  test.each([
    ["one that serves", pod("a"), { ready: true, current: true, restarts: 0 }],
    ["one that is not ready", pod("a", { status: "False" }), { ready: false, current: true, restarts: 0 }],
    ["one that ends", pod("a", { deletionTimestamp: "2030" } as object), { ready: false, current: true, restarts: 0 }],
    ["one of an earlier template", pod("a", { generation: "0" }), { ready: true, current: false, restarts: 0 }],
    ["one that was started again", pod("a", { restartCount: 3 }), { ready: true, current: true, restarts: 3 }],
  ])("%s", (_what, one, expected) => {
    expect(podOf(one)).toEqual({ "kube-proxy": expected });
  });

  test("pods without an owner, and those of other owners, are not seen", () => {
    expect([podOf(pod("a", { owner: "other" })), podOf(pod("b")), podOf("nonsense")]).toEqual([{}, {}, {}]);
  });

  test("while the controller has not seen a change, no pod is one of it", () => {
    const changed = { ...KUBE_PROXY, metadata: { ...KUBE_PROXY.metadata, generation: 2 } };
    expect(podOf(pod("a"), changed)).toMatchObject({ "kube-proxy": { current: false } });
  });

  test("with OnDelete pods of earlier templates stay, and are right", () => {
    const onDelete = { ...annotated(KUBE_PROXY), spec: { ...KUBE_PROXY.spec, updateStrategy: { type: "OnDelete" } } };
    expect(podOf(pod("a", { generation: "0" }), onDelete)).toMatchObject({ "kube-proxy": { current: true } });
  });
});

describe("a mode that an earlier run was asked for", () => {
  const fairlead = (mode?: string) => ({
    kind: "DaemonSet",
    metadata: {
      name: "fairlead",
      annotations: { "fairlead.dev/manifests": "m", "fairlead.dev/migrate-options": JSON.stringify({ mode }) },
    },
    spec: {
      template: {
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: "fairlead.dev/proxy", operator: "In", values: ["fairlead"] }] },
                ],
              },
            },
          },
        },
      },
    },
  });
  const state = (installed: string | undefined, wanted: string | undefined, proven: string) =>
    migrationState(
      {
        kubeProxy: KUBE_PROXY,
        fairlead: fairlead(installed),
        nodes: [node("a", { "fairlead.dev/proxy": "fairlead" }, { "fairlead.dev/proxy-proven": proven })],
        pods: [],
      },
      { manifests: "m", mode: wanted },
    );

  test("a node that was proven in another mode is not proven in this one", () => {
    expect(state("nftables", "nftables", "fairlead").nodes[0]?.proven).toBeUndefined();
    expect(state("nftables", "nftables", "fairlead/nftables").nodes[0]?.proven).toBe("fairlead");
    expect(state(undefined, undefined, "fairlead").nodes[0]?.proven).toBe("fairlead");
  });

  test("what serves in another mode than what would be installed says so", () => {
    expect(state("nftables", undefined, "").fairlead).toEqual({
      placement: "labeled",
      current: true,
      otherMode: true,
    });
    expect(state("nftables", "nftables", "").fairlead).toEqual({ placement: "labeled", current: true });
  });
});

const placement = fc.constantFrom<Placement>("everywhere", "unless-other", "labeled");
const proxy = fc.constantFrom<ProxyName>("kube-proxy", "fairlead");
const expression = fc.record({
  key: fc.constantFrom("zone", "arch"),
  operator: fc.constant("In"),
  values: fc.constant(["a"]),
});
const term = fc.record({ matchExpressions: fc.array(expression, { minLength: 1, maxLength: 2 }) });
const daemonSet = fc.array(term, { maxLength: 3 }).map((terms) => (terms.length === 0 ? KUBE_PROXY : withTerms(terms)));

function withTerms(nodeSelectorTerms: readonly object[]) {
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return kubeProxyWith({ affinity: { nodeAffinity: required } });
}

/** A merge patch (RFC 7386). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = { ...(target as object | undefined) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

const placed = (of: ProxyName, object: unknown, to: Placement) => merged(object, placementPatch(of, object, to));

describe("a DaemonSet", () => {
  test("is placed as the patch says, whatever else it asks of nodes, and however often", () => {
    fc.assert(
      fc.property(proxy, daemonSet, fc.array(placement, { minLength: 1, maxLength: 5 }), (of, object, way) => {
        let now: unknown = object;
        for (const to of way) {
          now = placed(of, now, to);
          expect(placementOf(of, now)).toBe(to);
        }
      }),
    );
  });

  test("has its own terms again at the end", () => {
    fc.assert(
      fc.property(proxy, daemonSet, placement, (of, object, first) => {
        const terms = (one: unknown) => JSON.stringify(one).match(/"nodeSelectorTerms":.*?\]\}\]/)?.[0];
        expect(terms(placed(of, placed(of, object, first), "everywhere"))).toBe(terms(object));
      }),
    );
  });
});

test("each of several terms, which are alternatives, gets the requirement", () => {
  const terms = [
    { matchExpressions: [{ key: "zone", operator: "Exists" }] },
    { matchFields: [{ key: "metadata.name" }] },
  ];
  const own = { key: "fairlead.dev/proxy", operator: "NotIn", values: ["fairlead"] };
  expect(placementPatch("kube-proxy", withTerms(terms), "unless-other")).toMatchObject({
    spec: {
      template: {
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: "zone", operator: "Exists" }, own] },
                  { matchFields: [{ key: "metadata.name" }], matchExpressions: [own] },
                ],
              },
            },
          },
        },
      },
    },
  });
});

test("another program's requirement with our label stays", () => {
  const own = (values: readonly string[]) => [
    { matchExpressions: [{ key: "fairlead.dev/proxy", operator: "In", values }] },
  ];
  expect(placementOf("kube-proxy", withTerms(own(["other"])))).toBe("everywhere");
  expect(placementOf("kube-proxy", withTerms([...own(["kube-proxy"]), { matchExpressions: [] }]))).toBe("everywhere");
  expect(placementOf("kube-proxy", withTerms(own(["kube-proxy"])))).toBe("labeled");
});
