import { findAttribute } from "@fairlead/netfilter/netlink";
import { withCommandFile } from "../../src/conntrack/conntrack.ts";
import { decodeEntry, encodeDump, entry } from "../../src/conntrack/messages.ts";
import { createRunner } from "../../src/index.ts";
import { datagrams } from "../../src/netlink/requests.ts";
import { DATAGRAM_SIZE, openNetfilterSocket } from "../../src/netlink/socket.ts";

/** Runs in a namespace of its own: reads the table while thousands of entries go and come, and prints what it saw. */
const runner = createRunner();
const STEADY = 6_000;
const STEADY_PORT = 53;
const MOVING = 4_000;

/** Makes so many entries, each of another client. */
async function insert(count: number, port: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, number) => {
    const source = `10.144.${number >> 8}.${number & 0xff}`;
    const original = `-s ${source} -d 10.96.0.10 --sport 20000 --dport ${port}`;
    const reply = `-r 10.144.255.1 -q ${source} --reply-port-src ${port} --reply-port-dst 20000`;
    return `-I -p udp -t 1000 ${original} ${reply}\n`;
  });
  await withCommandFile(lines, (path) => silently("-R", path));
}

/** It prints each entry. */
function silently(...args: readonly string[]) {
  return runner.run(["sh", "-c", 'exec conntrack "$@" >/dev/null', "sh", ...args]);
}

await insert(STEADY, STEADY_PORT);
await insert(MOVING, 54);
const socket = await openNetfilterSocket();
const room = Buffer.alloc(DATAGRAM_SIZE);
/** The original direction of each: the client says which it is. */
const seen = new Set<string>();
let interrupted = 0;
let parts = 0;
for await (const part of datagrams(socket, encodeDump("IPv4", "UDP"), "reading conntrack entries", () => room)) {
  parts += 1;
  if (part.interrupted) interrupted += 1;
  for (const message of part.messages) {
    const flow = decodeEntry(part.bytes, message, "IPv4", "UDP");
    const original = findAttribute(part.bytes, message, entry.original);
    if (flow?.originalPort !== STEADY_PORT || original === undefined) continue;
    seen.add(part.bytes.subarray(original.start, original.end).toString("hex"));
  }
  if (parts === 5) await silently("-D", "-p", "udp", "--dport", "54");
  if (parts === 10) await insert(MOVING, 55);
}
await socket.close();
process.stdout.write(JSON.stringify({ parts, interrupted, steady: seen.size }));
