import { VirtualClock } from "@fairlead/base/testing";
import { FakeNftables } from "@fairlead/kernel/fake";
import { addressHex, type NftTable, type SetElement, UnreadableNft } from "@fairlead/netfilter/nft";
import { type SlotState, webState } from "@fairlead/testkit/histories";
import { expect, test } from "vitest";
import { createNftablesBackend } from "../src/index.ts";
import { addressKey, endpointValue } from "../src/plan/keys.ts";
import { kubeProxyAffinitySet } from "../src/plan/names.ts";
import { recorded } from "./support/recorded.ts";
import { openWorld } from "./support/world.ts";

const FRONTEND = addressKey("10.96.3.1", "TCP", 80);
const CLIENT = addressHex("192.0.2.7");
const sticky = (...endpoints: SlotState["endpoints"]) => webState({ affinity: true, endpoints });
const ALL = sticky("ready", "ready", "ready", "ready");
const WITHOUT_SECOND = sticky("ready", "none", "ready", "ready");
const SECOND_GONE = ["10.144.0.4:8080", undefined, "10.144.128.6:8080", "10.144.128.7:8080"];

test("endpoints keep their slots when one of them goes, and a new one takes its place", async () => {
  const node = await openNode();
  await node.change(ALL);
  await node.change(WITHOUT_SECOND);
  expect(slots(node.table())).toEqual(SECOND_GONE);
  await node.change(ALL);
  expect(slots(node.table())).toEqual(SECOND_GONE.with(1, "10.144.0.5:8080"));
});

test.each(["the same process", "another process"])(
  "a full sync by %s keeps slots, clients and the time they have left",
  async (who) => {
    const node = await openNode();
    await node.change(ALL);
    await node.change(WITHOUT_SECOND);
    node.fake.remember("ip", "kube-proxy", "clients-60-2", { key: CLIENT + FRONTEND });
    node.clock.advanceNow(20_000);
    await (who === "the same process" ? node.backend : node.backendAnew()).sync(node.world.plan);
    expect(slots(node.table())).toEqual(SECOND_GONE);
    expect(clients(node.table())).toEqual({ "clients-60-2": [{ key: CLIENT + FRONTEND, expires: 40_000 }] });
  },
);

test("after a change that was refused, what the kernel holds is taken over", async () => {
  const node = await openNode();
  await node.change(ALL);
  await node.change(WITHOUT_SECOND);
  node.fake.remember("ip", "kube-proxy", "clients-60-3", { key: CLIENT + FRONTEND });
  node.fake.faults.failNext({ kind: "fail", errno: "ENOMEM" });
  await expect(node.change(ALL)).rejects.toThrow("ENOMEM");
  await node.backend.sync(node.world.plan);
  expect(slots(node.table())).toEqual(SECOND_GONE.with(1, "10.144.0.5:8080"));
  expect(Object.keys(clients(node.table()))).toEqual(["clients-60-3"]);
});

test("sets of kinds that nobody knows cost the clients, which is told, and not the sync", async () => {
  const node = await openNode();
  node.world.change([[1, ALL]]);
  const { port } = recorded(node.fake);
  const unreadable = {
    ...port,
    sets: () => Promise.reject(new UnreadableNft("set x: its types are not known")),
  };
  const reported: string[] = [];
  const onForgottenClients = ({ message }: Error) => reported.push(message);
  const backend = createNftablesBackend(unreadable, { family: "IPv4", clock: node.clock, onForgottenClients });
  expect((await backend.sync(node.world.plan)).kind).toBe("full");
  expect(reported).toEqual(["set x: its types are not known"]);
  expect(slots(node.table())[3]).toBe("10.144.128.7:8080");
});

test("clients that kube-proxy remembers stay with their endpoints", async () => {
  const node = await openNode();
  node.world.change([[1, ALL]]);
  const endpoint = { address: "10.144.128.6", port: 8080, local: false };
  node.fake.put(
    kubeProxysTable(kubeProxyAffinitySet("default/slot-1:main", "TCP", endpoint), { key: CLIENT, expires: 25_000 }),
  );
  await node.backendAnew().sync(node.world.plan);
  expect(clients(node.table())).toEqual({ "clients-60-2": [{ key: CLIENT + FRONTEND, expires: 25_000 }] });
  expect(slots(node.table())[2]).toBe("10.144.128.6:8080");
});

test("kube-proxy's name of the set", () => {
  // Of the golden file 12-affinity.
  expect(kubeProxyAffinitySet("default/aff", "TCP", { address: "10.144.1.5", port: 8080, local: true })).toBe(
    "affinity-LSAEFVY4-default/aff/tcp/__10.144.1.5/8080",
  );
});

async function openNode() {
  const clock = new VirtualClock();
  const fake = new FakeNftables({ clock });
  const world = openWorld();
  const backendAnew = () => createNftablesBackend(fake, { family: "IPv4", clock });
  const backend = backendAnew();
  await backend.sync(world.plan);
  return {
    clock,
    fake,
    world,
    backend,
    backendAnew,
    async change(state: SlotState) {
      const change = world.change([[1, state]]);
      if (change !== undefined) await backend.apply(world.plan, change);
    },
    table(): NftTable {
      const table = fake.tableNow("ip", "kube-proxy");
      if (table === undefined) throw new Error("there is no table");
      return table;
    },
  };
}

/** The endpoints of the service by their slots. */
function slots({ sets }: NftTable): (string | undefined)[] {
  const known = ["10.144.0.4", "10.144.0.5", "10.144.128.6", "10.144.128.7"].map((address) => ({
    address,
    port: 8080,
    local: false,
  }));
  return [0, 1, 2, 3].map((slot) => {
    const value = sets.get(`sticky-endpoints-${slot}`)?.elements.get(FRONTEND)?.value;
    const endpoint = known.find((one) => endpointValue(one) === value);
    return endpoint && `${endpoint.address}:${endpoint.port}`;
  });
}

function clients({ sets }: NftTable): Readonly<Record<string, readonly SetElement[]>> {
  const filled = [...sets.values()].filter(({ name, elements }) => name.startsWith("clients-") && elements.size > 0);
  return Object.fromEntries(filled.map(({ name, elements }) => [name, [...elements.values()]]));
}

function kubeProxysTable(name: string, client: SetElement): NftTable {
  const set = { name, key: ["ipv4_addr"], flags: ["timeout", "dynamic"], timeout: 60_000 } as const;
  const elements = new Map([[client.key, client]]);
  return { family: "ip", name: "kube-proxy", chains: new Map(), sets: new Map([[name, { ...set, elements }]]) };
}
