import { follow } from "@fairlead/base/testing";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { afterAll, beforeAll, expect, test } from "vitest";
import { onBundleNode } from "./support/bundle-node.ts";
import { answered, knownMtu, sentAgain, startServer, wire } from "./support/two-uplinks.ts";

const REQUESTS = 9;
const ALL = { first: { IPv4: REQUESTS, IPv6: REQUESTS }, second: { IPv4: REQUESTS, IPv6: REQUESTS } };
/** Milliseconds: for requests that are made again until they are answered, or never are; and for those that must be. */
const [BRIEF, LONG] = [{ first: 1_000, second: 1_000 }, 30_000];
const SECOND_LOST = { ...ALL, second: { IPv4: 0, IPv6: 0 } };

onBundleNode("answers on a node with two uplinks", ({ inside, manifest, running, file }) => {
  const others: NetworkNamespace[] = [];
  let pod: Awaited<ReturnType<typeof startServer>>;
  let clients: Readonly<Record<"first" | "second", Runner>>;

  beforeAll(async () => {
    const node = inside();
    const [first, second, served] = await Promise.all([createNamespace(), createNamespace(), createNamespace()]);
    others.push(first, second, served);
    const at = (one: NetworkNamespace) => createRunner({ prefix: one.argvPrefix, env: one.env });
    clients = { first: at(first), second: at(second) };
    await wire(node, [first, second], served, at);
    pod = await startServer(at(served));
    await manifest("web.yaml", MANIFEST);
  });

  afterAll(async () => {
    await pod.stop();
    for (const one of others) await one.dispose();
  });

  const counts = async (patience: Readonly<Record<"first" | "second", number>> = BRIEF) => {
    const [first, second] = await Promise.all(
      (["first", "second"] as const).map((uplink) => answered(clients[uplink], uplink, REQUESTS, patience[uplink])),
    );
    return { first, second };
  };
  /** Requests to the first uplink, one after another until it is stopped: what each came to. */
  const underLoad = (signal: AbortSignal) =>
    follow(signal, async function* (stop) {
      while (!stop.aborted) yield JSON.stringify(await answered(clients.first, "first", REQUESTS, LONG));
    });
  const rules = async (family: "-4" | "-6") =>
    (await inside().run(["ip", family, "rule", "show"])).stdout.split("\n").filter((line) => line.includes("fwmark"));

  /** Runs the agent until its rules are there, does something, and ends it. */
  async function withAgent(config: string, signal: "SIGTERM" | "SIGKILL", work: () => Promise<void>): Promise<void> {
    await file("config.yaml", config);
    const log: string[] = [];
    for await (const line of running(["--config=config.yaml", "--manifests=manifests"])) {
      log.push(line);
      const ready = log.filter((one) => one.includes('"Rules are in place"')).length;
      if (!line.includes('"Rules are in place"') || ready !== 2) continue;
      try {
        await work();
      } finally {
        process.kill(Number(/pid="?(\d+)/.exec(log.join("\n"))?.[1]), signal);
      }
    }
    expect(log.join("\n")).not.toContain("Failed to write reply routing");
  }

  test("those to the second are lost without replyVia", async () => {
    await withAgent(configOf("nftables", ""), "SIGTERM", async () => {
      expect(await counts({ first: LONG, second: BRIEF.second })).toEqual(SECOND_LOST);
      expect(await rules("-4")).toEqual([]);
    });
  });

  test.each([
    ["the second named", "nftables", "replyVia: [{interface: up1}]"],
    ["a table of the operator's", "iptables", "replyVia: [{interface: up1, table: 102}]"],
  ])("all arrive with %s, in %s mode", async (_, mode, setting) => {
    await withAgent(configOf(mode, setting), "SIGTERM", () => expect.poll(() => counts()).toEqual(ALL));
  });

  test.each(["iptables", "nftables"])(
    "a first datagram that does not fit the way to the pod, in %s mode",
    async (mode) => {
      await withAgent(configOf(mode, "replyVia: auto"), "SIGTERM", async () => {
        await expect.poll(() => counts()).toEqual(ALL);
        await inside().run(["ip", "-batch", "-"], { input: narrowWay("add") });
        try {
          await expect.poll(() => knownMtu(clients.first, "first")).toEqual({ IPv4: NARROW, IPv6: NARROW });
          await expect.poll(() => knownMtu(clients.second, "second")).toEqual({ IPv4: NARROW, IPv6: NARROW });
        } finally {
          await inside().run(["ip", "-batch", "-"], { input: narrowWay("delete") });
          const forget = ["sh", "-c", "ip route flush cache; ip -6 route flush cache"] as const;
          for (const { run } of Object.values(clients)) await run(forget);
        }
      });
    },
  );

  // In iptables mode, and under load on both uplinks: the spec of pnpm e2e --suite faults.
  test("interfaces that go and return, agents that are killed, and foreign deletions", async ({ signal }) => {
    const auto = configOf("nftables", "replyVia: auto");
    await withAgent(auto, "SIGKILL", async () => {
      await expect.poll(() => counts()).toEqual(ALL);
      const before = await sentAgain(clients.first);
      await using load = underLoad(signal);
      await inside().run(["ip", "link", "set", "up1", "down"]);
      await expect.poll(() => rules("-4")).toHaveLength(1);
      await inside().run(["ip", "-force", "-batch", "-"], { input: SECOND_BACK });
      await expect.poll(() => counts()).toEqual(ALL);
      await inside().run(["nft", "delete table ip fairlead_reply"]);
      await inside().run(["ip", "rule", "delete", "fwmark", "0x3000/0x3000"]);
      await expect.poll(() => counts()).toEqual(ALL);
      await load.stop();
      expect(new Set(load.seen)).toEqual(new Set([JSON.stringify(ALL.first)]));
      expect(await sentAgain(clients.first)).toBe(before);
    });
    const before = await rules("-4");
    expect(before).toHaveLength(2);
    await withAgent(auto, "SIGTERM", () => expect.poll(() => counts()).toEqual(ALL));
    expect(await rules("-4")).toEqual(before);
  });

  test("the clean-up leaves no rule, route or mark", async () => {
    for await (const line of running(["--cleanup"])) expect(line).not.toContain("Failed");
    expect([...(await rules("-4")), ...(await rules("-6"))]).toEqual([]);
    const routes = await inside().run(["ip", "route", "show", "table", "all", "proto", "175"]);
    expect(routes.stdout).toBe("");
    expect((await inside().run(["nft", "list", "tables"])).stdout).not.toContain("fairlead");
  });
});

/** At least what IPv6 has everywhere. */
const NARROW = 1_300;

const narrowWay = (verb: "add" | "delete") =>
  ["10.144.1.5", "fd00:144::1:5"].map((pod) => `route ${verb} ${pod} dev pod0 mtu lock ${NARROW}\n`).join("");

const SECOND_BACK = [
  "link set up1 up",
  "address replace fd00:202::10/64 dev up1 nodad",
  "route replace default via 10.202.0.1 dev up1 metric 500",
  "route replace default via fd00:202::1 dev up1 metric 2000",
  "route replace default via 10.202.0.1 dev up1 table 102",
  "route replace default via fd00:202::1 dev up1 table 102",
  "",
].join("\n");

function configOf(mode: string, fairlead: string): string {
  return [
    "apiVersion: kubeproxy.config.k8s.io/v1alpha1",
    "kind: KubeProxyConfiguration",
    `mode: ${mode}`,
    "nodePortAddresses: [10.0.0.0/8, fd00::/16]",
    'clusterCIDR: "10.144.0.0/16,fd00:144::/48"',
    `${mode}: {syncPeriod: 2s, minSyncPeriod: 0s}`,
    "---",
    "apiVersion: fairlead.dev/v1alpha1",
    "kind: FairleadConfiguration",
    fairlead,
    "",
  ].join("\n");
}

const MANIFEST = JSON.stringify({
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace: "default", name: "web" },
      spec: {
        type: "NodePort",
        clusterIP: "10.96.0.10",
        clusterIPs: ["10.96.0.10", "fd00:96::10"],
        ipFamilies: ["IPv4", "IPv6"],
        ports: [
          { name: "tcp", protocol: "TCP", port: 80, targetPort: 8080, nodePort: 30_080 },
          { name: "udp", protocol: "UDP", port: 80, targetPort: 8080, nodePort: 30_080 },
        ],
      },
    },
    ...(["IPv4", "IPv6"] as const).map((addressType) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        namespace: "default",
        name: `web-${addressType.toLowerCase()}`,
        labels: { "kubernetes.io/service-name": "web" },
      },
      addressType,
      endpoints: [
        { addresses: [addressType === "IPv4" ? "10.144.1.5" : "fd00:144::1:5"], conditions: { ready: true } },
      ],
      ports: [
        { name: "tcp", protocol: "TCP", port: 8080 },
        { name: "udp", protocol: "UDP", port: 8080 },
      ],
    })),
  ],
});
