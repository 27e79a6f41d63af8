import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { type AgentFolder, type AgentProcess, agentFolder, startAgent } from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { inflict } from "@fairlead/lab/faults";
import {
  type KubeProxy,
  type KubeProxyMode,
  type NamespaceApi,
  startApi,
  startKubeProxy,
} from "@fairlead/lab/plain/kube-proxy";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { fairlead, requireTool, tool } from "@fairlead/lab/tools/page-reader";
import { LazySaveParser } from "@fairlead/netfilter";
import { clusterObjects, conformanceTable, NODE_A, type RawObject, webA1, webB1, workload } from "@fairlead/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CaseGroup, groupCases } from "../../src/cases/conformance/groups.ts";
import { portsOf } from "../../src/cases/conformance/programmed.ts";
import { compare, packetsFor } from "../../src/cases/tracer/compare.ts";
import { labForEach } from "./lab-for.ts";

const START_MS = 300_000;
const NOTHING = { code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" };
/** Packets that are on their way at once. */
const AT_ONCE = 100;
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** Ownership by annotation is Fairlead's own. */
const AS_KUBE_PROXY = ["--agent-flag", "ownership-annotation=false"];

/**
 * Rows that are not kube-proxy's: our annotations; external IPs that are a ClusterIP as well, which it serves; source
 * ranges without a CIDR, which it takes for none.
 */
const OWN_RULES = /"fairlead\.dev\/|"taker-|"the office"/;

/** The conformance table's clusters that kube-proxy serves with its plain configuration. */
const shared = conformanceTable.filter(({ history }) => !OWN_RULES.test(JSON.stringify(history)));
const [standard] = groupCases(shared, shared.length);
const clusters = groupCases(standard?.rows ?? []).map((cluster, at) => {
  return { ...cluster, part: at + 1, variant: at % 2 === 0 ? "nft" : "legacy" } as const;
});

const web = workload(1, { endpoints: [webA1, webB1], nodePort: true });
const WEB = web.clusterIP.IPv4;
/** A service of each kind. */
const SERVED: readonly RawObject[] = [
  ...web.objects,
  ...workload(2, { endpoints: [webA1, NODE_A], loadBalancer: "VIP", sourceRanges: ["198.51.100.0/24"] }).objects,
  ...workload(3, { endpoints: [], external: true }).objects,
  ...workload(4, { endpoints: [webA1, webB1], affinitySeconds: 600 }).objects,
];

/** Runs where FAIRLEAD_KUBE_PROXY names the real kube-proxy: `pnpm bench` builds it. */
export function toolsAlongsideKubeProxy(program: string): void {
  describe("the tools alongside the real kube-proxy", () => {
    const lab = labForEach(portsOf(conformanceTable), requireTool);
    let folder: AgentFolder;
    let api: NamespaceApi | undefined;
    let kubeProxy: KubeProxy | undefined;
    let shadow: AgentProcess | undefined;

    beforeEach(async () => {
      folder = await agentFolder([]);
    });

    afterEach(async () => {
      await shadow?.kill();
      await kubeProxy?.stop("SIGKILL");
      await api?.stop();
      await rm(folder.path, { recursive: true });
    });

    async function start(objects: readonly RawObject[], mode: KubeProxyMode): Promise<readonly string[]> {
      api = await startApi(lab.namespace("node-a"), [...clusterObjects, ...objects]);
      const access = join(folder.path, "kubeconfig");
      await writeFile(access, kubeconfig({ server: api.url, token: USERS.proxy.token }));
      const own = join(folder.path, "kube-proxy");
      kubeProxy = await startKubeProxy(lab, { ...mode, program, kubeconfig: access, folder: own });
      return ["--config", join(own, "config.conf"), "--kubeconfig", access, "--node", "node-a", ...AS_KUBE_PROXY];
    }

    async function serve({ history }: CaseGroup, variant: "nft" | "legacy"): Promise<readonly string[]> {
      const setup = await start(history.at(-1) ?? [], { mode: "iptables", variant });
      await waitUntil("kube-proxy's first sync", START_MS, async () => {
        const saved = await Promise.all(FAMILIES.map(rules(variant)));
        // It writes all rules of a family in one go.
        return saved.every((text) => text.includes("\n-A KUBE-POSTROUTING ")) ? true : undefined;
      }).catch(async (error: unknown) => {
        throw new Error(`kube-proxy does not serve; its log:\n${await kubeProxy?.log()}`, { cause: error });
      });
      return setup;
    }

    const rules = (variant: string) => async (family: IPFamily) => {
      const tool = PLAIN_TOOL[family];
      return (await lab.runner("node-a").run([`${tool}-${variant}-save`])).stdout;
    };

    test.each(clusters)(
      "part $part of the table ($variant): the tracer knows where packets go, verify finds nothing",
      async ({ part, variant, ...cluster }) => {
        const setup = await serve(cluster, variant);
        expect(await fairlead(lab, "verify", ...setup)).toEqual(NOTHING);
        const answeredByItself = healthCheckPorts(cluster);
        for (const family of FAMILIES) {
          const parser = new LazySaveParser({ family });
          parser.push(await rules(variant)(family));
          const ruleSet = parser.end();
          const packets = packetsFor(ruleSet, family).filter(({ port }) => !answeredByItself.has(port));
          for (let from = 0; from < packets.length; from += AT_ONCE) {
            const { differences } = await compare(lab, ruleSet, packets.slice(from, from + AT_ONCE), family);
            expect(differences).toEqual([]);
          }
          process.stdout.write(`kube-proxy, part ${part} ${variant} ${family}: ${packets.length} packets\n`);
        }
      },
    );

    test.each(DAMAGES)(
      "$mode.mode: verify and verify --watch find what is damaged: $what",
      async ({ mode, damage }) => {
        const setup = await start(SERVED, mode);
        await expect.poll(() => fairlead(lab, "verify", ...setup)).toEqual(NOTHING);
        const flags = ["verify", "--watch", ...setup];
        shadow = startAgent(lab.namespace("node-a"), { bundle: tool, flags });
        await expect.poll(() => shadow?.log()).toContain("Comparing with kube-proxy");
        // It would repair some of it.
        await kubeProxy?.stop("SIGKILL");
        await damage(lab.runner("node-a"));
        const { code, out } = await fairlead(lab, "verify", ...setup);
        expect(out).toMatch(/^(?:default\/svc-1|all services) IPv4: different$/m);
        expect(code).toBe(1);
        await expect.poll(() => shadow?.log()).toContain("kube-proxy differs from the plan");
      },
    );
  });
}

const IPTABLES = { mode: "iptables", variant: "nft" } as const;

const DAMAGES: readonly { what: string; mode: KubeProxyMode; damage: (runner: Runner) => Promise<unknown> }[] = [
  {
    what: "an endpoint's translation",
    mode: IPTABLES,
    damage: (runner) => inflict(runner, { table: "nat", remove: /^-A KUBE-SEP-\S+ .*svc-1".*-j DNAT / }),
  },
  {
    what: "a rule in the way",
    mode: IPTABLES,
    damage: (runner) => inflict(runner, { table: "nat", insert: ["KUBE-SERVICES", "-d", WEB, "-j", "RETURN"] }),
  },
  {
    what: "a service's element",
    mode: { mode: "nftables", variant: "nft" },
    damage: (runner) => runner.run(["nft", `delete element ip kube-proxy service-ips { ${WEB} . tcp . 80 }`]),
  },
];

/** There kube-proxy itself answers, in words of its own. */
function healthCheckPorts({ history }: CaseGroup): ReadonlySet<number> {
  const found = JSON.stringify(history.at(-1)).matchAll(/"healthCheckNodePort":(\d+)/g);
  return new Set(Array.from(found, ([, port]) => Number(port)));
}
