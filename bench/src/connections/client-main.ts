/**
 * Opens connections to one address after the other, which nothing listens on: the kernel takes each way through the
 * rules once and refuses it at once. Usage: client-main.ts COUNT PORT ADDRESS…; prints `ConnectionTimes` as JSON.
 */
import koffi from "koffi";

export interface ConnectionTimes {
  /** Microseconds of the processor for each. */
  readonly cpu: number;
  /** Of the clock, for each. */
  readonly wall: number;
}

const [AF_INET, SOCK_STREAM, ECONNREFUSED] = [2, 1, 111];
const [, , count = "0", port = "0", ...addresses] = process.argv;

const libc = koffi.load(null);
const socket = libc.func("int socket(int, int, int)");
const connect = libc.func("int connect(int, void *, uint32_t)");
const close = libc.func("int close(int)");

/** A `struct sockaddr_in`. */
const targets = addresses.map((address) => {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16LE(AF_INET, 0);
  bytes.writeUInt16BE(Number(port), 2);
  for (const [at, part] of address.split(".").entries()) bytes[4 + at] = Number(part);
  return bytes;
});

const began = { cpu: process.threadCpuUsage(), wall: performance.now() };
for (let done = 0; done < Number(count); done++) {
  const descriptor = socket(AF_INET, SOCK_STREAM, 0);
  const refused = connect(descriptor, targets[done % targets.length], 16) !== 0;
  if (!refused || koffi.errno() !== ECONNREFUSED) {
    throw new Error(`${addresses[done % addresses.length]}: a connection was not refused: errno ${koffi.errno()}`);
  }
  close(descriptor);
}
const { user, system } = process.threadCpuUsage(began.cpu);
const times: ConnectionTimes = {
  cpu: (user + system) / Number(count),
  wall: ((performance.now() - began.wall) * 1000) / Number(count),
};
console.log(JSON.stringify(times));
