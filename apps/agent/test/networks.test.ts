import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { filterSettings, type NodeEvent } from "@fairlead/intake";
import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { metricsApp } from "../src/http/metrics-app.ts";
import { sliMetrics } from "../src/metrics/sync-metrics.ts";
import { KnownKeeper, setUpNetworks } from "../src/networks.ts";
import { ask } from "./support/ask.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf, type RunningAgent, type RunningAgentOptions, runningAgent } from "./support/running-agent.ts";

describe("networks", () => {
  const nodeA = node("node-a", { addresses: ["10.201.0.10"] });
  const services: readonly RawObject[] = [
    ["web", "10.96.67.75", "10.144.154.71"],
    ["ovn", "10.96.95.98", "10.16.0.5"],
    ["api", "10.96.67.76", "10.144.154.72"],
  ].flatMap(([name = "", clusterIP = "", address = ""]) => [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }] }),
    endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints: [{ address }] }),
  ]);

  function subnet(name: string, cidrBlock: unknown, vpc?: string) {
    return { apiVersion: "kubeovn.io/v1", kind: "Subnet", metadata: { name }, spec: { cidrBlock, vpc } };
  }

  function defaultVpc(name: string) {
    return { apiVersion: "kubeovn.io/v1", kind: "Vpc", metadata: { name }, status: { default: true } };
  }

  function pool(name: string, cidr: string) {
    return { apiVersion: "projectcalico.org/v3", kind: "IPPool", metadata: { name }, spec: { cidr } };
  }

  let running: RunningAgent | undefined;
  const EVENTS: NodeEvent[] = [];

  afterEach(async () => {
    await running?.stop();
    running = undefined;
    EVENTS.length = 0;
  });

  const FLAGS = ["--cluster-cidr=10.144.0.0/16", "--exclude-cidrs-from=kube-ovn-subnets"];

  /** An agent to which all is given but what its networks are. */
  async function started(options: RunningAgentOptions = {}): Promise<RunningAgent> {
    const report = async (event: NodeEvent) => void EVENTS.push(event);
    const one = runningAgent({ flags: FLAGS, events: { report }, ...options });
    running = one;
    await settled();
    await one.source.put(nodeA, ...services);
    await one.source.synced("services", "endpointSlices", "node");
    // The default VPC is ovn-cluster.
    await one.source.state("Vpc", "absent");
    await one.source.state("ConfigMap", "listed");
    await one.clock.advance(0);
    return one;
  }

  const NO_CONSENT = { read: { accepted: [], forgotten: [], unprotected: [] }, legacy: [] };

  /** The ConfigMap with what operators accepted. */
  const accepted = (...cidrs: readonly string[]) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "kube-system", name: "fairlead-networks" },
    data: { accepted: cidrs.map((cidr) => `- {cidr: ${cidr}, by: sre, why: moved}`).join("\n") },
  });

  /** Lets the first decision be made, or the next one. */
  async function decided({ clock }: RunningAgent): Promise<void> {
    await clock.advance(1_000);
    for (let turn = 0; turn < 10; turn++) await settled();
    await clock.advance(1_000);
  }

  /** So many milliseconds on, and what they made due has been done. */
  async function settle({ clock }: RunningAgent, milliseconds: number): Promise<void> {
    await clock.advance(milliseconds);
    for (let turn = 0; turn < 10; turn++) await settled();
  }

  const serves = (one: RunningAgent, address: string) => one.nat().some((rule) => rule.includes(`${address}/32`));
  const written = (one: RunningAgent) => one.faults.IPv4.calls.filter(({ argv }) => argv[0]?.endsWith("-restore"));

  describe("the start", () => {
    test("waits for the networks' first lists, and programs nothing of what is foreign", async () => {
      const one = await started();
      await one.clock.advance(9_000);
      expect(written(one)).toEqual([]);
      await one.source.put(subnet("ovn-default", "10.16.0.0/16"));
      await one.source.state("Subnet", "listed");
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.95.98")]).toEqual([true, false]);
      expect(one.log.lines.some((line) => JSON.stringify(line).includes("Subnet/ovn-default"))).toBe(true);
    });

    test("does not wait for a network that is not installed", async () => {
      const one = await started();
      await one.source.state("Subnet", "absent");
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(true);
    });

    test("goes on as kube-proxy would after 10 s", async () => {
      const one = await started();
      await one.clock.advance(10_000);
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(true);
    });

    test("with what the agent before knew it does not wait, and nothing changes hands", async () => {
      const cidr = { cidr: "10.16.0.0/16", objects: ["Subnet/ovn-default"], since: 0 };
      const known = { sources: new Map([["excluded kube-ovn-subnets", [cidr]]]), consent: NO_CONSENT };
      const one = await started({ known });
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.95.98")]).toEqual([true, false]);
    });
  });

  describe("while it runs", () => {
    const learning = async () => {
      const one = await started();
      await one.source.put(subnet("ovn-default", "10.16.0.0/16"));
      await one.source.state("Subnet", "listed");
      await decided(one);
      return one;
    };

    test("a new subnet takes its service along, and others are not written again", async () => {
      const one = await started();
      await one.source.state("Subnet", "absent");
      await decided(one);
      const before = one.nat();
      const writes = written(one).length;
      await one.source.put(subnet("ovn-default", "10.16.0.0/16"));
      await one.source.state("Subnet", "listed");
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.95.98")]).toEqual([true, false]);
      expect(one.nat().length).toBeLessThan(before.length);
      expect(one.nat().every((rule) => before.includes(rule))).toBe(true);
      expect(written(one).length).toBe(writes + 1);
    });

    describe("a service changes hands", () => {
      /** Nothing is learned yet, and the last sync was long ago. */
      const idle = async () => {
        const one = await started();
        await one.source.state("Subnet", "absent");
        await decided(one);
        await one.clock.advance(10_000);
        await one.source.put(subnet("ovn-default", "10.16.0.0/16"));
        await one.source.state("Subnet", "listed");
        return one;
      };
      const changesAfter = async (one: RunningAgent, milliseconds: number) => {
        await settle(one, milliseconds - 1);
        expect(serves(one, "10.96.95.98")).toBe(true);
        await settle(one, 1);
        expect(serves(one, "10.96.95.98")).toBe(false);
      };

      test("with the end of the debounce", async () => {
        await changesAfter(await idle(), 1_000);
      });

      test("as soon as minSyncPeriod allows, after a sync of something else meanwhile", async () => {
        const one = await idle();
        await settle(one, 600);
        const ports = [
          { name: "a", port: 80 },
          { name: "b", port: 81 },
        ];
        await one.source.put(service("web", { clusterIPs: ["10.96.67.75"], ports }));
        await changesAfter(one, 1_000);
      });
    });

    test("a CRD that is deleted leaves every service where it is", async () => {
      const one = await learning();
      const before = one.nat();
      await one.source.remove(subnet("ovn-default", "10.16.0.0/16"));
      await one.source.state("Subnet", "absent");
      await one.clock.advance(3_600_000);
      expect(one.nat()).toEqual(before);
    });

    test("what may not be read any more stays, with an Event; a wrong object is told once", async () => {
      const one = await learning();
      await one.source.state("Subnet", "forbidden");
      await one.source.put(subnet("bad", { a: 1 }), subnet("worse", "0.0.0.0/0"), subnet("bad", { a: 1 }));
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(false);
      expect(EVENTS.map(({ reason }) => reason)).toEqual(["NetworkSourceForbidden", "NetworkCIDRRefused"]);
      expect(one.log.lines.filter((line) => JSON.stringify(line).includes("spec.cidrBlock"))).toHaveLength(1);
    });

    test("Vpcs that may not be read take nothing away; the log and the Event name them", async () => {
      const one = await learning();
      await one.source.state("Vpc", "forbidden");
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(false);
      expect(EVENTS).toEqual([expect.objectContaining({ reason: "NetworkSourceForbidden" })]);
      expect(EVENTS[0]?.message).toContain("vpcs.kubeovn.io");
      expect(one.log.lines.filter((line) => JSON.stringify(line).includes("vpcs.kubeovn.io"))).toHaveLength(1);
    });

    test("the default VPC has another name: its Vpc says so", async () => {
      const one = await learning();
      await one.source.put(accepted("10.144.154.0/24"), subnet("main-default", "10.144.154.72/32", "main"));
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(true);
      await one.source.put(defaultVpc("main"));
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(false);
    });

    test("a subnet inside our own network is held until its CIDR is accepted, on every node", async () => {
      const one = await learning();
      await one.source.put(subnet("thief", "10.144.154.0/24"));
      await decided(one);
      expect(serves(one, "10.96.67.75")).toBe(true);
      expect(EVENTS.map(({ reason }) => reason)).toEqual(["NetworkCIDRHeld"]);
      expect(EVENTS[0]?.message).toContain("fairlead ownership --accept 10.144.154.0/24");
      await one.source.put(accepted("10.144.154.0/24"));
      await decided(one);
      expect(serves(one, "10.96.67.75")).toBe(false);
      await one.source.put(accepted());
      await decided(one);
      expect(serves(one, "10.96.67.75")).toBe(true);
    });

    test("a service whose last endpoint here went is given away after 10 s, one that its CIDR takes at once", async () => {
      const one = await learning();
      const ovn = (...addresses: readonly string[]) =>
        endpointSlice("ovn-1", {
          service: "ovn",
          family: "IPv4",
          ports: [{ port: 80 }],
          endpoints: addresses.map((address) => ({ address })),
        });
      await one.source.put(ovn("10.16.0.5", "10.144.154.73"));
      await settle(one, 2_000);
      expect(serves(one, "10.96.95.98")).toBe(true);
      await one.source.put(ovn("10.16.0.5"));
      await settle(one, 9_999);
      expect(serves(one, "10.96.95.98")).toBe(true);
      await settle(one, 2_000);
      expect(serves(one, "10.96.95.98")).toBe(false);
    });

    test("what is wrong with the consent object is reported once", async () => {
      const one = await learning();
      await one.source.put(accepted("10.144.154.1/24"));
      await one.source.put(accepted("10.144.154.1/24"));
      await decided(one);
      const lines = one.log.lines.filter((line) => JSON.stringify(line).includes("has host bits set"));
      expect(lines).toMatchObject([{ fields: { object: "ConfigMap/kube-system/fairlead-networks" } }]);
    });

    test("endpoints at their own node's address are ours: an underlay has both", async () => {
      const one = await learning();
      const onNode = (nodeName: string) =>
        endpointSlice("ovn-1", {
          service: "ovn",
          family: "IPv4",
          ports: [{ port: 80 }],
          endpoints: [{ address: "10.16.0.5", nodeName }],
        });
      await one.source.put(onNode("node-a"));
      await one.source.putOther(node("node-b", { addresses: ["10.16.0.5"] }));
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(false);
      await one.source.put(onNode("node-b"));
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(true);
    });
  });

  test("our own CIDRs are learned, and local traffic is told by them", async () => {
    const one = await started({ flags: ["--cluster-cidr-from=calico-ippools"] });
    await one.source.put(pool("default", "10.144.0.0/16"));
    await one.source.state("IPPool", "listed");
    await decided(one);
    const masquerades = () => one.nat().filter((rule) => rule.includes("! -s ") || rule.includes("! --source "));
    expect(masquerades().join()).toContain("10.144.0.0/16");
    await one.source.put(pool("more", "10.145.0.0/16"));
    await decided(one);
    expect(one.nat().join()).toContain("10.145.0.0/16");
  });

  describe("rules for services", () => {
    const VPC = "ovn.kubernetes.io/vpc";
    const UDN = "k8s.ovn.org/primary-user-defined-network";
    const namespace = (labels: Readonly<Record<string, string>>) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "default", labels },
    });
    const inVPC = (vpc: string) =>
      service("api", { clusterIPs: ["10.96.67.76"], ports: [{ port: 80 }], annotations: { [VPC]: vpc } });

    test("an annotation decides before the CIDRs, and changes with its Service", async () => {
      const serviceRules = [{ annotation: VPC, notIn: ["ovn-cluster"], ownership: "foreign" }] as const;
      const one = await started({ flags: ["--cluster-cidr=10.144.0.0/16"], serviceRules });
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(true);
      await one.source.put(inVPC("blue"));
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.67.76")]).toEqual([true, false]);
      await one.source.put(inVPC("ovn-cluster"));
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(true);
    });

    test("nothing of a Service in another VPC is served, not even to nodes: its endpoints' addresses lead elsewhere", async () => {
      const serviceRules = [{ annotation: VPC, notIn: ["ovn-cluster"], ownership: "foreign" }] as const;
      const flags = ["--cluster-cidr=10.144.0.0/16", "--excluded-frontends=excluded-clients"];
      const one = await started({ flags, serviceRules });
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(true);
      await one.source.put(inVPC("blue"));
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.67.76")]).toEqual([true, false]);
    });

    test("a label of the namespace does, is waited for, and is followed", async () => {
      const serviceRules = [{ namespaceLabel: UDN, ownership: "foreign" }] as const;
      const one = await started({ flags: [], serviceRules });
      await one.clock.advance(9_000);
      expect(written(one)).toEqual([]);
      await one.source.put(namespace({ [UDN]: "" }));
      await one.source.state("Namespace", "listed");
      await decided(one);
      expect(serves(one, "10.96.67.75")).toBe(false);
      await one.source.put(namespace({}));
      await decided(one);
      expect(serves(one, "10.96.67.75")).toBe(true);
      await one.source.state("Namespace", "forbidden");
      await decided(one);
      expect(serves(one, "10.96.67.75")).toBe(true);
      // Its three services were foreign at first.
      expect(EVENTS.map(({ reason }) => reason)).toEqual(["ManyForeignServices", "NetworkSourceForbidden"]);
    });
  });

  test("no order is taken by HTTP: consent is an object of the cluster", async () => {
    const sources = {
      metrics: async () => ({ text: "", contentType: "text/plain" }),
      proxyMode: () => "iptables",
      configuration: () => ({}),
      ownership: () => ({}),
      slis: sliMetrics(0),
    };
    const app = metricsApp(sources, new VirtualClock());
    for (const local of [true, false]) {
      const answer = await ask(app, "/ownership/accept", { method: "POST", local });
      expect([answer.status, await answer.text()]).toEqual([
        410,
        "an agent takes no consent: fairlead ownership --accept CIDR writes it to the ConfigMap fairlead-networks, for all nodes\n",
      ]);
    }
  });

  describe("the last known networks", () => {
    const cidr = { cidr: "10.16.0.0/16", objects: ["Subnet/ovn-default"], since: 1 };
    const known = { sources: new Map([["excluded kube-ovn-subnets", [cidr]]]), consent: NO_CONSENT };
    let dir = "";

    beforeEach(async () => {
      dir = await mkdtemp(join(tmpdir(), "fairlead-networks-"));
    });
    afterEach(async () => {
      await rm(dir, { recursive: true });
    });

    test("outlive the agent", async () => {
      const keeper = new KnownKeeper(join(dir, "networks.json"), recordedLog());
      keeper.keep(() => ({ ...known, sources: new Map() }));
      keeper.keep(() => known);
      await keeper.flush();
      const config = configOf([...FLAGS, `--state-dir=${dir}`]);
      const filter = filterSettings(config);
      if (!filter.ok) throw new Error(filter.errors.join());
      const log = recordedLog();
      expect((await setUpNetworks(config, filter.options, log))?.known).toEqual(known);
      await writeFile(join(dir, "networks.json"), "{");
      expect((await setUpNetworks(config, filter.options, log))?.known?.sources.size).toBe(0);
      expect(log.lines).toHaveLength(1);
    });

    test.each([
      [
        "larger than a state file may be",
        (file: string) => truncate(file, 400 * 2 ** 20),
        "it is 400 MiB, a state file",
      ],
      ["nested too deep", (file: string) => writeFile(file, "[".repeat(2 ** 20)), "it is nested deeper than"],
    ])("%s are passed over unread, with one line", async (_what, spoil, reason) => {
      const file = join(dir, "networks.json");
      await writeFile(file, "");
      await spoil(file);
      const config = configOf([...FLAGS, `--state-dir=${dir}`]);
      const filter = filterSettings(config);
      if (!filter.ok) throw new Error(filter.errors.join());
      const log = recordedLog();
      expect((await setUpNetworks(config, filter.options, log))?.known?.sources.size).toBe(0);
      expect(log.lines).toEqual([
        expect.objectContaining({ fields: { file, reason: expect.stringContaining(reason) } }),
      ]);
    });

    test("that cannot be written are reported once", async () => {
      const log = recordedLog();
      const keeper = new KnownKeeper("/dev/null/none/networks.json", log);
      keeper.keep(() => known);
      await keeper.flush();
      keeper.keep(() => ({ ...known, sources: new Map() }));
      await keeper.flush();
      expect(log.lines).toHaveLength(1);
    });
  });
});
