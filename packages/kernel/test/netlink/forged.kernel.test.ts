import { closeSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import koffi from "koffi";
import { expect } from "vitest";
import { readNodeAddresses } from "../../src/addresses.ts";
import { GROUPS, LONGEST_MESSAGE, openListening } from "../../src/netlink/listening.ts";
import { openRouteSocket, openTransactionSocket } from "../../src/netlink/socket.ts";
import { generationOf } from "../../src/nftables/exchange.ts";
import { insideTest } from "../kernel-test.ts";

const AF_NETLINK = 16;
const RAW = 3;
const libc = koffi.load(null);
const socket = libc.func("int socket(int, int, int)");
const sendTo = libc.func("long sendto(int, void *, size_t, int, void *, uint32_t)");

function header(length: number, type: number, value: number): Buffer {
  const bytes = Buffer.alloc(36);
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeInt32LE(value, 16);
  return bytes;
}

/** Garbage, one cut off, the end of a listing, a refusal, and a transaction's end. */
const FORGED = [
  Buffer.alloc(40, 0xff),
  header(4096, 0x0a0f, 0),
  header(36, 3, 0),
  header(36, 2, -constants.errno.EPERM),
  header(20, 0x0a0f, 0).subarray(0, 20),
];

/** Sends what looks like answers of the kernel to a socket, or to a group that others listen to. */
function forge({ protocol, port = 0, groups = 0 }: { protocol: number; port?: number; groups?: number }): void {
  const descriptor = socket(AF_NETLINK, RAW, protocol);
  const address = Buffer.alloc(12);
  address.writeUInt16LE(AF_NETLINK, 0);
  address.writeUInt32LE(port, 4);
  address.writeUInt32LE(groups, 8);
  for (const forged of FORGED) sendTo(descriptor, forged, forged.length, 0, address, address.length);
  closeSync(descriptor);
}

/** Of this namespace: `sk Eth Pid Groups …`, the kernel's own without a number. */
function sockets(): readonly { readonly protocol: number; readonly port: number }[] {
  const lines = readFileSync("/proc/thread-self/net/netlink", "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, protocol, port] = line.split(/\s+/).map(Number);
    return protocol !== undefined && port ? [{ protocol, port }] : [];
  });
}

insideTest(
  "what another socket sends in the kernel's place is not taken as an answer, nor as news",
  async ({ runner }) => {
    const [route, netfilter, listening] = [
      await openRouteSocket(),
      await openTransactionSocket(),
      await openListening(GROUPS.nftables),
    ];
    listening.join();
    const room = Buffer.alloc(LONGEST_MESSAGE);
    const heard = () => {
      let bytes = 0;
      for (let got = listening.receive(room); got !== undefined; got = listening.receive(room)) bytes += got.length;
      return bytes;
    };
    const asked = async () => ({
      addresses: await readNodeAddresses(route),
      generation: (await generationOf(netfilter)).generation,
    });
    const before = await asked();
    const open = sockets();
    expect(open).toHaveLength(3);
    for (const one of open) forge(one);
    forge({ protocol: 12, groups: 1 << (GROUPS.nftables[0] - 1) });
    expect(heard()).toBe(0);
    expect(await asked()).toEqual(before);
    await runner.run(["nft", "add", "table", "ip", "other"]);
    expect(heard()).toBeGreaterThan(0);
    await Promise.all([route.close(), netfilter.close()]);
    listening.close();
  },
);
