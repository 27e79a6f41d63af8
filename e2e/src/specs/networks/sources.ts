/** Each kind of object that networks are learned from. */

import { fileURLToPath } from "node:url";
import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import { networkResource, networkResources } from "@fairlead/lab/control-plane/network-resources";
import { modeNamed } from "@fairlead/lab/modes";
import type { Client } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectRefused, expectUntouched } from "../expect.ts";
import { startTraffic, withoutFailure } from "../faults/stage.ts";
import { expectNoTrace, OWNERSHIP } from "../multi-cni/untouched.ts";
import { openOperator } from "../operator.ts";
import { able, nearAndFar, needs, onlyIPv4, type Scene, type Spec } from "../spec.ts";
import {
  allow,
  CIDR,
  install,
  ipPool,
  learnBy,
  learnFrom,
  make,
  makeVpc,
  openOthers,
  subnet,
  untilLearned,
  untilStage,
  untilState,
} from "./learning.ts";

/** An object of each resource, and what its source has to say of it. */
const reported: readonly (readonly [object: ApiObject, cidr: string])[] = [
  [subnet("ovn-default", "10.16.0.0/16,fd00:10:16::/112"), "10.16.0.0/16"],
  [ipPool("default-ipv4-ippool", "10.17.0.0/16"), "10.17.0.0/16"],
  [object("projectcalico.org/v3", "IPPool", { cidr: "10.18.0.0/16", disabled: true }), "10.18.0.0/16"],
  [
    object("cilium.io/v2", "CiliumPodIPPool", { ipv4: { cidrs: [{ cidr: "10.20.0.0/16" }], maskSize: 24 } }),
    "10.20.0.0/16",
  ],
  [
    object("crd.antrea.io/v1beta1", "IPPool", {
      ipRanges: [{ start: "10.22.0.0", end: "10.22.1.255" }],
      subnetInfo: { gateway: "10.22.0.1", prefixLength: 23 },
    }),
    "10.22.0.0/23",
  ],
  [object("spiderpool.spidernet.io/v2beta1", "SpiderIPPool", { subnet: "10.23.0.0/16" }), "10.23.0.0/16"],
];
const SOURCES = "kube-ovn-subnets,calico-ippools,cilium-pools,antrea-ippools,spiderpool,flannel";

export const everySource: Spec = {
  name: "what each network's own resources say is learned, from a real API server",
  suite: "networks",
  eachFamily: false,
  unfit: needs("learn"),
  run: async (scene) => {
    await allow(scene);
    await Promise.all(networkResources.map((definition) => install(scene, definition)));
    await Promise.all(reported.map(([one]) => make(scene, one)));
    await learnFrom(scene, `--exclude-cidrs-from=${SOURCES}`);
    const wanted = [...reported.map(([, cidr]) => cidr), "fd00:10:16::/112"];
    await untilLearned(scene, "a CIDR of each", ({ cidrs }) => {
      const missing = wanted.filter((cidr) => !cidrs.some((one) => one.cidr === cidr && one.stage === "effective"));
      return missing.length === 0 ? undefined : `all but ${missing.join(", ")}`;
    });
    return { resources: String(networkResources.length), CIDRs: String(wanted.length) };
  },
};

/** Of a Subnet that names no VPC. */
const BARE = "10.248.0.0/16";

const SOURCE = "kube-ovn-subnets";

const TRAFFIC_MS = 5 * 60_000;

export const defaultVpc: Spec = {
  name: "kube-ovn's default VPC has another name: its Vpc says so, may not be read at first, and goes with its CRD",
  suite: "networks",
  eachFamily: false,
  unfit: (shape) => needs("learn")(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape),
  run: async (scene) => {
    const { caller, atOurs, foreign } = await openOthers(scene);
    const [first] = scene.nodes;
    await install(scene, networkResource("kubeovn.io", "Subnet"));
    const uninstall = await install(scene, networkResource("kubeovn.io", "Vpc"));
    await make(scene, subnet("main-default", CIDR, "main"));
    await make(scene, subnet("bare", BARE));
    await makeVpc(scene, "main", { default: true, subnets: ["main-default"] });
    const revoke = await allow(scene, "vpcs");
    const startAnew = await learnFrom(scene, `--exclude-cidrs-from=${SOURCE}`);
    const traffic = startTraffic([{ from: caller, ...atOurs }], scene.later, TRAFFIC_MS);
    // An agent that may not read Vpcs takes ovn-cluster for the default one, and says what is missing.
    await untilState(scene, SOURCE, "forbidden");
    await untilStage(scene, BARE, "effective");
    await untilLearned(scene, "Vpcs to be forbidden, and nothing to be learned by them", ({ sources, cidrs }) => {
      const wrong = cidrs.some(({ cidr }) => cidr === CIDR) || sources[0]?.forbidden?.join() !== "vpcs.kubeovn.io";
      return wrong ? JSON.stringify({ sources, cidrs }) : undefined;
    });
    await revoke();
    await allow(scene);
    await untilState(scene, SOURCE, "listed");
    await untilStage(scene, CIDR, "effective");
    await foreign();
    await uninstall();
    await startAnew(first);
    await untilState(scene, SOURCE, "listed");
    await untilStage(scene, CIDR, "effective");
    await foreign();
    return withoutFailure(await traffic.stop());
  },
};

const LABEL = "k8s.ovn.org/primary-user-defined-network";
const MULTI_CNI = {
  excludedFrontends: "excluded-clients",
  serviceRules: [{ namespaceLabel: LABEL, ownership: "foreign" }],
};
/** Of pods on the user-defined network, which this cluster does not have. */
const THERE = { IPv4: "10.253.1.3", IPv6: "fd00:253::3" } as const;

/** Its label is there from the start where OVN-Kubernetes is; here it comes to a namespace that was served. */
export const userDefined: Spec = {
  name: "a user-defined network of OVN-Kubernetes: ClusterIPs and node ports of its namespace are left to it, and tools show the mirrored endpoints",
  suite: "networks",
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
    await learnBy(scene, { multiCNI: MULTI_CNI });
    await served();
    const label = (value: string | null) =>
      cluster.api.patch(`/api/v1/namespaces/${namespace}`, { metadata: { labels: { [LABEL]: value } } });
    await label("");
    await expectNoTrace(scene, service.clusterIP);
    await expectRefused(cluster.outside, atNode);
    await make(scene, mirrored(namespace, family));
    const operator = await openOperator(scene);
    const { out } = await operator.ask("explain", `${namespace}/web`, "--node", second.name);
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

const PORTS = [
  { name: "tcp", port: 80, protocol: "TCP" },
  { name: "udp", port: 80, protocol: "UDP" },
] as const;

const KEPT = fileURLToPath(new URL("programs/kept-main.ts", import.meta.url));

export const openConnection: Spec = {
  name: "what is open while its service is left to another network: TCP goes on where the mode can, a busy UDP client is let go",
  suite: "multi-cni",
  unfit: needs("pod-script"),
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [caller, web] = await Promise.all([scene.pod({ node: first }), scene.pod({ node: second, app: "web" })]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [web] });
    const kept = await able(caller.startScript)(KEPT, [target.to, String(target.port)]);
    const expectOn = async (when: string, wanted: string) => {
      const came = await kept.ask("ask");
      if (came !== wanted) throw new Error(`wanted ${wanted} on the connection ${when}; came ${came}`);
    };
    await expectOn("at first", web.name);
    for (const from of [caller, first]) await untilFlow(scene, from, target.to, "answered");
    await service.annotate(OWNERSHIP, "foreign");
    await Promise.all([caller, first].map((from) => untilFlow(scene, from, target.to, "let go")));
    await expectUntouched(caller, target);
    await expectOn("afterwards", modeNamed(scene.cluster.mode).keepsLeft ? web.name : "nothing");
    await kept.stop();
  },
};

function object(apiVersion: string, kind: string, spec: unknown): ApiObject {
  return { apiVersion, kind, metadata: { name: "one" }, spec };
}

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

/** One flow to the kernel, however often it is asked. */
const FLOW = { protocol: "UDP", port: 80, sourcePort: 5_353, count: 1, parallel: 1, timeoutMs: 2_500 } as const;

async function untilFlow({ until }: Scene, from: Client, to: string, wanted: "answered" | "let go"): Promise<void> {
  await until(`the flow of ${from.name} to ${to} to be ${wanted}`, async () => {
    const [result] = await from.send({ ...FLOW, to });
    const came = result?.kind === "answer" ? "answered" : "let go";
    return came === wanted ? undefined : came;
  });
}
