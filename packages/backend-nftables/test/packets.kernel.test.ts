import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { ServicePortGroup } from "@fairlead/core";
import { openNftables, type Runner } from "@fairlead/kernel";
import { addressHex, hostHex, NftBatch, type SetElement } from "@fairlead/netfilter/nft";
import { goldenNode } from "@fairlead/testkit";
import {
  type CrowdNode,
  crowdHistory,
  followCrowd,
  inRealTime,
  openRealCrowd,
  type RealCrowd,
} from "@fairlead/testkit/crowds";
import { changeOf, clusterIPGroup, nodePlan, planOf } from "@fairlead/testkit/plans";
import { insideTest } from "@fairlead/testkit/real-kernel";
import { countWeighted } from "@fairlead/testkit/weighted-packets";
import fc from "fast-check";
import { expect } from "vitest";
import { createNftablesBackend } from "../src/index.ts";
import { kubeProxyAffinitySet } from "../src/plan/context.ts";
import { CLIENTS_SIZE } from "../src/plan/sticky.ts";
import { plannerOptions } from "./support/world.ts";

/** Of a class of 6, of which one slot is empty, and one more than the draw that always hits has. */
const ENDPOINTS = 5;
const endpoint = (number: number) => ({ address: `10.144.0.${number}`, port: 8080, local: true });
const CLUSTER = Array.from({ length: ENDPOINTS }, (_, at) => endpoint(at + 1));
const NODE = nodePlan({ kind: "none" }, { kind: "list", addresses: [] });

const service = (name: string, address: string, more: Partial<ServicePortGroup> = {}) =>
  clusterIPGroup(name, address, CLUSTER, { id: `default/${name}/udp`, protocol: "UDP", ...more });

const commands = (runner: Runner, lines: readonly string[]) =>
  runner.run(["ip", "-batch", "-"], { input: `${lines.join("\n")}\n` });

/** Sockets of this process as endpoints, and what came to each. */
async function openEndpoints(count: number) {
  const received: { client: string; endpoint: string }[] = [];
  const servers = Array.from({ length: count }, (_, at) => {
    const { address, port } = endpoint(at + 1);
    const socket = createSocket("udp4", (_, { address: client }) => received.push({ client, endpoint: address }));
    return socket.bind(port, address);
  });
  await Promise.all(servers.map((server) => once(server, "listening")));
  let nextPort = 10_000;
  return {
    /** One datagram from a port of its own: one that was used before would be taken for the flow of before. */
    async send(from: string, to: string): Promise<void> {
      const socket = createSocket("udp4").bind(nextPort++, from);
      await once(socket, "listening");
      const before = received.length;
      socket.send("x", 80, to);
      // Each of them is served.
      while (received.length === before) await new Promise((resolve) => setImmediate(resolve));
      socket.close();
    },
    /** Where the datagrams of some work ended, by client and by endpoint. */
    async during(work: () => Promise<void>) {
      received.length = 0;
      await work();
      const ends = Map.groupBy(received, ({ client }) => client);
      return {
        counts: new Map(
          Array.from(
            Map.groupBy(received, (one) => one.endpoint),
            ([to, all]) => [to, all.length],
          ),
        ),
        endsOf: (client: string) => (ends.get(client) ?? []).map((one) => one.endpoint),
      };
    },
    close: () => {
      for (const server of servers) server.close();
    },
  };
}

insideTest(
  "real packets: endpoints get even shares, and a client stays with its endpoint as long as that is there",
  async ({ runner }) => {
    await commands(runner, ["address add 10.144.0.0/16 dev lo", "route add 10.96.0.0/16 dev lo"]);
    const { send, during, close } = await openEndpoints(ENDPOINTS + 1);
    const times = (count: number, to: string, from = (_: number) => "10.144.9.9") =>
      during(async () => {
        for (let at = 0; at < count; at++) await send(from(at), to);
      });
    const nft = await openNftables();
    const backend = createNftablesBackend(nft, { family: "IPv4" });
    const [plain, sticky, hashed] = [
      service("plain", "10.96.0.1"),
      service("sticky", "10.96.0.2", { affinitySeconds: 600 }),
      service("hashed", "10.96.0.3", { balance: "source-hash" }),
    ];
    let plan = planOf([plain, sticky, hashed], NODE);
    const change = async (...groups: readonly ServicePortGroup[]) => {
      const before = plan;
      plan = planOf(groups, NODE);
      await backend.apply(plan, changeOf(before, plan));
    };
    await backend.sync(plan);

    const even = await times(2_000, "10.96.0.1");
    expect(even.counts.size).toBe(5);
    expect(chiSquare(even.counts)).toBeLessThan(ONE_IN_A_MILLION);
    const one = await times(100, "10.96.0.2");
    expect([...one.counts.values()]).toEqual([100]);
    const clients = (at: number) => `10.144.${10 + (at >> 8)}.${at & 255}`;
    const many = await times(300, "10.96.0.2", clients);
    expect(many.counts.size).toBe(5);
    expect(chiSquare(many.counts)).toBeLessThan(ONE_IN_A_MILLION);

    // nft prints the clients that are remembered, and takes what it printed.
    const { stdout: listed } = await runner.run(["nft", "list", "table", "ip", "kube-proxy"]);
    expect(listed).toMatch(
      /elements = \{ 0x\w{8} \. 10\.144\.\d+\.\d+ timeout 10m expires \S+ : 0x\w{8} \. 0x\w{8} \. 0x\w{8}/,
    );
    await runner.run(["nft", "-c", "-f", "-"], { input: listed });

    // The one that went has no client, and the client goes to one of the others only.
    const [chosen] = one.counts.keys();
    const others = [...CLUSTER.filter(({ address }) => address !== chosen), endpoint(ENDPOINTS + 1)];
    const stickyAfter = { ...sticky, cluster: others };
    await change(plain, stickyAfter, hashed);
    const afterItWent = await times(100, "10.96.0.2");
    expect([...afterItWent.counts.values()]).toEqual([100]);
    expect([...afterItWent.counts.keys()]).not.toContain(chosen);
    await backend.sync(plan);
    expect((await times(100, "10.96.0.2")).counts).toEqual(afterItWent.counts);

    // By a hash of the client's address each goes one way; when one endpoint of five goes, nearly all others stay.
    const twice = async () => {
      const { endsOf } = await times(600, "10.96.0.3", (at) => clients(at % 300));
      return Array.from({ length: 300 }, (_, at) => [...new Set(endsOf(clients(at)))].join(" and "));
    };
    const hashedBefore = await twice();
    const [{ address: gone } = endpoint(1)] = CLUSTER;
    await change(plain, stickyAfter, { ...hashed, cluster: CLUSTER.slice(1) });
    const hashedAfter = await twice();
    expect(new Set(hashedBefore).size).toBe(5);
    expect(hashedBefore.filter((ends) => ends.includes(" and "))).toEqual([]);
    const stayed = hashedBefore.flatMap((end, at) => (end === gone ? [] : [end === hashedAfter[at]]));
    expect(stayed.filter(Boolean).length / stayed.length).toBeGreaterThan(0.95);
    expect(hashedAfter).not.toContain(gone);
    close();
    await nft.close();
  },
);

insideTest("real packets: endpoints get connections by their weights", async ({ runner }) => {
  const nft = await openNftables();
  const results = await countWeighted(runner, createNftablesBackend(nft, { family: "IPv4" }));
  for (const { name, chiSquare, limit, strays } of results) {
    expect(chiSquare, name).toBeLessThan(limit);
    expect(strays, name).toBe(0);
  }
  await nft.close();
});

/** The quantile of chi-square with four degrees of freedom: the test fails by chance once in a million runs. */
const ONE_IN_A_MILLION = 33.4;

function chiSquare(counts: ReadonlyMap<string, number>): number {
  const values = [...counts.values()];
  const expected = values.reduce((sum, count) => sum + count, 0) / values.length;
  return values.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

insideTest(
  "real packets: where no more clients are remembered, they are served as if none were",
  async ({ runner }) => {
    const ranges = ["10.144.0.0/24", "10.201.0.0/16"].map((range) => `address add ${range} dev lo`);
    await commands(runner, [...ranges, "route add 10.96.0.0/16 dev lo"]);
    const { send, during, close } = await openEndpoints(ENDPOINTS);
    const client = (at: number) => `10.201.${1 + (at >> 7)}.${1 + (at & 127)}`;
    const [known, ...unknown] = Array.from({ length: 301 }, (_, at) => client(at));
    const to = "10.96.0.2";
    const nft = await openNftables();
    const plan = planOf([service("sticky", to, { affinitySeconds: 600 })], NODE);
    await createNftablesBackend(nft, { family: "IPv4" }).sync(plan);
    const { endsOf } = await during(async () => {
      await send(client(0), to);
      await nft.commit(new NftBatch("ip", "kube-proxy").addElements("sticky-clients", otherClients()));
      for (let round = 0; round < 2; round++) for (let at = 0; at <= unknown.length; at++) await send(client(at), to);
      const sets = await nft.sets("ip", "kube-proxy", ({ name }) => name === "sticky-clients");
      expect(sets.get("sticky-clients")?.elements.size).toBe(CLIENTS_SIZE);
      // A full sync over a full map has to go through as well.
      await createNftablesBackend(nft, { family: "IPv4" }).sync(plan);
      await send(client(0), to);
    });
    // Who was there before stays, also over a full sync.
    expect(endsOf(known ?? "")).toHaveLength(4);
    expect(new Set(endsOf(known ?? "")).size).toBe(1);
    const ends = unknown.map(endsOf);
    expect(ends.flat()).toHaveLength(2 * unknown.length);
    expect(new Set(ends.flat()).size).toBe(5);
    // Of two connections of one, drawn each by itself, one in five goes the same way.
    expect(ends.filter((each) => new Set(each).size === 1).length).toBeLessThan(unknown.length / 2);
    close();
    await nft.close();
  },
);

/** As many as fill the map. */
function* otherClients(): Generator<SetElement> {
  const number = hostHex(0x7fff_0000);
  for (let at = 1; at < CLIENTS_SIZE; at++) {
    const key = number + addressHex(`172.${16 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`);
    yield { key, value: hostHex(0) + number + number, timeout: 600_000 };
  }
}

insideTest("real packets: 200 clients over random histories of their service", async ({ runner }) => {
  const crowd = await openRealCrowd(runner, goldenNode(false).addresses[0] ?? "");
  const nft = await openNftables();
  const seed = Date.now();
  for (const history of fc.sample(crowdHistory(8), { numRuns: 3, seed })) {
    await nft.commit(new NftBatch("ip", "kube-proxy").addTable().deleteTable());
    await expect(followCrowd(inRealTime(history), crowdNode(nft, crowd)), `seed ${seed}`).resolves.toBeUndefined();
  }
  expect(crowd.connections()).toBeGreaterThan(400);
  crowd.close();
  await nft.close();
});

function crowdNode(nft: Awaited<ReturnType<typeof openNftables>>, crowd: RealCrowd): CrowdNode {
  const backendAnew = () => createNftablesBackend(nft, { family: "IPv4" });
  let backend = backendAnew();
  const restart: CrowdNode["restart"] = (plan) => {
    backend = backendAnew();
    return backend.sync(plan);
  };
  return {
    ...crowd,
    options: plannerOptions(goldenNode(false)),
    sharesFrontends: true,
    apply: (plan, change) => backend.apply(plan, change),
    fullSync: (plan) => backend.sync(plan),
    restart,
    afterKubeProxy: async (plan, clients) => {
      const [group] = plan.groups.values();
      const timeout = 1000 * (group?.affinitySeconds ?? 0);
      const batch = new NftBatch("ip", "kube-proxy");
      for (const endpoint of group?.cluster ?? []) {
        const name = kubeProxyAffinitySet(group?.name ?? "", "TCP", endpoint);
        batch.addSet({ name, key: ["ipv4_addr"], flags: ["dynamic", "timeout"], timeout });
        const own = [...clients].filter(([, one]) => one === `${endpoint.address}:${endpoint.port}`);
        batch.addElements(
          name,
          own.map(([client]) => ({ key: addressHex(client) })),
        );
      }
      await nft.commit(batch);
      return restart(plan);
    },
  };
}
