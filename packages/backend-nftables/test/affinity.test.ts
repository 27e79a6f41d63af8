import { VirtualClock } from "@fairlead/base/testing";
import { FakeNftables } from "@fairlead/kernel/fake";
import {
  addressHex,
  type Hex,
  hostHex,
  type NftSet,
  type NftTable,
  type SetElement,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import { type SlotState, webState } from "@fairlead/testkit/histories";
import { expect, test } from "vitest";
import { createNftablesBackend } from "../src/index.ts";
import { kubeProxyAffinitySet } from "../src/plan/context.ts";
import { endpointValue } from "../src/plan/keys.ts";
import { openWorld, recorded } from "./support/world.ts";

const CLIENT = addressHex("192.0.2.7");
const OTHER = addressHex("192.0.2.8");
const sticky = (...endpoints: SlotState["endpoints"]) => webState({ affinity: true, endpoints });
const ALL = sticky("ready", "ready", "ready", "ready");
const WITHOUT_SECOND = sticky("ready", "none", "ready", "ready");
const [FIRST, SECOND, THIRD] = ["10.144.0.4", "10.144.0.5", "10.144.128.6"] as const;

test("an endpoint that goes and comes back has another number; the others keep theirs", async () => {
  const node = await openNode();
  await node.change(ALL);
  const [first, second] = [node.numberOf(FIRST), node.numberOf(SECOND)];
  await node.change(WITHOUT_SECOND);
  expect(node.numberOf(FIRST)).toBe(first);
  expect(node.numberOf(SECOND)).toBeUndefined();
  await node.change(ALL);
  expect(node.numberOf(FIRST)).toBe(first);
  expect(node.numberOf(SECOND)).not.toBe(second);
});

test("of a full sync's clients those of gone endpoints are forgotten, the others keep the time they have left", async () => {
  const node = await openNode();
  await node.change(ALL);
  node.remember(CLIENT, THIRD);
  node.remember(OTHER, SECOND);
  await node.change(WITHOUT_SECOND);
  node.clock.advanceNow(20_000);
  for (const backend of [node.backend, node.backendAnew()]) {
    await backend.sync(node.world.plan);
    expect(node.clients()).toEqual([{ client: CLIENT, endpoint: THIRD, expires: 40_000, timeout: 60_000 }]);
  }
});

test("after a change that was refused, what the kernel holds is taken over", async () => {
  const node = await openNode();
  await node.change(ALL);
  node.remember(CLIENT, THIRD);
  node.fake.faults.failNext({ kind: "fail", errno: "ENOMEM" });
  await expect(node.change(WITHOUT_SECOND)).rejects.toThrow("ENOMEM");
  await node.backend.sync(node.world.plan);
  expect(node.clients()).toMatchObject([{ client: CLIENT, endpoint: THIRD }]);
});

test("sets of kinds that are not known cost the clients, which is reported, and not the sync", async () => {
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
  expect(node.numberOf(FIRST)).toBeDefined();
});

test("what kube-proxy remembers is newer than what this mode did, and the later of two of its own counts", async () => {
  const node = await openNode();
  await node.change(ALL);
  node.remember(CLIENT, FIRST);
  node.remember(OTHER, FIRST);
  const theirs = [
    kubeProxysSet(SECOND, { key: CLIENT, expires: 20_000 }),
    kubeProxysSet(THIRD, { key: CLIENT, expires: 25_000 }),
  ];
  const own = node.table();
  node.fake.put({ ...own, sets: new Map([...own.sets, ...tableOf(...theirs).sets]) });
  await node.backendAnew().sync(node.world.plan);
  expect(node.clients()).toMatchObject([
    { client: CLIENT, endpoint: THIRD, expires: 25_000, timeout: 60_000 },
    { client: OTHER, endpoint: FIRST },
  ]);
});

test("a service that another agent has left at the address is another one", async () => {
  const node = await openNode();
  await node.change(ALL);
  node.remember(CLIENT, THIRD);
  const named = (comment: string) => {
    const own = node.table();
    const frontends = own.sets.get("sticky-ips");
    const elements = [...(frontends?.elements.values() ?? [])].map((one): [Hex, SetElement] => [
      one.key,
      { ...one, comment },
    ]);
    node.fake.put({
      ...own,
      sets: new Map([...own.sets, ["sticky-ips", { ...frontends, elements: new Map(elements) } as NftSet]]),
    });
  };
  named("default/other");
  await node.backendAnew().sync(node.world.plan);
  expect(node.clients()).toEqual([]);
});

test("a client is forgotten only where it was found and then led nowhere: another processor may just have added it", async () => {
  const node = await openNode();
  await node.change(ALL);
  const { chains } = node.table();
  const entrances = [...chains.keys()].filter((name) => /^sticky-\d+-\d+$/.test(name));
  expect(entrances).toHaveLength(1);
  const steps = entrances.flatMap((name) => [...stepsOf(chains, name)]);
  const forgotten = steps.indexOf("delete");
  expect(steps.slice(0, forgotten + 1)).toEqual([
    ...["lookup", "update", "nat"],
    "lookup",
    ...["lookup", "update", "nat"],
    ...["lookup", "delete"],
  ]);
  expect(steps.lastIndexOf("delete")).toBe(forgotten);
});

/** What the rules of a chain do with the clients, and where they end, through all chains that they jump to. */
function* stepsOf(chains: NftTable["chains"], name: string): Generator<string> {
  for (const { expressions } of chains.get(name)?.rules ?? []) {
    for (const one of expressions) {
      if (one.kind === "dynset") yield one.operation;
      if (one.kind === "nat") yield "nat";
      if (one.kind === "lookup" && one.set === "sticky-clients") yield "lookup";
      if (one.kind !== "immediate" || !("verdict" in one) || one.verdict.kind !== "jump") continue;
      yield* stepsOf(chains, one.verdict.chain);
    }
  }
}

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
  const table = (): NftTable => {
    const found = fake.tableNow("ip", "kube-proxy");
    if (found === undefined) throw new Error("there is no table");
    return found;
  };
  return {
    ...{ clock, fake, world, backend, backendAnew, table },
    async change(state: SlotState) {
      const change = world.change([[1, state]]);
      if (change !== undefined) await backend.apply(world.plan, change);
    },
    /** As the service port's endpoint has it; undefined: it has none. */
    numberOf: (address: string) => memberOf(table(), address)?.key.slice(8, 16),
    remember(client: Hex, address: string) {
      const [number, endpoint] = [
        memberOf(table(), address)?.key.slice(0, 8),
        memberOf(table(), address)?.key.slice(8, 16),
      ];
      const element = { key: `${number}${client}`, value: `${hostHex(0)}${number}${endpoint}`, timeout: 60_000 };
      fake.remember("ip", "kube-proxy", "sticky-clients", element);
    },
    clients: () => clientsOf(table()),
  };
}

function memberOf({ sets }: NftTable, address: string): SetElement | undefined {
  const value = endpointValue({ address, port: 8080, local: false });
  return [...(sets.get("sticky-endpoints")?.elements.values() ?? [])].find((one) => one.value === value);
}

/** Who is remembered where, in the order of the set. */
function clientsOf(table: NftTable) {
  return [...(table.sets.get("sticky-clients")?.elements.values() ?? [])].map(({ key, value, expires, timeout }) => {
    const endpoint = [FIRST, SECOND, THIRD].find((one) => memberOf(table, one)?.key.startsWith(String(value).slice(8)));
    return { client: key.slice(8), endpoint, expires, timeout };
  });
}

function tableOf(...sets: readonly NftSet[]): NftTable {
  return { family: "ip", name: "kube-proxy", chains: new Map(), sets: new Map(sets.map((set) => [set.name, set])) };
}

function filled(set: Omit<NftSet, "elements">, element: SetElement): NftSet {
  return { ...set, elements: new Map([[element.key, element]]) };
}

const TIMED = { flags: ["timeout", "dynamic"], timeout: 60_000 } as const;

function kubeProxysSet(address: string, client: SetElement): NftSet {
  const name = kubeProxyAffinitySet("default/slot-1:main", "TCP", { address, port: 8080, local: false });
  return filled({ name, key: ["ipv4_addr"], ...TIMED }, client);
}
