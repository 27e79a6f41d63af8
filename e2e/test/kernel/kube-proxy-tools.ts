import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { type AgentFolder, agentFolder } from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { type Damage, inflict } from "@fairlead/lab/faults";
import { type KubeProxy, type NamespaceApi, startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import { type Lab, openLab } from "@fairlead/lab/plain/lab";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { fairlead, requireTool } from "@fairlead/lab/tools/page-reader";
import { LazySaveParser } from "@fairlead/netfilter";
import { clusterObjects, conformanceTable } from "@fairlead/testkit";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CaseGroup, groupCases } from "../../src/cases/conformance/groups.ts";
import { portsOf } from "../../src/cases/conformance/programmed.ts";
import { compare, packetsFor } from "../../src/cases/tracer/compare.ts";

const START_MS = 300_000;
/** Packets that are on their way at once. */
const AT_ONCE = 100;
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** Whose a service is by annotation is Fairlead's own. */
const AS_KUBE_PROXY = ["--agent-flag", "ownership-annotation=false"];

/** The conformance table's clusters that kube-proxy serves with its plain configuration. */
const [standard] = groupCases(conformanceTable, conformanceTable.length);
const clusters = groupCases(standard?.rows ?? []).map((cluster, at) => {
  return { ...cluster, part: at + 1, variant: at % 2 === 0 ? "nft" : "legacy" } as const;
});

/** Runs where FAIRLEAD_KUBE_PROXY names the real kube-proxy: `pnpm bench` builds it. */
export function toolsBesideKubeProxy(program: string): void {
  describe("the tools beside the real kube-proxy", () => {
    let lab: Lab;
    let folder: AgentFolder;
    let api: NamespaceApi | undefined;
    let kubeProxy: KubeProxy | undefined;

    beforeAll(requireTool);

    beforeEach(async () => {
      lab = await openLab(portsOf(conformanceTable));
      folder = await agentFolder([]);
    });

    afterEach(async () => {
      await kubeProxy?.stop("SIGKILL");
      await api?.stop();
      await lab.dispose();
      await rm(folder.path, { recursive: true });
    });

    async function serve({ history }: CaseGroup, variant: "nft" | "legacy"): Promise<readonly string[]> {
      api = await startApi(lab.namespace("node-a"), [...clusterObjects, ...(history.at(-1) ?? [])]);
      const access = join(folder.path, "kubeconfig");
      await writeFile(access, kubeconfig({ server: api.url, token: USERS.proxy.token }));
      const own = join(folder.path, "kube-proxy");
      kubeProxy = await startKubeProxy(lab, { mode: "iptables", variant, program, kubeconfig: access, folder: own });
      const { log } = kubeProxy;
      await waitUntil("kube-proxy's first sync", START_MS, async () => {
        const saved = await Promise.all(FAMILIES.map(rules(variant)));
        // It writes all rules of a family in one go.
        return saved.every((text) => text.includes("\n-A KUBE-POSTROUTING ")) ? true : undefined;
      }).catch(async (error: unknown) => {
        throw new Error(`kube-proxy does not serve; its log:\n${await log()}`, { cause: error });
      });
      return ["--config", join(own, "config.conf"), "--kubeconfig", access, "--node", "node-a", ...AS_KUBE_PROXY];
    }

    const rules = (variant: string) => async (family: IPFamily) => {
      const tool = PLAIN_TOOL[family];
      return (await lab.runner("node-a").run([`${tool}-${variant}-save`])).stdout;
    };

    test.each(clusters)(
      "part $part of the table ($variant): the tracer knows where packets go, verify finds nothing",
      async ({ part, variant, ...cluster }) => {
        const setup = await serve(cluster, variant);
        expect(await fairlead(lab, "verify", ...setup)).toEqual({ code: 0, out: "OK: nothing differs (IPv4, IPv6)\n" });
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

    const damages: readonly Damage[] = [
      { table: "nat", remove: /^-A KUBE-SEP-\S+ .*-j DNAT / },
      { table: "nat", insert: ["KUBE-SERVICES", "-d", "10.96.0.1/32", "-j", "RETURN"] },
    ];

    test.each(damages)("verify finds what is damaged of its rules: $table $remove $insert", async (damage) => {
      const [cluster] = clusters;
      if (cluster === undefined) throw new Error("the table has no rows");
      const setup = await serve(cluster, "nft");
      await inflict(lab.runner("node-a"), damage);
      const { code, out } = await fairlead(lab, "verify", ...setup);
      expect(out).toMatch(/^ {2}[-+] nat KUBE-(?:SEP|SERVICES)/m);
      expect(code).toBe(1);
    });
  });
}

/** There kube-proxy itself answers, in words of its own. */
function healthCheckPorts({ history }: CaseGroup): ReadonlySet<number> {
  const found = JSON.stringify(history.at(-1)).matchAll(/"healthCheckNodePort":(\d+)/g);
  return new Set(Array.from(found, ([, port]) => Number(port)));
}
