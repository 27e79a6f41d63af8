import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { clientA, type Workload, webA1, webB1, workload } from "@fairlead/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireAgent } from "../../src/agent/agent-file.ts";
import { type AgentProcess, startAgent } from "../../src/agent/agent-process.ts";
import { type AgentFolder, agentFolder } from "../../src/agent/manifests.ts";
import { PATIENCE_MS, waitUntil } from "../../src/agent/wait-until.ts";
import { kubeconfig, users } from "../../src/control-plane/users.ts";
import { whoAnswersAt } from "../../src/faults/ask.ts";
import { objects } from "../../src/faults/objects.ts";
import { rulesOf } from "../../src/faults/rules.ts";
import { rulesInPlace, sceneFlags } from "../../src/faults/scene.ts";
import { commonWays, localhostWay, startTraffic, type Traffic, type Way } from "../../src/faults/traffic.ts";
import { type Lab, openLab } from "../../src/lab/lab.ts";
import { type NamespaceApi, startApi } from "../../src/take-over/api.ts";
import { holdRules } from "../../src/take-over/hold.ts";
import { type KubeProxy, type KubeProxyMode, startKubeProxy } from "../../src/take-over/kube-proxy.ts";

const ports = { tcp: [80, 8080], udp: [53, 8080] };
const dns = workload(16, { endpoints: [webA1, webB1], protocol: "UDP", port: 53 });
/** They come while this or that proxy runs, and so show who is in charge. */
const [first, second, third] = [17, 18, 19].map((number) => workload(number, { endpoints: [webA1] }));

const at = ({ clusterIP, port }: Workload): Way => ({ from: clientA, to: clusterIP.IPv4, port });

/** Runs where FAIRLEAD_KUBE_PROXY names the real kube-proxy: `pnpm bench` builds it. */
export function takeOver(program: string): void {
  describe("from the real kube-proxy to Fairlead and back, under constant requests", () => {
    let lab: Lab;
    let folder: AgentFolder;
    let api: NamespaceApi;
    let kubeProxy: KubeProxy | undefined;
    let agent: AgentProcess | undefined;
    let traffic: Traffic | undefined;

    beforeEach(async () => {
      await requireAgent();
      lab = await openLab({ podPorts: ports, landingPorts: ports });
      folder = await agentFolder([]);
      api = await startApi(lab.namespace("node-a"), [...objects, ...dns.objects]);
      const server = { server: api.url, token: users.proxy.token };
      await writeFile(join(folder.path, "kubeconfig"), kubeconfig(server));
    });

    afterEach(async () => {
      await traffic?.stop();
      await kubeProxy?.stop("SIGKILL");
      await agent?.kill();
      await api.stop();
      await lab.dispose();
      await rm(folder.path, { recursive: true });
    });

    const served = async (ways: readonly Way[]) => {
      for (const way of ways) {
        await waitUntil(`an answer at ${way.to}`, PATIENCE_MS, async () =>
          (await whoAnswersAt(lab, way)).startsWith("web-") ? true : undefined,
        );
      }
    };

    const begin = (ways: readonly Way[]): Traffic => {
      traffic = startTraffic(lab, ways);
      return traffic;
    };

    async function toKubeProxy(mode: KubeProxyMode, proof: Workload, ways: readonly Way[]): Promise<void> {
      const settings = { ...mode, program, kubeconfig: join(folder.path, "kubeconfig") };
      kubeProxy = await startKubeProxy(lab, { ...settings, folder: join(folder.path, "kube-proxy") });
      await api.put(proof.objects);
      const { log } = kubeProxy;
      await served([at(proof), ...ways]).catch(async (error: unknown) => {
        throw new Error(`kube-proxy does not serve; its log:\n${await log()}`, { cause: error });
      });
    }

    async function toFairlead(proof: Workload): Promise<AgentProcess> {
      const paths = [`--kubeconfig=${join(folder.path, "kubeconfig")}`, `--state-dir=${folder.state}`];
      agent = startAgent(lab.namespace("node-a"), { flags: [...sceneFlags, ...paths] });
      await rulesInPlace(agent);
      await api.put(proof.objects);
      await served([at(proof)]);
      return agent;
    }

    async function backTo(mode: KubeProxyMode, proof: Workload, running: AgentProcess, ways: readonly Way[]) {
      if (mode.mode === "iptables") {
        await running.stop();
        return toKubeProxy(mode, proof, ways);
      }
      const letGo = await holdRules(lab);
      await running.stop();
      await toKubeProxy(mode, proof, ways);
      await letGo();
      expect((await rulesOf(lab)).filter((line) => line.includes("KUBE-SVC"))).not.toEqual([]);
      // With its next start it removes what was held.
      await kubeProxy?.stop();
      await toKubeProxy(mode, proof, ways);
      await waitUntil("kube-proxy's clean-up", PATIENCE_MS, async () =>
        (await rulesOf(lab)).some((line) => line.includes("KUBE-SVC")) ? undefined : true,
      );
    }

    const ways: readonly Way[] = [...commonWays, { from: clientA, to: dns.clusterIP.IPv4, port: 53, protocol: "UDP" }];

    test.for<KubeProxyMode & { readonly ways: readonly Way[] }>([
      { mode: "iptables", variant: "nft", ways: [...ways, localhostWay] },
      { mode: "iptables", variant: "legacy", ways: [...ways, localhostWay] },
      { mode: "nftables", variant: "nft", ways },
    ])("$mode mode, iptables' $variant variant", { timeout: 180_000 }, async ({ ways, ...mode }) => {
      if (first === undefined || second === undefined || third === undefined) throw new Error("three workloads");
      await toKubeProxy(mode, first, ways);
      const there = begin(ways);
      await kubeProxy?.stop();
      const running = await toFairlead(second);
      const seen = await there.stop();
      expect(new Set(seen.failures)).toEqual(new Set());
      expect(seen.requests).toBeGreaterThan(100);
      const other = mode.variant === "nft" ? "legacy" : "nft";
      expect((await rulesOf(lab, other)).filter((line) => line.includes("KUBE-SERVICES"))).toEqual([]);
      const { stdout: tables } = await lab.runner("node-a").run(["nft", "list", "tables"]);
      expect(tables).not.toContain("kube-proxy");
      const back = begin(ways);
      await backTo(mode, third, running, ways);
      const returned = await back.stop();
      expect(new Set(returned.failures)).toEqual(new Set());
      expect(returned.requests).toBeGreaterThan(100);
      process.stdout.write(
        `${mode.mode} ${mode.variant}: ${seen.requests} requests there, ${returned.requests} back\n`,
      );
    });
  });
}
