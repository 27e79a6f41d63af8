import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { clusterObjects, conformanceTable, webA1, webA2, webB1, workload } from "@fairlead/testkit";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { requireAgent } from "../../src/agent/agent-file.ts";
import { type AgentProcess, startAgent } from "../../src/agent/agent-process.ts";
import { type AgentFolder, agentFolder } from "../../src/agent/manifests.ts";
import { waitUntil } from "../../src/agent/wait-until.ts";
import { portsOf } from "../../src/conformance/ports.ts";
import { kubeconfig, USERS } from "../../src/control-plane/users.ts";
import { type Lab, openLab } from "../../src/lab/lab.ts";
import { IPTABLES_DAMAGES, iptablesAsNow, NFTABLES_DAMAGES, tableAsNow } from "../../src/shadow/damages.ts";
import { agrees, askShadow, kindsOf } from "../../src/shadow/page.ts";
import { randomStates } from "../../src/shadow/states.ts";
import { type NamespaceApi, startApi } from "../../src/take-over/api.ts";
import { type KubeProxy, type KubeProxyMode, startKubeProxy } from "../../src/take-over/kube-proxy.ts";

/** A busy machine takes its time to start both. */
const START_MS = 120_000;
/** What the shadow has for a damage: its grace, its pace, and a machine that does other things as well. */
const TOLD_MS = 60_000;
const { FAIRLEAD_SHADOW_STATES = "12", FAIRLEAD_SHADOW_SEED = "1" } = process.env;

const MODES: readonly KubeProxyMode[] = [
  { mode: "iptables", variant: "nft" },
  { mode: "iptables", variant: "legacy" },
  { mode: "nftables", variant: "nft" },
];

const damagedObjects = [
  ...workload(1, { endpoints: [webA1, webB1], nodePort: true }).objects,
  ...workload(2, { endpoints: [webA1, webA2], loadBalancer: "VIP", sourceRanges: ["198.51.100.0/24"] }).objects,
  ...workload(3, { endpoints: [], external: true }).objects,
  ...workload(4, { endpoints: [webA1, webB1], affinitySeconds: 600 }).objects,
];

/** Runs where FAIRLEAD_KUBE_PROXY names the real kube-proxy. */
export function shadowBesideKubeProxy(program: string): void {
  describe("a shadow beside the real kube-proxy", () => {
    let lab: Lab;
    let folder: AgentFolder;
    let api: NamespaceApi | undefined;
    let kubeProxy: KubeProxy | undefined;
    let shadow: AgentProcess | undefined;

    beforeAll(requireAgent);

    beforeEach(async () => {
      lab = await openLab(portsOf(conformanceTable));
      folder = await agentFolder([]);
    });

    afterEach(async () => {
      await shadow?.kill();
      await kubeProxy?.stop("SIGKILL");
      await api?.stop();
      await lab.dispose();
      await rm(folder.path, { recursive: true });
    });

    async function serve(mode: KubeProxyMode, objects: Parameters<NamespaceApi["put"]>[0]): Promise<NamespaceApi> {
      const opened = await startApi(lab.namespace("node-a"), [...clusterObjects, ...objects]);
      api = opened;
      const access = join(folder.path, "kubeconfig");
      await writeFile(access, kubeconfig({ server: opened.url, token: USERS.proxy.token }));
      const own = join(folder.path, "kube-proxy");
      kubeProxy = await startKubeProxy(lab, { ...mode, program, kubeconfig: access, folder: own });
      const flags = ["--shadow", `--config=${join(own, "config.conf")}`, "--hostname-override=node-a", "--v=2"];
      shadow = startAgent(lab.namespace("node-a"), { flags: [...flags, "--ownership-annotation=false"] });
      return opened;
    }

    const page = () => askShadow(lab.runner("node-a"));

    const agreed = (since: number) =>
      waitUntil("the shadow to agree", START_MS, async () => {
        const seen = await page();
        return seen !== undefined && agrees(seen, since) ? seen : undefined;
      }).catch(async (error: unknown) => {
        throw new Error(`${JSON.stringify(await page(), undefined, 1)}\n${shadow?.log()}`, { cause: error });
      });

    test.each(MODES)(
      `$mode $variant: nothing is told in ${FAIRLEAD_SHADOW_STATES} random states, and nothing written`,
      { timeout: 3_600_000 },
      async (mode) => {
        const states = randomStates(Number(FAIRLEAD_SHADOW_STATES), Number(FAIRLEAD_SHADOW_SEED));
        const { put } = await serve(mode, states[0] ?? []);
        expect((await agreed(0)).mode).toBe(mode.mode);
        for (const state of states.slice(1)) {
          const since = Date.now();
          await put(state);
          await agreed(since);
        }
        expect(shadow?.log()).not.toContain("kube-proxy does not what Fairlead would do");
        await kubeProxy?.stop("SIGKILL");
        const before = await held();
        await put(workload(99, { endpoints: [webA1] }).objects);
        await waitUntil("what nobody programs to be told", TOLD_MS, async () => {
          const seen = await page();
          return seen !== undefined && seen.families.IPv4.differing > 0 ? true : undefined;
        });
        expect(await held()).toEqual(before);
      },
    );

    test.each([
      { mode: "iptables", variant: "nft", damages: IPTABLES_DAMAGES, mending: iptablesAsNow } as const,
      { mode: "nftables", variant: "nft", damages: NFTABLES_DAMAGES, mending: tableAsNow } as const,
    ])("$mode: each damage is told", { timeout: 3_600_000 }, async ({ damages, mending, ...mode }) => {
      await serve(mode, damagedObjects);
      await agreed(0);
      // It would mend some of them.
      await kubeProxy?.stop("SIGKILL");
      const runner = lab.runner("node-a");
      const mend = await mending(runner);
      for (const { what, kind, inflict } of damages) {
        await inflict(runner);
        const began = Date.now();
        await waitUntil(`${what} to be told`, TOLD_MS, async () => {
          const seen = await page();
          return seen !== undefined && kindsOf(seen).includes(kind) ? true : undefined;
        }).catch(async (error: unknown) => {
          throw new Error(`${what}: ${JSON.stringify(await page(), undefined, 1)}`, { cause: error });
        });
        process.stdout.write(`shadow, ${mode.mode}: ${what}: ${kind} told after ${Date.now() - began} ms\n`);
        const since = Date.now();
        await mend();
        await agreed(since);
      }
    });

    /** All rules with their counters left out and the handles of nf_tables, which no two rules ever have in common. */
    async function held() {
      const runner = lab.runner("node-a");
      const texts = await Promise.all(
        [["nft", "-a", "list", "ruleset"] as const, ["iptables-legacy-save"] as const].map((argv) => runner.run(argv)),
      );
      return texts.map(({ stdout }) => stdout.replace(/counter packets \d+ bytes \d+|\[\d+:\d+\]|^#.*$/gm, ""));
    }
  });
}
