/** Cases of advice about the cluster: rights to its objects, and its networks. */

import type { Diagnosis } from "@fairlead/inspect";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { USERS } from "@fairlead/lab/control-plane/control-plane";
import { resourceDefinition } from "@fairlead/lab/control-plane/network-resources";
import { until } from "../expect.ts";
import { endpointAt } from "../multi-cni/untouched.ts";
import type { ServiceHandle } from "../spec.ts";
import { type AdviceCases, type Ask, type Bench, type Later, runPrinted, serviceCIDRs } from "./bench.ts";

const USER = "fairlead-advice";
const NO_CONFIG = ["env", "HOME=/nonexistent"];

const kubeSystem = (metadata: { readonly name: string }) => ({ ...metadata, namespace: "kube-system" });

const RBAC = { apiVersion: "rbac.authorization.k8s.io/v1" } as const;

const binding = (name: string, role = name): ApiObject => ({
  ...{ ...RBAC, kind: "ClusterRoleBinding", metadata: { name } },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
  subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name }],
});

const NODE_READER = "fairlead-advice-nodes";
const NODE_READERS_ROLE: ApiObject = {
  ...{ ...RBAC, kind: "ClusterRole", metadata: { name: NODE_READER } },
  rules: [
    { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
    { apiGroups: [""], resources: ["pods/exec", "pods/portforward"], verbs: ["get", "create"] },
  ],
};

const FELIX_RESOURCE = resourceDefinition("crd.projectcalico.org", "FelixConfiguration", "felixconfigurations", "v1");
const FELIX: ApiObject = {
  apiVersion: "crd.projectcalico.org/v1",
  kind: "FelixConfiguration",
  metadata: { name: "default" },
  spec: { bpfEnabled: true },
};
const cilium = (replaces: "true" | "false"): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: kubeSystem({ name: "cilium-config" }),
  data: { "kube-proxy-replacement": replaces },
});

/** What can be seen, with which rights, and what the API server says. */
export const accessCases = {
  "bind-role": {
    what: "the account may not list what an agent needs",
    make: async (bench) => asUser(bench),
    follow: async (bench) => {
      await made(bench, bench.scene.later, binding(USER, "system:node-proxier"));
      return asUser(bench);
    },
  },
  "ask-as-agent": {
    what: "an operator who may look at nodes, but not list what an agent needs",
    make: async (bench, later) => {
      await made(bench, later, NODE_READERS_ROLE, binding(NODE_READER));
      const file = await bench.operatorAs(NODE_READER);
      return async () =>
        JSON.parse(
          (await bench.operator.ask("doctor", "--kubeconfig", file, "--on", bench.node.name, "-o", "json")).out,
        ) as readonly Diagnosis[];
    },
  },
  "calico-bpf": {
    what: "Calico is to serve services by BPF",
    anyProxy: true,
    make: async (bench, later) => {
      await made(bench, later, FELIX_RESOURCE);
      // A resource that was just defined is served a moment later.
      await until("the resource to be served", () => made(bench, later, FELIX).then(() => undefined, String));
    },
    follow: async ({ scene: { cluster } }) =>
      void (await cluster.api.patch(objectPath(FELIX), { spec: { bpfEnabled: false } })),
  },
  "cilium-replaces": {
    what: "Cilium replaces kube-proxy",
    anyProxy: true,
    make: (bench, later) => made(bench, later, cilium("true")),
    follow: async ({ scene: { cluster } }) =>
      void (await cluster.api.patch(objectPath(cilium("false")), { data: { "kube-proxy-replacement": "false" } })),
  },
  "cilium-look": {
    what: "there are Cilium's chains, and its settings are not known",
    anyProxy: true,
    make: async (bench, later) => {
      await made(bench, later, cilium("false"));
      later(() => bench.sh("iptables -X CILIUM_FORWARD"));
      await bench.sh("iptables -N CILIUM_FORWARD");
      return () => bench.doctor(serviceCIDRs(bench.scene), NO_CONFIG);
    },
  },
} satisfies AdviceCases;

async function asUser(bench: Bench) {
  const file = await bench.otherKubeconfig({ as: USER });
  return () => bench.doctor(["--kubeconfig", file, ...serviceCIDRs(bench.scene)]);
}

async function made(
  { scene: { cluster } }: Pick<Bench, "scene">,
  later: Bench["scene"]["later"],
  ...objects: readonly ApiObject[]
): Promise<void> {
  for (const object of objects) {
    await cluster.api.create(object);
    later(() => cluster.api.delete(objectPath(object)));
  }
}

/** Another network's, which no pod is in. */
const OTHERS = { IPv4: "10.151.0.0/16", IPv6: "fd00:151::/48" } as const;
const OTHERS_ENDPOINT = { IPv4: "10.151.0.9", IPv6: "fd00:151::9" } as const;
const ELSEWHERE_FLAGS = [`--exclude-cluster-cidr=${Object.values(OTHERS).join(",")}`];

/** Where the operator is, through the API server: other nodes' agents are reached there. */
const byOperator =
  ({ operator, node }: Bench): Ask =>
  async () =>
    JSON.parse((await operator.ask("doctor", "--on", node.name, "-o", "json")).out) as readonly Diagnosis[];

/** All agents ignore another network. */
async function excluding({ scene }: Bench, later: Later): Promise<void> {
  later(() => Promise.all(scene.cluster.nodes.map(({ agent }) => agent.restart())));
  await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.restart({ flags: ELSEWHERE_FLAGS })));
}

async function withAgentsRights(bench: Bench, later: Later): Promise<Ask> {
  await excluding(bench, later);
  const file = await bench.otherKubeconfig({ as: USERS.proxy.name });
  return () => bench.doctor(["--kubeconfig", file, ...serviceCIDRs(bench.scene)]);
}

async function theirs({ scene }: Bench, later: Later): Promise<ServiceHandle> {
  const { namespace, family } = scene;
  const service = await scene.service("theirs", { ports: [{ port: 80 }] });
  const slice = endpointAt({ namespace, service: "theirs", family, address: OTHERS_ENDPOINT[family] });
  later(() => service.remove());
  await made({ scene }, later, slice);
  return service;
}

/** Called for nothing that exists. */
const webhook = (namespace: string): ApiObject => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: namespace },
  webhooks: [
    {
      name: "theirs.fairlead.test",
      clientConfig: { service: { name: "theirs", namespace, port: 80 } },
      rules: [{ apiGroups: ["none.test"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["none"] }],
      ...{ failurePolicy: "Ignore", sideEffects: "None", admissionReviewVersions: ["v1"], timeoutSeconds: 1 },
    },
  ],
});

/** CIDRs of networks, and what agents decide by them. */
export const networkCases = {
  "reach-agents": {
    what: "agents' pods may not be listed",
    make: withAgentsRights,
    follow: async (bench) => byOperator(bench),
  },
  "list-calls": {
    what: "webhooks may not be listed",
    make: withAgentsRights,
  },
  "answer-calls": {
    what: "the API server calls a service that is left to another network",
    make: async (bench, later) => {
      await excluding(bench, later);
      services.set(bench, await theirs(bench, later));
      await made(bench, later, webhook(bench.scene.namespace));
      return byOperator(bench);
    },
    follow: async (bench) => {
      await services.get(bench)?.annotate("fairlead.dev/ownership", "ours");
      return byOperator(bench);
    },
  },
  "compare-decisions": {
    what: "one agent excludes a CIDR that the others do not know",
    make: async (bench, later) => {
      later(() => bench.node.agent.restart());
      await bench.node.agent.restart({ flags: ELSEWHERE_FLAGS });
      await theirs(bench, later);
      return byOperator(bench);
    },
    follow: async (bench) => {
      await Promise.all(bench.scene.cluster.nodes.map(({ agent }) => agent.restart({ flags: ELSEWHERE_FLAGS })));
      return byOperator(bench);
    },
  },
  "look-at-agents": {
    what: "another node's agent does not answer",
    make: async (bench, later) => {
      const [other] = bench.scene.nodes;
      await excluding(bench, later);
      await other.agent.kill();
      return byOperator(bench);
    },
    follow: async (bench, advice) => {
      const [other] = bench.scene.nodes;
      await runPrinted(bench, advice);
      await other.agent.restart({ flags: ELSEWHERE_FLAGS });
      return byOperator(bench);
    },
  },
} satisfies AdviceCases;

const services = new WeakMap<Bench, ServiceHandle>();
