import { onlyIn } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { openTool } from "../tool-on.ts";

const PORTS = [{ port: 80 }];

/** What of the answers is looked at. */
interface Explanation {
  readonly families: readonly {
    readonly ownership: { readonly ownership: string };
    readonly ports: readonly { readonly endpoints: readonly { readonly address: string }[] }[];
  }[];
  readonly kernel: readonly { readonly checked: number; readonly disagreements: readonly unknown[] }[];
}

/** The command line tool of an administrator on a node: objects by the real API server, rules of the running agent. */
export const tools: Spec = {
  name: "tools: explain, plan, ownership and diff of the real API server and the node's kernel",
  suite: "services",
  about: ["agent"],
  // What diff compares is the whole cluster.
  alone: true,
  unfit: (shape) =>
    shape.provider === "netns" && shape.ownKernel !== true
      ? onlyIn(["iptables"], "looks at iptables mode's rules")(shape)
      : "the tool runs on nodes that are namespaces of this machine",
  run: async (scene, cluster) => {
    const pods = await Promise.all(scene.nodes.map((node) => scene.pod({ node, app: "web" })));
    const { clusterIP } = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const tool = await openTool(scene);
    const fairlead = (...args: readonly string[]) => tool(scene.nodes[0], cluster.mode, ...args);
    const name = `${scene.namespace}/web`;
    const family = scene.family.toLowerCase();
    const addresses = pods.map((pod) => pod.addresses[scene.family] ?? "").sort();

    await scene.until("explain to find both endpoints, and a kernel that agrees", async () => {
      const reported = await fairlead("explain", name, "--live", "-o", "json").catch(String);
      return reported.startsWith("{") ? complaintOf(JSON.parse(reported), addresses) : reported;
    });
    const byAddress = await fairlead("explain", scene.family === "IPv6" ? `[${clusterIP}]:80` : `${clusterIP}:80`);
    if (!byAddress.includes(name)) throw new Error(`${clusterIP} wanted as ${name}, explained as:\n${byAddress}`);

    const plan = await fairlead("plan", "--family", family);
    const missing = [clusterIP, ...addresses].filter((address) => !plan.includes(address));
    if (missing.length > 0) throw new Error(`plan has no ${missing.join(", ")}:\n${plan}`);
    const owners = await fairlead("ownership");
    const own = owners.split("\n").find((line) => line.startsWith(`${name} `)) ?? "";
    if (!/\sours\s+2\s+0\s/.test(own)) throw new Error(`${name} wanted as ours, with 2 endpoints, in:\n${owners}`);

    await scene.until("the cluster and the node not to differ", async () => {
      const reported = await fairlead("diff", "cluster", "node", "--family", family).catch(String);
      return /^Traffic: the same, \d+ kinds/.test(reported) && !reported.includes("Rules:") ? undefined : reported;
    });
  },
};

function complaintOf({ families, kernel }: Explanation, addresses: readonly string[]): string | undefined {
  const [
    {
      ownership,
      ports: [port],
    } = { ownership: { ownership: "nobody" }, ports: [] },
  ] = families;
  const found = (port?.endpoints ?? []).map(({ address }) => address).sort();
  const checked = kernel.reduce((sum, one) => sum + one.checked, 0);
  const differing = kernel.flatMap(({ disagreements }) => disagreements);
  const isWhole = ownership.ownership === "ours" && String(found) === String(addresses);
  if (isWhole && checked > 0 && differing.length === 0) return undefined;
  return `${ownership.ownership}, with ${found.join(", ")}, ${checked} kinds of packets traced; ${JSON.stringify(differing)}`;
}
