import type { Diagnosis } from "@fairlead/inspect";
import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { USERS } from "@fairlead/lab/control-plane/control-plane";
import { endpointAt } from "../multi-cni/untouched.ts";
import type { ServiceHandle } from "../spec.ts";
import { type AdviceCase, type Ask, type Bench, fullyGiven, type Later, runPrinted, serviceCIDRs } from "./bench.ts";

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
