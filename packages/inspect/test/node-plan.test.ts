import { IP_FAMILIES } from "@fairlead/base";
import { OWN_ANNOTATIONS } from "@fairlead/core";
import { endpointSlice, service } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { explainService } from "../src/index.ts";
import { planned } from "./support/scenario.ts";

const node = {
  name: "node-a",
  zone: "a",
  addresses: ["10.201.0.10"],
  clusterCIDRs: ["10.144.0.0/16"],
  serviceCIDRs: ["10.96.0.0/16"],
};

/** Of each annotation a value that takes effect. */
const VALUES: Readonly<Record<string, string>> = {
  "fairlead.dev/balance": "source-hash",
  "fairlead.dev/fast-path": "off",
  "fairlead.dev/gateway-annotations": "example.org/pool",
  "fairlead.dev/gateway-routes": "=default/db",
  "fairlead.dev/ipvs-scheduler": "wrr",
  "fairlead.dev/load-balancer-ip-mode": "Proxy",
  "fairlead.dev/local-port": "8080",
  "fairlead.dev/no-local-endpoint": "reject",
  "fairlead.dev/node-port-addresses": "192.0.2.0/24",
  "fairlead.dev/node-port-source-ranges": "192.0.2.0/24",
  "fairlead.dev/ownership": "foreign",
  "fairlead.dev/weight": "9",
  "fairlead.dev/weight-refused": "true",
};
/** For an agent without rules, which no node has; and what the controller of Gateways writes. */
const OF_NO_NODE: readonly string[] = ["fairlead.dev/local-port", ...OWN_ANNOTATIONS.GatewayService];

const annotated = (name: string) => ({ [name]: VALUES[name] ?? `${name} has no value in this test` });

/** A Service of every kind of frontend, its endpoints in two slices, and a slice without any. */
function objects(annotation: string | undefined) {
  const isOf = (kind: keyof typeof OWN_ANNOTATIONS) =>
    annotation !== undefined && OWN_ANNOTATIONS[kind].includes(annotation);
  const slices = ["10.144.1.5", "10.144.2.6", undefined].map((address, at) => {
    // A share that is refused needs a weight, and no endpoints.
    const weight = at !== 1 && isOf("EndpointSlice") && annotated("fairlead.dev/weight");
    const own = isOf("EndpointSlice") && annotation !== undefined && address === undefined && annotated(annotation);
    return endpointSlice(`web-${at}`, {
      service: "web",
      family: "IPv4",
      ports: [{ port: 8080 }],
      endpoints: address === undefined ? [] : [{ address, nodeName: "node-b" }],
      annotations: { ...weight, ...own },
    });
  });
  const web = service("web", {
    type: "LoadBalancer",
    clusterIPs: ["10.96.0.9"],
    ports: [{ port: 80, nodePort: 30_080 }],
    ingress: [{ ip: "203.0.113.9" }],
    sourceRanges: ["198.51.100.0/24"],
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 32_000,
    ...(annotation !== undefined && !isOf("EndpointSlice") && { annotations: annotated(annotation) }),
  });
  return [web, ...slices];
}

describe.each(["iptables", "ipvs", "nftables"] as const)("%s: kube-proxy knows no annotation of Fairlead", (mode) => {
  /** All that is planned and said of the Service. */
  const said = async (asKubeProxy: boolean, annotation?: string) => {
    const plan = await planned({ objects: objects(annotation), node }, { mode, asKubeProxy });
    const groups = IP_FAMILIES.map((family) => [...plan.planner.plan(family).groups.values()]);
    const { notices, ...explanation } = explainService(plan, "default/web") ?? { notices: [] };
    return { notices, of: { groups, explanation, problems: plan.problems } };
  };

  test.each(Object.values(OWN_ANNOTATIONS).flat())("%s", async (annotation) => {
    expect(VALUES).toHaveProperty([annotation]);
    const [plain, { of, notices }] = [await said(true), await said(true, annotation)];
    expect(of).toEqual(plain.of);
    // The agent leaves out what an annotation has settled.
    expect(plain.notices).toEqual(expect.arrayContaining([...notices]));
    const [ours, without] = [await said(false, annotation), await said(false)];
    if (!OF_NO_NODE.includes(annotation)) expect(ours.of).not.toEqual(without.of);
  });
});
