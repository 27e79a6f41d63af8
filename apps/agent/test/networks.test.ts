import { mkdtemp, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settled } from "@fairlead/base/testing";
import { ClusterState } from "@fairlead/core";
import type { NodeEvent } from "@fairlead/intake";
import { type RawObject, service } from "@fairlead/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { createMetrics } from "../src/metrics/metrics.ts";
import { foreignAlarm, KnownKeeper, setUpNetworks } from "../src/networks.ts";
import { configOf, filterOf, recordedLog } from "./support/fake-node.ts";
import { nodeA, type RunningAgent, type RunningAgentOptions, runningAgent, slice } from "./support/running-agent.ts";

describe("networks", () => {
  const services: readonly RawObject[] = [
    ["web", "10.96.67.75", "10.144.154.71"],
    ["ovn", "10.96.95.98", "10.16.0.5"],
    ["api", "10.96.67.76", "10.144.154.72"],
  ].flatMap(([name = "", clusterIP = "", address = ""]) => [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }] }),
    slice(name, address),
  ]);

  function subnet(name: string, cidrBlock: unknown, vpc?: string) {
    return { apiVersion: "kubeovn.io/v1", kind: "Subnet", metadata: { name }, spec: { cidrBlock, vpc } };
  }

  function pool(name: string, cidr: string) {
    return { apiVersion: "projectcalico.org/v3", kind: "IPPool", metadata: { name }, spec: { cidr } };
  }

  const EVENTS: NodeEvent[] = [];

  afterEach(() => {
    EVENTS.length = 0;
  });

  const FLAGS = ["--cluster-cidr=10.144.0.0/16", "--exclude-cidrs-from=kube-ovn-subnets"];

  async function started(options: RunningAgentOptions = {}): Promise<RunningAgent> {
    const report = async (event: NodeEvent) => void EVENTS.push(event);
    const one = await runningAgent({ flags: FLAGS, events: { report }, ...options });
    await one.list(nodeA, ...services);
    // The default VPC is ovn-cluster.
    await one.source.state("Vpc", "absent");
    await one.source.state("ConfigMap", "listed");
    await one.clock.advance(0);
    return one;
  }

  const NO_CONSENT = { read: { accepted: [], forgotten: [], unprotected: [] } };

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

  describe("the start", () => {
    test("waits for the networks' first lists, and programs nothing of what is foreign", async () => {
      const one = await started();
      await one.clock.advance(9_000);
      expect(one.restores()).toBe(0);
      await one.source.put(subnet("ovn-default", "10.16.0.0/16"));
      await one.source.state("Subnet", "listed");
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.95.98")]).toEqual([true, false]);
      expect(one.log.lines.some((line) => JSON.stringify(line).includes("Subnet/ovn-default"))).toBe(true);
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
    const OVN_DEFAULT = subnet("ovn-default", "10.16.0.0/16");
    const learn = async (one: RunningAgent) => {
      await one.source.put(OVN_DEFAULT);
      await one.source.state("Subnet", "listed");
    };
    const learning = async () => {
      const one = await started();
      await learn(one);
      await decided(one);
      return one;
    };
    const learnedNothing = async () => {
      const one = await started();
      await one.source.state("Subnet", "absent");
      await decided(one);
      return one;
    };

    test("a new subnet takes its service along, and others are not written again", async () => {
      const one = await learnedNothing();
      const before = one.nat();
      const writes = one.restores();
      await learn(one);
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.95.98")]).toEqual([true, false]);
      expect(one.nat().length).toBeLessThan(before.length);
      expect(one.nat().every((rule) => before.includes(rule))).toBe(true);
      expect(one.restores()).toBe(writes + 1);
    });

    describe("a service changes hands", () => {
      /** The last sync was long ago. */
      const idle = async () => {
        const one = await learnedNothing();
        await one.clock.advance(10_000);
        await learn(one);
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

    test("what may not be read any more stays, with an Event; a wrong object is reported once", async () => {
      const one = await learning();
      await one.source.state("Subnet", "forbidden");
      await one.source.put(subnet("bad", { a: 1 }), subnet("worse", "0.0.0.0/0"), subnet("bad", { a: 1 }));
      await decided(one);
      expect(serves(one, "10.96.95.98")).toBe(false);
      expect(EVENTS.map(({ reason }) => reason)).toEqual(["NetworkSourceForbidden", "NetworkCIDRRefused"]);
      expect(one.log.lines.filter((line) => JSON.stringify(line).includes("spec.cidrBlock"))).toHaveLength(1);
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
      await one.source.put(slice("ovn", "10.16.0.5", "10.144.154.73"));
      await settle(one, 2_000);
      expect(serves(one, "10.96.95.98")).toBe(true);
      await one.source.put(slice("ovn", "10.16.0.5"));
      await settle(one, 9_999);
      expect(serves(one, "10.96.95.98")).toBe(true);
      await settle(one, 2_000);
      expect(serves(one, "10.96.95.98")).toBe(false);
    });
  });

  test("our own CIDRs are learned, and define local traffic", async () => {
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
    const ruled = [{ annotation: VPC, notIn: ["ovn-cluster"], ownership: "foreign" }] as const;
    const UDN = "k8s.ovn.org/primary-user-defined-network";
    const namespace = (labels: Readonly<Record<string, string>>) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "default", labels },
    });
    const inVPC = (vpc: string) =>
      service("api", { clusterIPs: ["10.96.67.76"], ports: [{ port: 80 }], annotations: { [VPC]: vpc } });

    test("an annotation decides before the CIDRs, and changes with its Service", async () => {
      const one = await started({ flags: ["--cluster-cidr=10.144.0.0/16"], serviceRules: ruled });
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(true);
      await one.source.put(inVPC("blue"));
      await decided(one);
      expect([serves(one, "10.96.67.75"), serves(one, "10.96.67.76")]).toEqual([true, false]);
      await one.source.put(inVPC("ovn-cluster"));
      await decided(one);
      expect(serves(one, "10.96.67.76")).toBe(true);
    });

    test("a label of the namespace does, is waited for, and is followed", async () => {
      const serviceRules = [{ namespaceLabel: UDN, ownership: "foreign" }] as const;
      const one = await started({ flags: [], serviceRules });
      await one.clock.advance(9_000);
      expect(one.restores()).toBe(0);
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

  describe("the last known networks", () => {
    const cidr = { cidr: "10.16.0.0/16", objects: ["Subnet/ovn-default"], since: 1 };
    const known = { sources: new Map([["excluded kube-ovn-subnets", [cidr]]]), consent: NO_CONSENT };
    /** What a new agent starts with, of the file of the last one. */
    async function loaded(dir: string) {
      const config = configOf([...FLAGS, `--state-dir=${dir}`]);
      const log = recordedLog();
      return { log, known: (await setUpNetworks(config, filterOf(config), log))?.known };
    }
    const emptyFolder = () => mkdtemp(join(tmpdir(), "fairlead-networks-"));

    test("outlive the agent", async () => {
      const dir = await emptyFolder();
      const keeper = new KnownKeeper(join(dir, "networks.json"), recordedLog());
      keeper.keep(() => ({ ...known, sources: new Map() }));
      keeper.keep(() => known);
      await keeper.flush();
      expect((await loaded(dir)).known).toEqual(known);
      await writeFile(join(dir, "networks.json"), "{");
      const { known: damaged, log } = await loaded(dir);
      expect(damaged?.sources.size).toBe(0);
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
      const dir = await emptyFolder();
      const file = join(dir, "networks.json");
      await writeFile(file, "");
      await spoil(file);
      const { known: unread, log } = await loaded(dir);
      expect(unread?.sources.size).toBe(0);
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

test("more foreign services than expected are reported once, and again after they were fewer", async () => {
  const log = recordedLog();
  const events: NodeEvent[] = [];
  const { networks: metrics, text } = createMetrics(new ClusterState(), { learns: true });
  let foreign = 2;
  const { planned } = foreignAlarm({
    maxForeignPercent: 50,
    families: ["IPv4"],
    services: () => ({ ours: 2, foreign, mixed: 0 }),
    metrics,
    log,
    events: { report: async (event) => void events.push(event) },
  });
  const after = (now: number) => {
    foreign = now;
    planned();
    return log.lines.length;
  };
  const metric = async () => (await text()).text.match(/^fairlead_many_foreign_services\{.*/m)?.[0];
  after(2);
  expect(await metric()).toBe('fairlead_many_foreign_services{ip_family="IPv4"} 0');
  expect([after(2), after(3), after(4), after(1), after(3)]).toEqual([0, 1, 1, 1, 2]);
  expect(await metric()).toBe('fairlead_many_foreign_services{ip_family="IPv4"} 1');
  expect(events).toMatchObject([
    { reason: "ManyForeignServices", message: expect.stringContaining("3 of 5 IPv4") },
    {},
  ]);
});
