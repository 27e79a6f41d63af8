import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { follow } from "@fairlead/base/testing";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { compareRuleSets, parseSave } from "@fairlead/netfilter";
import { type GoldenScenario, goldenScenarios } from "@fairlead/testkit";
import { describe, test } from "vitest";
import { whyNoKernel } from "./support/real-kernel.ts";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const reason = await whyNoKernel();

/** The node of the recordings: one interface, its addresses, no default route and no Node object. */
const INTERFACES = [
  ["link", "add", "eth0", "type", "veth", "peer", "name", "peer0"],
  ["address", "add", "10.201.0.10/24", "dev", "eth0"],
  ["address", "add", "fd00:201::10/64", "dev", "eth0", "nodad"],
  ["link", "set", "peer0", "up"],
  ["link", "set", "eth0", "up"],
];

const FLAGS = [
  "--hostname-override=node-a",
  "--cluster-cidr=10.144.0.0/16,fd00:144::/48",
  "--iptables-min-sync-period=10ms",
  "--iptables-sync-period=200ms",
];

describe.skipIf(reason !== undefined)(
  `the bundle beside kube-proxy${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    test.concurrent.for(["nft", "legacy"] as const)(
      "every golden scenario, one after the other, %s",
      async (variant, { signal, expect }) => {
        await using namespace = await createNamespace();
        const inside = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
        for (const args of INTERFACES) await inside.run(["ip", ...args]);
        // kubelet's chain tells which variant the node has.
        await inside.run([`iptables-${variant}`, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"]);
        const dir = await mkdtemp(join(tmpdir(), "fairlead-golden-"));
        const manifests = join(dir, "manifests");
        await mkdir(manifests);
        const args = [`--manifests=${manifests}`, `--state-dir=${join(dir, "state")}`, ...FLAGS];
        try {
          await using _agent = follow(signal, (stop) =>
            inside.stream([process.execPath, bundle, ...args], { timeoutMs: 0, signal: stop }),
          );
          for (const scenario of goldenScenarios()) {
            await swap(dir, scenario);
            // Once nothing does so anymore, all is in place.
            await expect.poll(() => differences(inside, variant, scenario), { message: scenario.name }).toEqual([]);
          }
        } finally {
          await rm(dir, { recursive: true });
        }
      },
    );
  },
);

async function swap(dir: string, { objects }: GoldenScenario): Promise<void> {
  await writeFile(join(dir, "next.json"), JSON.stringify(objects));
  await rename(join(dir, "next.json"), join(dir, "manifests", "objects.json"));
}

async function differences(inside: Runner, variant: "nft" | "legacy", { iptables, ip6tables }: GoldenScenario) {
  const found: unknown[] = [];
  for (const [family, expected] of [
    ["IPv4", iptables],
    ["IPv6", ip6tables],
  ] as const) {
    if (expected === undefined) continue;
    const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-save`;
    const { stdout } = await inside.run([tool]);
    found.push(...compareRuleSets(parseSave(expected, { family }), parseSave(stdout, { family }), { chains }));
  }
  return found;
}

/** kubelet's chains stay what they were, so a rule that a scenario before this one needed is still there. */
function chains(_table: string, chain: string): boolean {
  return chain !== "KUBE-FIREWALL" && chain !== "KUBE-IPTABLES-HINT";
}
