/** Cases of advice about the cluster: rights to its objects, and its networks. */

import type { Diagnosis } from "@fairlead/inspect";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { USERS } from "@fairlead/lab/control-plane/control-plane";
import { until } from "../expect.ts";
import { endpointAt } from "../multi-cni/untouched.ts";
import type { ServiceHandle } from "../spec.ts";
import { type AdviceCase, type Ask, type Bench, fullyGiven, type Later, runPrinted, serviceCIDRs } from "./bench.ts";
import { ELSEWHERE } from "./node-cases.ts";

const WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw"];
const USER = "fairlead-advice";
const NO_CONFIG = ["env", "HOME=/nonexistent"];

/** In mounts of its own, where these programs cannot be started. */
function withoutPrograms(bench: Bench, ...names: readonly string[]) {
  const hide = `for name in ${names.join(" ")}; do mount --bind /dev/null "$(readlink -f "$(command -v $name)")"; done`;
  const before = ["unshare", "--mount", "sh", "-ec", `${hide}; exec "$@"`, "sh"];
  return () => bench.doctor(fullyGiven(bench), before);
}

/** They are installed. */
const asUsual = async (bench: Bench) => () => bench.doctor(fullyGiven(bench));

const kubeSystem = (metadata: { readonly name: string }) => ({ ...metadata, namespace: "kube-system" });

const BINDING: ApiObject = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRoleBinding",
  metadata: { name: USER },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node-proxier" },
  subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: USER }],
};

const NODE_READERS_NAME = "fairlead-advice-nodes";
const NODE_READER: readonly ApiObject[] = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: NODE_READERS_NAME },
    rules: [
      { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
      { apiGroups: [""], resources: ["pods/exec", "pods/portforward"], verbs: ["get", "create"] },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: NODE_READERS_NAME },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: NODE_READERS_NAME },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: NODE_READERS_NAME }],
  },
];

const FELIX_RESOURCE: ApiObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "felixconfigurations.crd.projectcalico.org" },
  spec: {
    group: "crd.projectcalico.org",
    scope: "Cluster",
    names: { kind: "FelixConfiguration", plural: "felixconfigurations" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};
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
export const accessCases: readonly AdviceCase[] = [
  {
    advice: "look-as-root",
    what: "rules may not be read",
    check: "iptables",
    make: async (bench) => () => bench.doctor(fullyGiven(bench), WITHOUT_RIGHTS),
  },
  {
    advice: "install-iptables",
    what: "iptables is not installed",
    modes: ["iptables"],
    make: async (bench) => withoutPrograms(bench, "iptables-nft", "iptables-legacy"),
    follow: asUsual,
  },
  {
    advice: "install-ip",
    what: "ip is not installed",
    make: async (bench) => withoutPrograms(bench, "ip"),
    follow: asUsual,
  },
  {
    advice: "give-cidrs",
    what: "the services' CIDRs are not known",
    anyProxy: true,
    make: async (bench) => () => bench.doctor(["--kubeconfig", bench.kubeconfig]),
  },
  {
    advice: "give-cidrs",
    what: "the pods' CIDRs are not known",
    check: "route to pods",
    make: async (bench, later) => {
      later(() => bench.node.agent.restart());
      await bench.node.agent.restart({ learns: true });
    },
    follow: async (bench) => () =>
      bench.doctor([...fullyGiven(bench), ...podCIDRs(bench).flatMap((cidr) => ["--cluster-cidr", cidr])]),
  },
  {
    advice: "give-kubeconfig",
    what: "no cluster is known",
    anyProxy: true,
    make: async (bench) => () => bench.doctor(serviceCIDRs(bench.scene), NO_CONFIG),
    follow: async (bench) => () => bench.doctor(fullyGiven(bench), NO_CONFIG),
  },
  {
    advice: "read-settings",
    what: "neither the host's file systems nor Cilium's settings can be seen",
    make: async (bench) => () => bench.doctor(serviceCIDRs(bench.scene), [...NO_CONFIG, ...ELSEWHERE]),
    follow: async (bench) => () => bench.doctor(fullyGiven(bench), [...NO_CONFIG, ...ELSEWHERE]),
  },
  {
    advice: "reach-api-server",
    what: "the kubeconfig names a server that does not answer",
    make: async (bench) => {
      const file = await bench.otherKubeconfig({ server: "https://127.0.0.1:1" });
      return () => bench.doctor(["--kubeconfig", file, ...serviceCIDRs(bench.scene)]);
    },
  },
  {
    advice: "bind-role",
    what: "the account may not list what an agent needs",
    make: async (bench) => asUser(bench),
    follow: async (bench) => {
      await bench.scene.cluster.api.create(BINDING);
      bench.scene.later(() => bench.scene.cluster.api.delete(objectPath(BINDING)));
      return asUser(bench);
    },
  },
  {
    advice: "ask-as-agent",
    what: "an operator who may look at nodes, but not list what an agent needs",
    make: async (bench, later) => {
      const { api } = bench.scene.cluster;
      for (const object of NODE_READER) {
        await api.create(object);
        later(() => api.delete(objectPath(object)));
      }
      const file = await bench.operatorAs(NODE_READERS_NAME);
      return async () =>
        JSON.parse(
          (await bench.operator.ask("doctor", "--kubeconfig", file, "--on", bench.node.name, "-o", "json")).out,
        ) as readonly Diagnosis[];
    },
  },
  {
    advice: "calico-bpf",
    what: "Calico is to serve services by BPF",
    anyProxy: true,
    make: async ({ scene: { cluster } }, later) => {
      await cluster.api.create(FELIX_RESOURCE);
      later(() => cluster.api.delete(objectPath(FELIX_RESOURCE)));
      later(() => cluster.api.delete(objectPath(FELIX)));
      await servedNow(() => cluster.api.create(FELIX));
    },
    follow: async ({ scene: { cluster } }) =>
      void (await cluster.api.patch(objectPath(FELIX), { spec: { bpfEnabled: false } })),
  },
  {
    advice: "cilium-replaces",
    what: "Cilium replaces kube-proxy",
    anyProxy: true,
    make: async ({ scene: { cluster } }, later) => {
      await cluster.api.create(cilium("true"));
      later(() => cluster.api.delete(objectPath(cilium("true"))));
    },
    follow: async ({ scene: { cluster } }) =>
      void (await cluster.api.patch(objectPath(cilium("false")), { data: { "kube-proxy-replacement": "false" } })),
  },
  {
    advice: "cilium-look",
    what: "there are Cilium's chains, and its settings are not known",
    anyProxy: true,
    make: async (bench, later) => {
      const { api } = bench.scene.cluster;
      await api.create(cilium("false"));
      later(() => api.delete(objectPath(cilium("false"))));
      later(() => bench.sh("iptables -X CILIUM_FORWARD"));
      await bench.sh("iptables -N CILIUM_FORWARD");
      return () => bench.doctor(serviceCIDRs(bench.scene), NO_CONFIG);
    },
  },
];

async function asUser(bench: Bench) {
  const file = await bench.otherKubeconfig({ as: USER });
  return () => bench.doctor(["--kubeconfig", file, ...serviceCIDRs(bench.scene)]);
}

function podCIDRs({ scene }: Bench): readonly string[] {
  return Object.values(scene.network.podCIDRs);
}

/** A resource that was just defined is served a moment later. */
async function servedNow(create: () => Promise<unknown>): Promise<void> {
  await until("the resource to be served", () => create().then(() => undefined, String));
}

/** Another network's, which no pod is in. */
const OTHERS = { IPv4: "10.151.0.0/16", IPv6: "fd00:151::/48" } as const;
const OTHERS_ENDPOINT = { IPv4: "10.151.0.9", IPv6: "fd00:151::9" } as const;
const ELSEWHERE_FLAGS = [`--exclude-cluster-cidr=${Object.values(OTHERS).join(",")}`];

/** With options alongside those that are right. */
const overlapping = (given: (bench: Bench) => readonly string[]): AdviceCase["make"] => {
  return async (bench) => () => bench.doctor([...fullyGiven(bench), ...given(bench)]);
};
const podCIDR = ({ scene }: Bench) => scene.network.podCIDRs[scene.family] ?? "";
const clusterCIDRs = ({ scene }: Bench) =>
  Object.values(scene.network.podCIDRs).flatMap((cidr) => ["--cluster-cidr", cidr]);
/** A range within the pods' own. */
const within = (bench: Bench) => podCIDR(bench).replace(/\/\d+$/, bench.scene.family === "IPv4" ? "/24" : "/112");
/** The first family's addresses of the nodes. */
const nodesRange = ({ node, scene }: Bench) => {
  const address = node.addresses[scene.family] ?? "";
  return scene.family === "IPv4" ? address.replace(/\.\d+$/, ".0/24") : address.replace(/::.*$/, "::/64");
};

/** Where the operator is, through the API server: other nodes' agents are reached there. */
const byOperator =
  ({ operator, node }: Bench): Ask =>
  async () =>
    JSON.parse((await operator.ask("doctor", "--on", node.name, "-o", "json")).out) as readonly Diagnosis[];

/** All agents leave another network alone. */
async function excluding({ scene }: Bench, later: Later): Promise<void> {
  later(() => Promise.all(scene.cluster.nodes.map(({ agent }) => agent.restart())));
  await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.restart({ flags: ELSEWHERE_FLAGS })));
}

/** Doctor is given the agent's own kubeconfig. */
async function withAgentsRights(bench: Bench, later: Later): Promise<Ask> {
  await excluding(bench, later);
  const file = await bench.otherKubeconfig({ as: USERS.proxy.name });
  return () => bench.doctor(["--kubeconfig", file, ...serviceCIDRs(bench.scene)]);
}

/** A service whose endpoint is the other network's. */
async function theirs({ scene }: Bench, later: Later): Promise<ServiceHandle> {
  const { namespace, family, cluster } = scene;
  const service = await scene.service("theirs", { ports: [{ port: 80 }] });
  const slice = endpointAt({ namespace, service: "theirs", family, address: OTHERS_ENDPOINT[family] });
  later(() => service.remove());
  later(() => cluster.api.delete(objectPath(slice)));
  await cluster.api.create(slice);
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
export const networkCases: readonly AdviceCase[] = [
  {
    advice: "pods-bridge",
    what: "the node has an address on its pods' bridge",
    anyProxy: true,
    stays: true,
    make: async () => {},
  },
  {
    advice: "services-overlap",
    what: "the pods' CIDR is given for the services'",
    make: overlapping((bench) => ["--service-cidr", podCIDR(bench)]),
  },
  {
    advice: "nodes-overlap",
    what: "the nodes' addresses are in a CIDR of pods",
    make: overlapping((bench) => [...clusterCIDRs(bench), "--cluster-cidr", nodesRange(bench)]),
    // The address on the pods' bridge is another line's.
    stays: true,
  },
  {
    advice: "one-side",
    what: "a CIDR is named on both sides",
    make: overlapping((bench) => {
      const cidr = OTHERS[bench.scene.family];
      return [...clusterCIDRs(bench), "--cluster-cidr", cidr, "--exclude-cluster-cidr", cidr];
    }),
  },
  {
    advice: "within-other",
    what: "a CIDR lies within the other side's",
    make: overlapping((bench) => ["--exclude-cluster-cidr", within(bench)]),
  },
  {
    advice: "reach-agents",
    what: "agents' pods may not be listed",
    make: withAgentsRights,
    follow: async (bench) => byOperator(bench),
  },
  {
    advice: "list-calls",
    what: "webhooks may not be listed",
    make: withAgentsRights,
  },
  {
    advice: "answer-calls",
    what: "the API server calls a service that is left to another network",
    make: async (bench, later) => {
      const { scene } = bench;
      const { api } = scene.cluster;
      await excluding(bench, later);
      services.set(bench, await theirs(bench, later));
      const object = webhook(scene.namespace);
      await api.create(object);
      later(() => api.delete(objectPath(object)));
      return byOperator(bench);
    },
    follow: async (bench) => {
      await services.get(bench)?.annotate("fairlead.dev/ownership", "ours");
      return byOperator(bench);
    },
  },
  {
    advice: "compare-decisions",
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
  {
    advice: "look-at-agents",
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
];

const services = new WeakMap<Bench, ServiceHandle>();
