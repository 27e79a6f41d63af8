/** Whether this kernel's flowtables forward: two namespaces, a router between them, and exchanges by TCP and UDP. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { addressBytes, errorCode, errorText, IP_FAMILIES, type IPFamily } from "@fairlead/base";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { NFT_FAMILY, NftBatch, type NftFamily, statements } from "@fairlead/netfilter/nft";
import { CREATE, LINK_PART } from "./links.ts";
import { loadKoffi, NetlinkError } from "./netlink/listening.ts";
import { ADDRESS_FAMILIES, encodeMessage, FLAGS } from "./netlink/messages.ts";
import { sendAcknowledged } from "./netlink/requests.ts";
import { openRouteSocket } from "./netlink/socket.ts";
import { openNftables } from "./nftables/open.ts";

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

const PORTS = { service: 80, server: 8080 } as const;
const TABLE = "fairlead-fast-path-test";
const DEVICES = { client: "to-client", server: "to-server" } as const;
const END = "eth0";

interface Place {
  readonly address: string;
  readonly port: number;
}

/** Enters the client's network namespace, the server's. */
interface Sides {
  readonly family: IPFamily;
  readonly server: Place;
  readonly to: Place;
  readonly enter: (side: "client" | "server") => void;
}

/** Small messages, one after the answer to the one before. */
const MESSAGES = 100;

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

/** Bytes in one piece: more than one packet has, so that segmentation has its part. */
const BULK = 1 << 20;

/**
 * Sends over one TCP connection and has everything back.
 *
 * @throws Error for an answer that is another one; waits where none comes
 */
async function exchangeTCP({ server, to, enter }: Sides): Promise<void> {
  enter("server");
  const echo = createServer((socket) => socket.pipe(socket)).listen(server.port, server.address);
  await once(echo, "listening");
  enter("client");
  const socket = connect(to.port, to.address);
  await once(socket, "connect");
  const received: Buffer[] = [];
  let length = 0;
  let enough = () => {};
  socket.on("data", (bytes: Buffer) => {
    received.push(bytes);
    length += bytes.length;
    enough();
  });
  const arrived = (wanted: number) =>
    new Promise<void>((resolve) => {
      enough = () => length >= wanted && resolve();
      enough();
    });
  const sent: Buffer[] = [];
  const say = async (bytes: Buffer) => {
    sent.push(bytes);
    socket.write(bytes);
    await arrived(sent.reduce((sum, one) => sum + one.length, 0));
  };
  for (let message = 0; message < MESSAGES; message += 1) await say(Buffer.from(`message ${message}`));
  await say(Buffer.alloc(BULK, "0123456789abcdef"));
  socket.destroy();
  echo.close();
  if (!Buffer.concat(received).equals(Buffer.concat(sent))) throw new Error("TCP came back changed");
}

/**
 * Sends datagrams and has each back.
 *
 * @throws Error for an answer that is another one; waits where none comes
 */
async function exchangeUDP({ family, server, to, enter }: Sides): Promise<void> {
  const type = family === "IPv4" ? "udp4" : "udp6";
  enter("server");
  const echo = createSocket(type, (bytes, from) => echo.send(bytes, from.port, from.address));
  echo.bind(server.port, server.address);
  await once(echo, "listening");
  enter("client");
  const socket = createSocket(type);
  socket.bind();
  await once(socket, "listening");
  for (let message = 0; message < MESSAGES; message += 1) {
    const text = `message ${message}`;
    const answer = once(socket, "message");
    socket.send(text, to.port, to.address);
    const [bytes] = await answer;
    if (String(bytes) !== text) throw new Error(`UDP: "${String(bytes)}" came back for "${text}"`);
  }
  socket.close();
  echo.close();
}

/** Messages of rtnetlink and what they have (linux/rtnetlink.h, linux/if_link.h, linux/veth.h, linux/if_addr.h). */
const TYPES = { newLink: 16, newAddress: 20, newRoute: 24 } as const;
const PART = { data: 2, peer: 1, namespaceFile: 28, local: 2, address: 1, gateway: 5 } as const;
/** RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE and RTN_UNICAST in rtmsg. */
const ROUTE = { table: 254, protocol: 4, scope: 0, type: 1 } as const;
const UP = 1;
/** IFA_F_NODAD: usable at once. */
const NO_DAD = 2;

/** Devices, addresses and routes of the network namespace that the main thread is in. */
async function configure(what: readonly Step[]): Promise<void> {
  const socket = await openRouteSocket();
  try {
    // A device has its number once it is there: one after the other.
    for (const step of what) await sendAcknowledged(socket, [await step()], "preparing the test's network");
  } finally {
    await socket.close();
  }
}

type Step = () => Promise<Buffer>;

/** @param namespace descriptor of the one that the other end goes to */
function vethTo(namespace: number, name: string, peer: string): Step {
  const file = Buffer.alloc(4);
  file.writeInt32LE(namespace);
  const other = Buffer.concat([Buffer.alloc(16), nameOf(peer), attribute(PART.namespaceFile, file)]);
  const info = nest(
    LINK_PART.info,
    attribute(LINK_PART.kind, Buffer.from("veth\0")),
    nest(PART.data, attribute(PART.peer, other)),
  );
  const attributes = Buffer.concat([nameOf(name), info]);
  return async () => encodeMessage(TYPES.newLink, FLAGS.request | CREATE, Buffer.alloc(16), attributes);
}

function up(name: string): Step {
  return async () => {
    const header = Buffer.alloc(16);
    header.writeInt32LE(await indexOf(name), 4);
    header.writeUInt32LE(UP, 8);
    header.writeUInt32LE(UP, 12);
    return encodeMessage(TYPES.newLink, FLAGS.request, header, Buffer.alloc(0));
  };
}

function address(device: string, text: string, prefixLength: number): Step {
  return async () => {
    const bytes = addressBytes(text);
    const header = Buffer.alloc(8);
    header.set([familyOf(bytes), prefixLength, NO_DAD, 0]);
    header.writeUInt32LE(await indexOf(device), 4);
    const attributes = Buffer.concat([attribute(PART.local, bytes), attribute(PART.address, bytes)]);
    return encodeMessage(TYPES.newAddress, FLAGS.request | CREATE, header, attributes);
  };
}

function defaultRoute(gateway: string): Step {
  const bytes = addressBytes(gateway);
  const header = [familyOf(bytes), 0, 0, 0, ROUTE.table, ROUTE.protocol, ROUTE.scope, ROUTE.type, 0, 0, 0, 0];
  return async () => encodeMessage(TYPES.newRoute, FLAGS.request | CREATE, header, attribute(PART.gateway, bytes));
}

async function indexOf(name: string): Promise<number> {
  const koffi = await loadKoffi();
  const index: number = koffi.load(null).func("uint32_t if_nametoindex(const char *)")(name);
  if (index === 0) throw new Error(`there is no device ${name}`);
  return index;
}

function familyOf(bytes: Uint8Array): number {
  return bytes.length === 4 ? ADDRESS_FAMILIES.IPv4 : ADDRESS_FAMILIES.IPv6;
}

function nameOf(device: string): Buffer {
  return attribute(LINK_PART.name, Buffer.from(`${device}\0`));
}

/** CLONE_NEWNET of unshare(2). */
const NETWORK = 0x40000000;
const OWN = "/proc/thread-self/ns/net";

interface Calls {
  readonly unshare: (flags: number) => number;
  readonly setns: (descriptor: number, kind: number) => number;
  readonly errno: () => number;
}

/**
 * Network namespaces of this process only: the main thread is in one of them at a time. What it opens there, sockets
 * included, stays there. They go with the process.
 */
class OwnNamespaces {
  readonly #calls: Calls;
  readonly #open: number[] = [];

  private constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** @throws NativeCodeError when there is no compiled code for this machine */
  static async open(): Promise<OwnNamespaces> {
    const koffi = await loadKoffi();
    const libc = koffi.load(null);
    const [unshare, setns] = [libc.func("int unshare(int)"), libc.func("int setns(int, int)")];
    return new OwnNamespaces({ unshare, setns, errno: () => koffi.errno() });
  }

  /**
   * Makes a namespace and enters it.
   *
   * @returns its descriptor, by which `enter` returns to it and devices are moved there
   * @throws NetlinkError with the code EPERM for a process without CAP_SYS_ADMIN
   */
  make(): number {
    this.#check("making a network namespace", this.#calls.unshare(NETWORK));
    const descriptor = openSync(OWN, "r");
    this.#open.push(descriptor);
    return descriptor;
  }

  enter(descriptor: number): void {
    this.#check("entering a network namespace", this.#calls.setns(descriptor, NETWORK));
  }

  /** Sets a key of /proc/sys in the namespace that the main thread is in: only its own reads and writes go there. */
  set(key: string, value: string): void {
    writeFileSync(`/proc/sys/${key}`, value);
  }

  #check(what: string, result: number): void {
    if (result !== 0) throw new NetlinkError(what, this.#calls.errno());
  }

  close(): void {
    for (const descriptor of this.#open.splice(0)) closeSync(descriptor);
  }
}
