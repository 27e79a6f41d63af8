import { existsSync } from "node:fs";
import { errorCode, errorText, IP_FAMILIES, type IPFamily } from "@fairlead/base";
import { NFT_FAMILY, NftBatch, type NftFamily, statements } from "@fairlead/netfilter/nft";
import { openNftables } from "../nftables/open.ts";
import { exchangeTCP, exchangeUDP, MESSAGES, type Sides } from "./exchange.ts";
import { address, configure, defaultRoute, up, vethTo } from "./links.ts";
import { OwnNamespaces } from "./namespaces.ts";

/**
 * How the flowtables of a kernel did in their test. impossible: this process may not make network namespaces, or set up
 * what the test needs.
 */
export type FlowtableTest =
  | { readonly outcome: "passed" }
  | { readonly outcome: "failed" | "impossible"; readonly reason: string };

interface Plan {
  readonly client: { readonly address: string; readonly gateway: string };
  readonly server: { readonly address: string; readonly gateway: string };
  readonly service: string;
  readonly prefixLength: number;
  readonly forwarding: string;
}

/** Ranges for measurements and for documentation (RFC 2544, RFC 3849). */
const PLANS: Readonly<Record<IPFamily, Plan>> = {
  IPv4: {
    client: { address: "198.18.1.2", gateway: "198.18.1.1" },
    server: { address: "198.18.2.2", gateway: "198.18.2.1" },
    service: "198.19.0.1",
    prefixLength: 24,
    forwarding: "net/ipv4/ip_forward",
  },
  IPv6: {
    client: { address: "2001:db8:1::2", gateway: "2001:db8:1::1" },
    server: { address: "2001:db8:2::2", gateway: "2001:db8:2::1" },
    service: "2001:db8:3::1",
    prefixLength: 64,
    forwarding: "net/ipv6/conf/all/forwarding",
  },
};
const PORTS = { service: 80, server: 8080 } as const;
const TABLE = "fairlead-fast-path-test";
const DEVICES = { client: "to-client", server: "to-server" } as const;
const END = "eth0";

/**
 * Sends TCP and UDP through NAT and a flowtable of this kernel, between network namespaces of its own, and counts the
 * packets that still meet rules. Leaves the main thread in one of these: for a process that does nothing else. Waits
 * where no answer comes: the caller has the time limit.
 */
export async function runFlowtableTest(): Promise<FlowtableTest> {
  const spaces = await OwnNamespaces.open();
  try {
    for (const family of IP_FAMILIES) {
      // A kernel without IPv6 serves none.
      if (!existsSync(`/proc/sys/${PLANS[family].forwarding}`)) continue;
      const problem = await testFamily(spaces, family);
      if (problem !== undefined) return problem;
    }
    return { outcome: "passed" };
  } finally {
    spaces.close();
  }
}

async function testFamily(spaces: OwnNamespaces, family: IPFamily): Promise<FlowtableTest | undefined> {
  const plan = PLANS[family];
  let made: Awaited<ReturnType<typeof prepare>>;
  try {
    made = await prepare(spaces, plan);
  } catch (error) {
    return { outcome: "impossible", reason: reasonOf(error) };
  }
  const { client, server, router } = made;
  spaces.enter(router);
  const nft = await openNftables();
  try {
    // Modules may be missing: nothing was tested then, and the next start tries again.
    await nft.commit(rules(NFT_FAMILY[family], plan));
  } catch (error) {
    await nft.close();
    return { outcome: "impossible", reason: `${family}: ${reasonOf(error)}` };
  }
  const enter: Sides["enter"] = (side) => spaces.enter({ client, server }[side]);
  try {
    await exchange(family, plan, enter);
    const met = (await nft.counted(NFT_FAMILY[family], TABLE, "passed")) ?? 0;
    if (met < MESSAGES) return undefined;
    return { outcome: "failed", reason: `${family}: ${met} packets of connections in the flowtable still met rules` };
  } catch (error) {
    return { outcome: "failed", reason: `${family}: ${reasonOf(error)}` };
  } finally {
    await nft.close();
  }
}

async function exchange(family: IPFamily, { server, service }: Plan, enter: Sides["enter"]): Promise<void> {
  const to = { address: service, port: PORTS.service };
  const sides = { family, server: { address: server.address, port: PORTS.server }, to, enter };
  await exchangeTCP(sides);
  await exchangeUDP(sides);
}

function reasonOf(error: unknown): string {
  const code = errorCode(error);
  return `${errorText(error)}${code === undefined ? "" : ` (${code})`}`;
}

/** A client and a server, each with a router's device of its own. The main thread ends up in the router. */
async function prepare(spaces: OwnNamespaces, { client, server, prefixLength, forwarding }: Plan) {
  const [clientSpace, serverSpace, router] = [spaces.make(), spaces.make(), spaces.make()];
  spaces.set(forwarding, "1");
  await configure([
    up("lo"),
    vethTo(clientSpace, DEVICES.client, END),
    vethTo(serverSpace, DEVICES.server, END),
    ...[client, server].flatMap(({ gateway }, at) => {
      const device = at === 0 ? DEVICES.client : DEVICES.server;
      return [up(device), address(device, gateway, prefixLength)];
    }),
  ]);
  for (const [space, end] of [
    [clientSpace, client],
    [serverSpace, server],
  ] as const) {
    spaces.enter(space);
    await configure([up("lo"), up(END), address(END, end.address, prefixLength), defaultRoute(end.gateway)]);
  }
  spaces.enter(router);
  return { client: clientSpace, server: serverSpace, router };
}

/** Both addresses of each connection are translated, as those of a client outside are. */
function rules(family: NftFamily, { server }: Plan): NftBatch {
  const base = (
    name: string,
    type: "filter" | "nat",
    hook: "prerouting" | "forward" | "postrouting",
    priority: number,
  ) => ({ name, base: { type, hook, priority, policy: "accept" } }) as const;
  const flowtable = { name: "fast", priority: 0, devices: Object.values(DEVICES), counter: true } as const;
  const batch = new NftBatch(family, TABLE).addTable().addFlowtable(flowtable);
  batch.addChain(base("in", "nat", "prerouting", -100)).addChain(base("out", "nat", "postrouting", 100));
  batch.addChain(base("passed", "filter", "forward", 0)).addChain(base("offload", "filter", "forward", 10));
  for (const protocol of ["tcp", "udp"] as const) {
    const expressions = [
      ...statements.protocolIs(protocol),
      ...statements.destinationPortIs(PORTS.service),
      ...statements.dnatTo(family, server.address, PORTS.server),
    ];
    batch.addRule("in", { expressions });
  }
  return batch
    .addRule("out", { expressions: [...statements.translatedConnection, ...statements.MASQUERADE] })
    .addRule("passed", { expressions: [{ kind: "counter" }] })
    .addRule("offload", {
      expressions: [...statements.establishedConnection, { kind: "flow-offload", flowtable: flowtable.name }],
    });
}
