import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PATIENCE_MS } from "@fairlead/base/testing";
import {
  type AgentFolder,
  type AgentProcess,
  agentFile,
  agentFolder,
  requireAgent,
  startAgent,
} from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { modeNamed, servesLocalhost } from "@fairlead/lab/modes";
import {
  type KubeProxy,
  type KubeProxyMode,
  type NamespaceApi,
  startApi,
  startKubeProxy,
} from "@fairlead/lab/plain/kube-proxy";
import {
  commonFlows,
  localhostFlow,
  startTraffic,
  type Traffic,
  type TrafficFlow,
  whoAnswersAt,
} from "@fairlead/lab/plain/requests";
import { objects, rulesInPlace, rulesOf, SCENE_FLAGS } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clientA, type RawObject, service, type Workload, webA1, webB1, workload } from "@fairlead/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { labForEach } from "./lab-for.ts";

const PORTS = { tcp: [80, 8080], udp: [53, 8080] };
const dns = workload(16, { endpoints: [webA1, webB1], protocol: "UDP", port: 53 });
/** They come while this or that proxy runs, and so show which one is in charge. */
const proof = (number: number) => workload(number, { endpoints: [webA1] });
const proofs = { before: proof(17), there: proof(18), between: proof(19), back: proof(20) };

const at = ({ clusterIP, port }: Workload): TrafficFlow => ({ from: clientA, to: clusterIP.IPv4, port });

type Mode = KubeProxyMode["mode"];

const readByNft = (mode: Mode): boolean => modeNamed(mode).rules.listings.some(([program]) => program === "nft");

/** A Gateway whose route leads to one backend 999 times of 1,000, and to another one once. */
const [most, few] = [workload(21, { endpoints: [webA1] }), workload(22, { endpoints: [webB1] })];
const AT_GATEWAY: TrafficFlow = { from: clientA, to: "192.0.2.80", port: 80 };
const ofGateways = (kind: string, name: string, spec: object, generation = 1): RawObject => ({
  apiVersion: "gateway.networking.k8s.io/v1",
  kind,
  metadata: { ...(kind !== "GatewayClass" && { namespace: "default" }), name, uid: `uid-${name}`, generation },
  spec,
});
/** Weights by backend. */
const route = (weights: Readonly<Record<string, number>>, generation = 1): RawObject => {
  const backendRefs = Object.entries(weights).map(([name, weight]) => ({ name, port: 80, weight }));
  return ofGateways("TCPRoute", "r", { parentRefs: [{ name: "gw" }], rules: [{ backendRefs }] }, generation);
};
const gatewayObjects: readonly RawObject[] = [
  ...most.objects,
  ...few.objects,
  ofGateways("GatewayClass", "fairlead", { controllerName: "fairlead.dev/gateway" }),
  ofGateways("Gateway", "gw", {
    gatewayClassName: "fairlead",
    listeners: [{ name: "tcp", port: AT_GATEWAY.port, protocol: "TCP" }],
  }),
  route({ "svc-21": 999, "svc-22": 1 }),
  gatewayService(),
];

/** Its Service as the API server and a load balancer leave it; the controller writes the rest, and the slices. */
function gatewayService(): RawObject {
  const made = service("gw-fairlead", {
    type: "LoadBalancer",
    clusterIPs: ["10.96.0.80"],
    ports: [{ name: "tcp", port: AT_GATEWAY.port }],
    ingress: [{ ip: AT_GATEWAY.to }],
    labels: { "app.kubernetes.io/managed-by": "gateways.fairlead.dev" },
  });
  const owner = { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", name: "gw", uid: "uid-gw" };
  const metadata = {
    ...Object(made["metadata"]),
    uid: "uid-gw-fairlead",
    ownerReferences: [{ ...owner, controller: true }],
  };
  return { ...made, metadata };
}

/** Runs where FAIRLEAD_KUBE_PROXY names the real kube-proxy: `pnpm bench` builds it. */
export function takeOver(program: string): void {
  describe("from the real kube-proxy to Fairlead and back, under constant requests", () => {
    const lab = labForEach({ podPorts: PORTS, landingPorts: PORTS }, requireAgent);
    let folder: AgentFolder;
    let api: NamespaceApi;
    let kubeProxy: KubeProxy | undefined;
    let agent: AgentProcess | undefined;
    let traffic: Traffic | undefined;

    beforeEach(async () => {
      folder = await agentFolder([]);
      api = await startApi(lab.namespace("node-a"), [...objects, ...dns.objects]);
      const server = { server: api.url, token: USERS.proxy.token };
      await writeFile(join(folder.path, "kubeconfig"), kubeconfig(server));
    });

    afterEach(async () => {
      await traffic?.stop();
      await kubeProxy?.stop("SIGKILL");
      await agent?.kill();
      await api.stop();
      await rm(folder.path, { recursive: true });
    });

    const served = async (ways: readonly TrafficFlow[]) => {
      for (const way of ways) {
        await waitUntil(`an answer at ${way.to}`, PATIENCE_MS, async () =>
          (await whoAnswersAt(lab, way)).startsWith("web-") ? true : undefined,
        );
      }
    };

    const begin = (ways: readonly TrafficFlow[]): Traffic => {
      traffic = startTraffic(lab, ways);
      return traffic;
    };

    async function toKubeProxy(mode: KubeProxyMode, proof: Workload, ways: readonly TrafficFlow[]): Promise<void> {
      const settings = { ...mode, program, kubeconfig: join(folder.path, "kubeconfig") };
      kubeProxy = await startKubeProxy(lab, { ...settings, folder: join(folder.path, "kube-proxy") });
      await api.put(proof.objects);
      const { log } = kubeProxy;
      await served([at(proof), ...ways]).catch(async (error: unknown) => {
        throw new Error(`kube-proxy does not serve; its log:\n${await log()}`, { cause: error });
      });
    }

    async function toFairlead(mode: Mode, proof: Workload): Promise<AgentProcess> {
      const own = [
        `--proxy-mode=${mode}`,
        `--kubeconfig=${join(folder.path, "kubeconfig")}`,
        `--state-dir=${folder.state}`,
      ];
      agent = startAgent(lab.namespace("node-a"), { flags: [...SCENE_FLAGS, ...own] });
      await rulesInPlace(agent);
      await api.put(proof.objects);
      await served([at(proof)]);
      return agent;
    }

    /** Nothing is left of the mode that is not kube-proxy's, nor of the variant of iptables that is not used. */
    async function expectOnly({ mode, variant }: KubeProxyMode): Promise<void> {
      const services = async (of: KubeProxyMode["variant"]) =>
        (await rulesOf(lab, of)).filter((line) => line.includes("KUBE-SERVICES"));
      await waitUntil("what the other mode left is gone", PATIENCE_MS, async () => {
        const { stdout: tables } = await lab.runner("node-a").run(["nft", "list", "tables"]);
        const inNft = readByNft(mode);
        if (tables.includes("kube-proxy") !== inNft) return undefined;
        const unused = (["nft", "legacy"] as const).filter((one) => inNft || one !== variant);
        return (await Promise.all(unused.map(services))).flat().length === 0 ? true : undefined;
      });
    }

    /** In kube-proxy's mode Fairlead serves first: with its start kube-proxy removes what other modes have. */
    async function backTo(mode: KubeProxyMode, fairlead: Mode, ways: readonly TrafficFlow[]): Promise<void> {
      if (mode.mode !== fairlead) {
        await agent?.stop();
        await toFairlead(mode.mode, proofs.between);
        await expectOnly(mode);
      }
      await agent?.stop();
      await toKubeProxy(mode, proofs.back, ways);
    }

    const ways: readonly TrafficFlow[] = [
      ...commonFlows,
      { from: clientA, to: dns.clusterIP.IPv4, port: 53, protocol: "UDP" },
    ];

    test.for<KubeProxyMode & { readonly fairlead: Mode }>([
      { mode: "iptables", variant: "nft", fairlead: "iptables" },
      { mode: "iptables", variant: "legacy", fairlead: "iptables" },
      { mode: "nftables", variant: "nft", fairlead: "iptables" },
      { mode: "nftables", variant: "nft", fairlead: "nftables" },
      { mode: "iptables", variant: "nft", fairlead: "nftables" },
    ])("from $mode mode, iptables' $variant variant, to $fairlead mode", async (row) => {
      const { fairlead, ...mode } = row;
      const both = [mode.mode, fairlead].every((name) => servesLocalhost(modeNamed(name)));
      const served = both ? [...ways, localhostFlow] : ways;
      await toKubeProxy(mode, proofs.before, served);
      const there = begin(served);
      await kubeProxy?.stop();
      await toFairlead(fairlead, proofs.there);
      await expectOnly({ mode: fairlead, variant: mode.variant });
      const seen = await there.stop(100);
      expect(new Set(seen.failures)).toEqual(new Set());
      const back = begin(served);
      await backTo(mode, fairlead, served);
      const returned = await back.stop(100);
      expect(new Set(returned.failures)).toEqual(new Set());
      process.stdout.write(
        `${mode.mode} ${mode.variant} to ${fairlead}: ${seen.requests} requests there, ${returned.requests} back\n`,
      );
    });

    const startController = (...flags: readonly string[]) => {
      const bundle = join(dirname(agentFile()), "controller.js");
      const all = [`--master=${api.url}`, "--jobs=gateways", ...flags];
      const controller = startAgent(lab.namespace("node-a"), { bundle, flags: all });
      return { ...controller, [Symbol.asyncDispose]: async () => void (await controller.kill()) };
    };

    test.for<Mode>(["iptables", "nftables"])(
      "a Gateway in %s mode, under constant requests: 1,000 changes of its route, 20 of a backend's endpoints, a leader killed, no controller: no request fails",
      async (mode) => {
        const answers = (name: string) =>
          waitUntil(`an answer of ${name}`, PATIENCE_MS, async () =>
            (await whoAnswersAt(lab, AT_GATEWAY)) === name ? true : undefined,
          );
        await api.put([...gatewayObjects, ...proofs.back.objects, route({ "svc-21": 1 }, 2)]);
        await using first = startController();
        await waitUntil("a leader", PATIENCE_MS, async () => (first.log().includes("Leading;") ? true : undefined));
        await using second = startController();
        await toFairlead(mode, proofs.before);
        await served([AT_GATEWAY]);
        const there = begin([AT_GATEWAY]);
        for (let generation = 3; generation < 1_003; generation += 1)
          await api.put([route(generation % 2 === 0 ? { "svc-21": 1 } : { "svc-21": 9, "svc-20": 1 }, generation)]);
        await api.put([route({ "svc-22": 1 }, 1_003)]);
        await answers(webB1.name);
        for (let rollout = 0; rollout < 20; rollout += 1) {
          const next = rollout % 2 === 0 ? webA1 : webB1;
          await api.put(workload(22, { endpoints: [next] }).objects);
          await answers(next.name);
        }
        await first.kill();
        await waitUntil("another leader", PATIENCE_MS, async () =>
          second.log().includes("Leading;") ? true : undefined,
        );
        await api.put([route({ "svc-21": 1 }, 1_004)]);
        await answers(webA1.name);
        await second.kill();
        await api.put([route({ "svc-22": 1 }, 1_005)]);
        const seen = await there.stop(1_000);
        process.stdout.write(`a Gateway in ${mode} mode: ${seen.requests} requests\n`);
        expect(new Set(seen.failures)).toEqual(new Set());
      },
    );

    test("a Gateway: kube-proxy serves its route and weighs endpoints alike; Fairlead serves it by its weights", async () => {
      await api.put(gatewayObjects);
      await using _ = startController("--leader-elect=false");
      /** Answers of the backend that weighs little. */
      const fromFew = async () => {
        const answers: string[] = [];
        for (let request = 0; request < 40; request += 1) answers.push(await whoAnswersAt(lab, AT_GATEWAY));
        expect(new Set([...answers, webA1.name, webB1.name])).toEqual(new Set([webA1.name, webB1.name]));
        return answers.filter((name) => name === webB1.name).length;
      };
      await toKubeProxy({ mode: "iptables", variant: "nft" }, proofs.before, [AT_GATEWAY]);
      // Chance goes beyond these numbers less than once in a million runs.
      expect(await fromFew()).toBeGreaterThan(5);
      await kubeProxy?.stop();
      await toFairlead("iptables", proofs.there);
      expect(await fromFew()).toBeLessThan(4);
    });

    test("kube-proxy --cleanup removes what nftables mode has written", async () => {
      const running = await toFairlead("nftables", proofs.there);
      await running.stop();
      const tables = async () => (await lab.runner("node-a").run(["nft", "list", "tables"])).stdout.split("\n");
      // In the order in which they were made.
      expect(await tables()).toEqual(expect.arrayContaining(["table ip kube-proxy", "table ip6 kube-proxy"]));
      await lab.runner("node-a").run([program, "--cleanup"]);
      expect((await tables()).join("\n")).not.toContain("kube-proxy");
    });
  });
}
