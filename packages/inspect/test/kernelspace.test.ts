import { configuredOptions, createWindowsBackend, windowsSemantics } from "@fairlead/backend-windows";
import { parseArguments } from "@fairlead/config";
import { planOnce } from "@fairlead/core";
import { FakeHcn } from "@fairlead/kernel/fake";
import { createHcn } from "@fairlead/kernel/hcn";
import { describeHcn, hcnOf } from "@fairlead/testkit/hcn";
import { WINDOWS_CASES, WINDOWS_NODE } from "@fairlead/testkit/windows";
import { expect, test } from "vitest";
import { dryRun } from "../src/index.ts";

const [{ steps: [{ put: objects = [] } = {}] = [] } = {}] = WINDOWS_CASES;
const plan = planOnce(objects, { nodeName: WINDOWS_NODE.name, semantics: windowsSemantics }).plans.IPv4;

/** The case has a pod that its HCN does not know, and the tools take for granted that HCN knows each. */
const { endpoints } = hcnOf({ network: "L2Bridge" });
const [pod] = endpoints;
const late = { ID: "e0000000-0000-4000-8000-0000000000b4", IpConfigurations: [{ IpAddress: "10.244.1.77" }] };
const pods = [...endpoints, { HostComputeNetwork: pod?.HostComputeNetwork ?? "", ...late }];
const addressOf = (one: (typeof pods)[number]) => one.IpConfigurations[0]?.IpAddress ?? "";

test.each([
  ["", []],
  ["on an overlay", ["--source-vip=10.244.1.200"]],
  ["direct server return", ["--enable-dsr"]],
  ["forwarded probes", ["--forward-healthcheck-vip", "--root-hnsendpoint-name=10.244.1.2"]],
])("what the tools list is what the backend writes, %s", async (_, flags) => {
  const isOverlay = flags.some((flag) => flag.startsWith("--source-vip"));
  const argv = [`--network-name=${isOverlay ? "vxlan0" : "cbr0"}`, "--proxy-mode=kernelspace", ...flags];
  const parsed = parseArguments(argv, { readFile: () => "", version: "0.0.0", platform: "any" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const { config } = parsed;

  const { networks } = hcnOf({ network: isOverlay ? "Overlay" : "L2Bridge" });
  const own = { address: WINDOWS_NODE.address, mac: `MAC of ${WINDOWS_NODE.address}` };
  const others = [{ addresses: ["192.0.2.2"], podCIDRs: ["10.244.2.0/24"] }];
  const fake = new FakeHcn({ networks, endpoints: pods.map((one) => ({ ...one, Name: addressOf(one) })) });
  await createWindowsBackend(createHcn(fake), { ...configuredOptions(config), nodeAddress: async () => own }).sync(
    plan,
  );
  const { Endpoint, LoadBalancer } = fake.objects;
  const written = describeHcn({ endpoints: Endpoint.values(), loadBalancers: LoadBalancer.values() });

  const texts = await dryRun(plan, { mode: "kernelspace", config, nodes: { own: own.address, others } });
  const listed = (call: string) =>
    texts.flatMap(({ argv: [name], pieces }) => (name === call ? pieces.map((line) => JSON.parse(line)) : []));
  const made = listed("HcnCreateEndpoint").map((one) => ({ ...one, ID: addressOf(one) }));
  const there = pods.map((one) => ({ ...one, ID: addressOf(one) }));
  const lines = describeHcn({ endpoints: [...made, ...there], loadBalancers: listed("HcnCreateLoadBalancer") });
  const isTheirs = (line: string) => pods.some((one) => line.startsWith(`endpoint ${addressOf(one)} `));
  expect(lines.filter((line) => !isTheirs(line))).toEqual(written.filter((line) => !isTheirs(line)));
});
