import type { Diagnosis } from "@fairlead/inspect";
import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { until } from "../expect.ts";
import { type AdviceCase, type Bench, fullyGiven, serviceCIDRs } from "./bench.ts";
import { ELSEWHERE } from "./kernel-cases.ts";

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
