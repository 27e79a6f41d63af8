import { follow } from "@fairlead/base/testing";
import { createRunner, lines, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { afterAll, beforeAll, expect, test } from "vitest";
import { onBundleNode } from "./support/bundle-node.ts";

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
    const at = (one: NetworkNamespace) => createRunner({ prefix: one.argvPrefix, env: one.env, timeoutMs: 0 });
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

  /** Gives the second uplink its routes back, as far as the link takes them yet. @returns how many of each there are */
  const secondBack = async () => {
    await inside().run(["ip", "-force", "-batch", "-"], { input: SECOND_BACK });
    const tables = ["main", "102"].flatMap((table) => [["-4", table] as const, ["-6", table] as const]);
    return Promise.all(
      tables.map(async ([family, table]) => {
        const shown = await inside().run(["ip", family, "route", "show", "default", "dev", "up1", "table", table]);
        return shown.stdout.split("\n").filter((line) => line.startsWith("default")).length;
      }),
    );
  };

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

  test.for(["iptables", "nftables"])("links that go, killed agents, deleted rules: %s", async (mode, { signal }) => {
    const auto = configOf(mode, "replyVia: auto");
    await withAgent(auto, "SIGKILL", async () => {
      await expect.poll(() => counts()).toEqual(ALL);
      const before = await sentAgain(clients.first);
      await using load = underLoad(signal);
      await inside().run(["ip", "link", "set", "up1", "down"]);
      await expect.poll(() => rules("-4")).toHaveLength(1);
      await expect.poll(secondBack).toEqual([1, 1, 1, 1]);
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

/** Clients behind each of a node's two uplinks, and the node's address there. */
const UPLINKS = {
  first: { IPv4: ["198.51.100.7", "10.201.0.10"], IPv6: ["fd00:198::7", "fd00:201::10"] },
  second: { IPv4: ["203.0.113.7", "10.202.0.10"], IPv6: ["fd00:203::7", "fd00:202::10"] },
} as const;

/**
 * Wires a node with two uplinks, whose default route is by the first one, and a pod: `up0` and `up1` lead to a router
 * each, on which the client's address is.
 */
async function wire(
  node: Runner,
  routers: readonly NetworkNamespace[],
  pod: NetworkNamespace,
  at: (namespace: NetworkNamespace) => Runner,
): Promise<void> {
  const batch = (runner: Runner, ...commands: readonly string[]) =>
    runner.run(["ip", "-batch", "-"], { input: `${commands.join("\n")}\n` });
  await node.run(["sh", "-c", SETTINGS]);
  for (const [i, router] of routers.entries()) {
    const [v4, v6] = [`10.20${i + 1}.0`, `fd00:20${i + 1}:`];
    const { IPv4, IPv6 } = UPLINKS[i === 0 ? "first" : "second"];
    await node.run(["ip", "link", "add", `up${i}`, "type", "veth", "peer", "name", "e0", "netns", String(router.pid)]);
    await batch(
      at(router),
      ...["link set lo up", "link set e0 up", `address add ${v4}.1/24 dev e0`, `address add ${v6}:1/64 dev e0 nodad`],
      ...[`address add ${IPv4[0]}/32 dev lo`, `address add ${IPv6[0]}/128 dev lo nodad`],
    );
    await batch(
      node,
      ...[`link set up${i} up`, `address add ${v4}.10/24 dev up${i}`, `address add ${v6}:10/64 dev up${i} nodad`],
      `route add default via ${v4}.1 dev up${i} metric ${i === 0 ? 100 : 500}`,
      `route add default via ${v6}:1 dev up${i} metric ${i === 0 ? 100 : 2000}`,
    );
  }
  await batch(
    node,
    "route add default via 10.202.0.1 dev up1 table 102",
    "route add default via fd00:202::1 dev up1 table 102",
  );
  await node.run(["ip", "link", "add", "pod0", "type", "veth", "peer", "name", "e0", "netns", String(pod.pid)]);
  await batch(
    node,
    ...["link set lo up", "link set pod0 up", "address add 10.144.1.1/24 dev pod0"],
    "address add fd00:144::1:1/112 dev pod0 nodad",
  );
  await batch(
    at(pod),
    ...["link set lo up", "link set e0 up", "address add 10.144.1.5/24 dev e0"],
    ...["address add fd00:144::1:5/112 dev e0 nodad", "route add default via 10.144.1.1"],
    "route add default via fd00:144::1:1",
  );
}

/** Strict filters would drop what comes by the second uplink before any rule sees it. */
const SETTINGS = [
  "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done",
  "echo 1 > /proc/sys/net/ipv4/ip_forward",
  "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
].join("; ");

/** It goes on when a client that gave up resets its connection. */
const SERVER = `require("net")
  .createServer((s) => s.on("error", () => {}).end("served"))
  .listen(8080, "::", () => console.log("listening"))`;

async function startServer(pod: Runner): Promise<{ stop(): Promise<void> }> {
  const output = lines(pod.stream([process.execPath, "-e", SERVER], { timeoutMs: 0 }));
  await output.next();
  return {
    async stop() {
      await output.return();
    },
  };
}

const CLIENT = `
const [localAddress, host, times, patience] = process.argv.slice(1);
const once = () => new Promise((resolve) => {
  let text = "";
  const socket = require("net").connect({ localAddress, host, port: 30080 });
  socket.setTimeout(Number(patience), () => socket.destroy());
  socket.on("data", (data) => { text += data; }).on("error", () => {}).on("close", () => resolve(text === "served"));
});
Promise.all(Array.from({ length: Number(times) }, once)).then((all) => console.log(all.filter(Boolean).length));
`;

/**
 * How many of so many requests, at once, to the node's address on an uplink are answered, by family.
 *
 * @param patience milliseconds; a request that is lost takes no longer
 */
async function answered(client: Runner, uplink: keyof typeof UPLINKS, times: number, patience: number) {
  const { IPv4, IPv6 } = UPLINKS[uplink];
  const ask = async ([source, to]: readonly [string, string]) =>
    Number((await client.run([process.execPath, "-e", CLIENT, source, to, String(times), String(patience)])).stdout);
  const [four, six] = await Promise.all([ask(IPv4), ask(IPv6)]);
  return { IPv4: four, IPv6: six };
}

/** How often TCP of a network namespace has sent a segment again, which it does for one that was lost. */
async function sentAgain(client: Runner): Promise<number> {
  const { stdout } = await client.run(["cat", "/proc/net/snmp"]);
  const [names = [], values = []] = [...stdout.matchAll(/^Tcp: (.*)$/gm)].map(([, words = ""]) => words.split(" "));
  return Number(values[names.indexOf("RetransSegs")]);
}

const SEND_LARGE = `
const [address, host] = process.argv.slice(1);
const socket = require("dgram").createSocket(address.includes(":") ? "udp6" : "udp4");
socket.on("error", () => {}).bind({ address }, () => socket.send(Buffer.alloc(1400), 30080, host, () => socket.close()));
`;

/**
 * Sends a first datagram to the node's address on an uplink.
 *
 * @returns the path MTU that the client knows then, by family
 */
async function knownMtu(client: Runner, uplink: keyof typeof UPLINKS) {
  const { IPv4, IPv6 } = UPLINKS[uplink];
  const ask = async ([source, to]: readonly [string, string]) => {
    await client.run([process.execPath, "-e", SEND_LARGE, source, to]);
    const { stdout } = await client.run(["ip", "route", "get", to, "from", source]);
    return Number(/ mtu (\d+)/.exec(stdout)?.[1]);
  };
  const [four, six] = [await ask(IPv4), await ask(IPv6)];
  return { IPv4: four, IPv6: six };
}
