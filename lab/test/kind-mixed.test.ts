import { expect, test } from "vitest";
import { placedManifests, placeOf } from "../src/provider/kind/mixed.ts";

const SELECTOR = { "app.kubernetes.io/name": "fairlead" };
const MANIFESTS = [
  { kind: "ServiceAccount", metadata: { name: "fairlead" } },
  { kind: "ConfigMap", metadata: { name: "fairlead-0a1b" } },
  {
    kind: "DaemonSet",
    metadata: { name: "fairlead" },
    spec: {
      selector: { matchLabels: SELECTOR },
      template: { metadata: { labels: SELECTOR }, spec: { hostNetwork: true, nodeSelector: { os: "linux" } } },
    },
  },
];

test("a second DaemonSet has its own pods, on nodes with its label; tools still find its agents", () => {
  const labels = { ...SELECTOR, "fairlead.dev/test-proxy": "fairlead-nftables" };
  expect(placedManifests(MANIFESTS, "fairlead-nftables")).toEqual([
    MANIFESTS[1],
    {
      kind: "DaemonSet",
      metadata: { name: "fairlead-nftables" },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { hostNetwork: true, nodeSelector: { "fairlead.dev/test-proxy": "fairlead-nftables" } },
        },
      },
    },
  ]);
});

test.each([
  [{ mode: "iptables" }, undefined],
  [{ mode: "nftables" }, "fairlead-nftables"],
  [{ mode: "iptables", kubeProxy: "kube-proxy" }, "kube-proxy"],
])("a node that is to have %j has the label %s", (proxy, place) => {
  expect(placeOf({ mode: "iptables" }, proxy)).toBe(place);
});
