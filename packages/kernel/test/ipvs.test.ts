import { parseServerCommand, renderServerCommand, type ServerCommand, type VirtualServer } from "@fairlead/netfilter";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { describe, expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import { createIpvsadm } from "../src/index.ts";
import { encodeServerCommand } from "../src/ipvs-messages.ts";
import { done, message, result, scripted } from "./netlink/scripted.ts";

const FAMILY = 0x1c;
/** The kernel's answer to what IPVS's family is. */
const known = message(0x10, attribute(1, Buffer.from([FAMILY, 0])));
const unknown = result(2);

const WEB: VirtualServer = {
  family: "IPv4",
  protocol: "TCP",
  address: "10.96.0.1",
  port: 443,
  scheduler: "mh",
  flags: ["mh-port"],
  persistenceSeconds: 600,
};
const DNS: VirtualServer = {
  family: "IPv6",
  protocol: "UDP",
  address: "fd00:96::a",
  port: 53,
  scheduler: "rr",
  flags: [],
};

const noTool = new FakeRunner({});
const clientOf = (...answers: readonly Buffer[]) => {
  const kernel = scripted(known, ...answers);
  return { kernel, client: createIpvsadm(noTool, { open: kernel.open }) };
};

const addWeb: ServerCommand = { kind: "add-server", server: WEB };
const addDns: ServerCommand = { kind: "add-server", server: DNS };
const commandOf = (line: string) => parseServerCommand(line) ?? expect.fail(`no command: ${line}`);

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** What the kernel reports of a server has the same attributes as the request that adds it. */
function reported(server: VirtualServer): Buffer {
  const request = encodeServerCommand(FAMILY, { kind: "add-server", server });
  return message(FAMILY, request.subarray(20));
}

const number32 = (value: number) => Buffer.from([value & 0xff, value >> 8, 0, 0]);

function destination(
  address: readonly number[],
  port: number,
  fields: readonly [type: number, value: number][],
): Buffer {
  const padded = Buffer.concat([Buffer.from(address), Buffer.alloc(16 - address.length)]);
  const parts = [
    attribute(1, padded),
    attribute(2, Buffer.from([port >> 8, port & 0xff])),
    ...fields.map(([type, value]) => attribute(type, number32(value))),
  ];
  return message(FAMILY, nest(2, ...parts));
}

/** Forwarding, weight, active and inactive connections. */
const pod = destination([10, 144, 1, 5], 8080, [
  [3, 0x100],
  [4, 1],
  [7, 3],
  [8, 260],
]);
const routed = destination([10, 144, 1, 6], 8080, [
  [3, 3],
  [4, 0],
  [7, 0],
  [8, 0],
]);
const POD_READ = { address: "10.144.1.5", port: 8080, weight: 1, forwarding: "masquerade" };
const ROUTED_READ = { address: "10.144.1.6", port: 8080, weight: 0, forwarding: "route" };

describe("virtual servers by netlink", () => {
  test("are read with their destinations", async () => {
    const { kernel, client } = clientOf(Buffer.concat([reported(WEB), reported(DNS)]), done, pod, routed, done, done);
    expect(await collect(client.save())).toEqual([
      { ...WEB, destinations: [POD_READ, ROUTED_READ] },
      { ...DNS, destinations: [] },
    ]);
    expect([kernel.closed(), kernel.unread()]).toEqual([1, 0]);
  });

  test("those by firewall mark are passed over", async () => {
    const marked = message(FAMILY, nest(1, attribute(1, Buffer.from([2, 0])), attribute(5, number32(7))));
    const { client } = clientOf(marked, done);
    expect(await collect(client.save())).toEqual([]);
  });

  test("connections are read of the servers that are there", async () => {
    const { client } = clientOf(pod, done, done);
    const { family, protocol, address, port } = WEB;
    const key = { family, protocol, address, port } as const;
    expect(await collect(client.connections([WEB, DNS]))).toEqual([
      { ...key, destinations: [{ ...POD_READ, active: 3, inactive: 260 }] },
    ]);
  });

  test("commands become requests, 100 to a datagram, of which only the last one is acknowledged", async () => {
    const { kernel, client } = clientOf(result(0, 99), result(0, 0));
    await client.change(Array(101).fill(addWeb));
    const [, first, second] = kernel.sent;
    const single = encodeServerCommand(FAMILY, { kind: "add-server", server: WEB });
    expect([first?.length, second?.length]).toEqual([100 * single.length, single.length]);
    expect([first?.readUInt16LE(6), second?.readUInt16LE(6)]).toEqual([0x1, 0x5]);
    expect(kernel.closed()).toBe(1);
  });

  test("what is refused is named, and what follows counts", async () => {
    const { client } = clientOf(result(17, 0), result(2, 1), result(0, 2));
    const changed = client.change([addWeb, commandOf("-D -t 10.96.0.9:1"), addDns]);
    await expect(changed).rejects.toThrow(
      "2 commands were refused, the first: ipvs: -A -t 10.96.0.1:443 -s mh -p 600 -b mh-port: EEXIST: file already exists; ipvs: -D -t 10.96.0.9:1: ENOENT",
    );
  });

  test.each([
    ["-A -t 10.96.0.1:0 -s rr", "Zero port"],
    ["-a -t 10.96.0.1:443 -r [fd00::1]:1 -m -w 1", "Different address family"],
    ["-A -t 10.96.0.1:443 -s rr -b mh-port", "scheduler rr has no flag mh-port"],
    ["-A -t 10.96.0.1:443 -s rr -o", "unsupported options of a virtual server: -o"],
  ])("it ends at %s: what came before counts", async (line, error) => {
    const { kernel, client } = clientOf(result(0, 0));
    await expect(client.change([addWeb, commandOf(line), addDns])).rejects.toThrow(error);
    expect(kernel.sent).toHaveLength(2);
  });

  test.each([
    ["netlink cannot be had", () => Promise.reject(new Error("no binary"))],
    ["IPVS's module is not loaded", scripted(unknown).open],
  ])("the tool does it where %s", async (_, open) => {
    const written: string[] = [];
    const tool = new FakeRunner({
      ipvsadm: (args, input) => {
        written.push(`${args.join(" ")}: ${input}`);
        return "";
      },
    });
    await createIpvsadm(tool, { open }).change([addWeb]);
    expect(written).toEqual([`--restore: ${renderServerCommand(addWeb)}\n`]);
  });
});
