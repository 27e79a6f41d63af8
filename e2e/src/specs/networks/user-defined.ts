import { expectAnswers, expectRefused } from "../expect.ts";
import { expectNoTrace } from "../multi-cni/untouched.ts";
import { nearAndFar } from "../near-and-far.ts";
import { needs } from "../needs.ts";
import { openOperator } from "../operator.ts";
import type { Spec } from "../spec.ts";
import { configFile } from "./authority/configuration.ts";
import { allow, learnFrom, make } from "./learning.ts";

const LABEL = "k8s.ovn.org/primary-user-defined-network";
const MULTI_CNI = {
  excludedFrontends: "excluded-clients",
  serviceRules: [{ namespaceLabel: LABEL, ownership: "foreign" }],
};
/** Of pods on the user-defined network, which is none of this cluster's. */
const THERE = { IPv4: "10.253.1.3", IPv6: "fd00:253::3" } as const;

/** As OVN-Kubernetes keeps it alongside the slice of Kubernetes' own controller. */
function mirrored(namespace: string, family: keyof typeof THERE) {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "blue-web-mirror",
      namespace,
      labels: {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-mirror-controller.k8s.ovn.org",
        "k8s.ovn.org/service-name": "web",
      },
      annotations: { "k8s.ovn.org/endpointslice-network": "blue", "k8s.ovn.org/source-endpointslice": "web-1" },
    },
    addressType: family,
    ports: [{ name: "", port: 80, protocol: "TCP" }],
    endpoints: [{ addresses: [THERE[family]], conditions: { ready: true } }],
  };
}

/** Its label is there from the start where OVN-Kubernetes is; here it comes to a namespace that was served. */
export const userDefined: Spec = {
  name: "a user-defined network of OVN-Kubernetes: ClusterIPs and node ports of its namespace are left to it, and tools show the mirrored endpoints",
  suite: "networks",
  alone: true,
  unfit: needs("learn"),
  run: async (scene) => {
    const { cluster, namespace, family, nodes } = scene;
    const [, second] = nodes;
    const { caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: [{ port: 80 }] });
    const atNode = { to: second.addresses[family] ?? "", port: service.nodePort };
    const served = async () => {
      await expectAnswers(caller, { to: service.clusterIP, port: 80 }, { by });
      await expectAnswers(cluster.outside, atNode, { by });
    };
    await allow(scene);
    const config = await configFile(scene, MULTI_CNI);
    await learnFrom(scene, `--config=${config}`);
    await served();
    const label = (value: string | null) =>
      cluster.api.patch(`/api/v1/namespaces/${namespace}`, { metadata: { labels: { [LABEL]: value } } });
    await label("");
    await expectNoTrace(scene, service.clusterIP);
    await expectRefused(cluster.outside, atNode);
    await make(scene, mirrored(namespace, family));
    const operator = await openOperator(scene);
    const asked = ["--config", config, "--node", second.name] as const;
    const { out } = await operator.ask("explain", `${namespace}/web`, ...asked);
    for (const text of ["user-defined network blue", THERE[family]]) {
      if (!out.includes(text)) throw new Error(`wanted ${text} in what explain says; came\n${out}`);
    }
    for (const { addresses } of by) {
      const first = addresses[family] ?? "";
      if (out.includes(first)) throw new Error(`wanted no address of the default network; came ${first} in\n${out}`);
    }
    await label(null);
    await served();
  },
};
