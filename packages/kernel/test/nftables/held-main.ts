import { VirtualClock } from "@fairlead/base/testing";
import { createRunner, openNftables } from "../../src/index.ts";
import { openListening } from "../../src/netlink/listening.ts";
import { HeldTable } from "../../src/nftables/held-table.ts";

/** Runs in a namespace of its own: after each thing that `nft` does a copy that follows is compared with the whole. */
const NAME = "kube-proxy";
const nft = await openNftables();
const runner = createRunner();
const read = () => nft.table("ip", NAME);
let readings = 0;
const held = new HeldTable({
  family: "ip",
  name: NAME,
  read: () => {
    readings += 1;
    return read();
  },
  generation: () => nft.generation(),
  listen: openListening,
  clock: new VirtualClock(),
});

/** Each with the readings of the whole that it takes. */
const WORK: readonly (readonly [script: string, readings: number])[] = [
  [`add table ip ${NAME}; add chain ip ${NAME} a; add chain ip ${NAME} b { type nat hook output priority -100; }`, 1],
  [`add rule ip ${NAME} a ip saddr { 10.0.0.1, 10.0.0.2 } counter accept; add rule ip ${NAME} a drop`, 0],
  [`insert rule ip ${NAME} a ct state new return comment "first"; add rule ip ${NAME} b jump a`, 0],
  [`add rule ip ${NAME} a index 1 tcp dport vmap { 80 : accept, 443 : drop }`, 0],
  [`add set ip ${NAME} s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1 } }`, 0],
  [`add element ip ${NAME} s { 172.16.0.0/12 }; delete element ip ${NAME} s { 10.0.0.0/8 }`, 0],
  [`add map ip ${NAME} m { type ipv4_addr . inet_service : verdict; }`, 0],
  [`add element ip ${NAME} m { 10.96.0.1 . 80 comment "web" : goto a, 10.96.0.2 . 80 : drop }`, 0],
  ["add table ip other; add chain ip other x; add table ip6 kube-proxy; delete table ip other", 0],
  [`flush chain ip ${NAME} a; add rule ip ${NAME} a accept; flush set ip ${NAME} s`, 0],
  [`add set ip ${NAME} t { type ipv4_addr; flags timeout; timeout 3h; size 100; }; delete set ip ${NAME} s`, 0],
  [`chain ip ${NAME} b { type nat hook output priority -100; policy drop; }`, 0],
  [`insert rule ip ${NAME} a drop; insert rule ip ${NAME} a return`, 1],
  [`rename chain ip ${NAME} a c`, 1],
  [`delete table ip ${NAME}; add table ip ${NAME}`, 1],
  [`delete table ip ${NAME}`, 1],
];

const differences: unknown[] = [];
for (const [script, wanted] of WORK) {
  await runner.run(["nft", "-f", "-"], { input: `${script.replaceAll(/; (?=add|insert|delete|flush)/g, "\n")}\n` });
  readings = 0;
  const [copy, whole] = [text(await held.table()), text(await read())];
  if (copy !== whole || readings !== wanted) differences.push({ script, readings, copy, whole });
}
held.close();
await nft.close();
process.stdout.write(JSON.stringify(differences));

function text(table: Awaited<ReturnType<typeof read>>): string {
  const sorted = (of: Iterable<readonly [string, unknown]> = []) =>
    [...of].map(([name, one]) => [name, one] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  const sets = Array.from(
    table?.sets ?? [],
    ([name, { elements, ...set }]) => [name, { ...set, all: sorted(elements) }] as const,
  );
  const plain = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  return JSON.stringify({ ...table, chains: sorted(table?.chains), sets: sorted(sets) }, plain);
}
