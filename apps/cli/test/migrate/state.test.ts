import { describe, expect, test } from "vitest";
import { migrationState } from "../../src/migrate/state.ts";
import { KUBE_PROXY } from "./support/objects.ts";

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

  test("those that kube-proxy has no pods on are none of ours", () => {
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

  test("those of nobody, and of other nodes, are not seen", () => {
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
