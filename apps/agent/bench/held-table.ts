/**
 * What a shadow's reading of a table as kube-proxy writes it costs, whole and after a change, and what stays in memory.
 * In a network namespace of its own, as root:
 *
 *     unshare -n node --conditions=@fairlead/source --expose-gc bench/held-table.ts [services] [endpoints]
 */
import { createRunner, openKernelReader, openNftables } from "@fairlead/kernel";
import { addressHex, hexOf, hostHex, NftBatch, padded, portHex, statements } from "@fairlead/netfilter/nft";

const [services = 1_000, endpoints = 10] = process.argv.slice(2).map(Number);
const TABLE = "kube-proxy";
const AT_ONCE = 500;
const CHANGES = 5;

const nft = await openNftables();
await nft.commit(
  new NftBatch("ip", TABLE)
    .addTable()
    .addSet({ name: "service-ips", key: ["ipv4_addr", "inet_proto", "inet_service"], data: "verdict", flags: [] })
    .addChain({ name: "services" })
    .addRule("services", {
      expressions: statements.lookUp("ip", ["daddr", "l4proto", "dport"], "service-ips", "verdict"),
    }),
);
for (let from = 0; from < services; from += AT_ONCE) {
  const batch = new NftBatch("ip", TABLE, 1 << 20);
  for (let at = from; at < Math.min(from + AT_ONCE, services); at++) addService(batch, at);
  await nft.commit(batch);
}
const reader = openKernelReader(createRunner());
globalThis.gc?.();
const before = process.memoryUsage().heapUsed;
await measure("whole");
globalThis.gc?.();
console.log(`kept: ${((process.memoryUsage().heapUsed - before) / 1e6).toFixed(1)} MB of heap`);
for (let change = 0; change < CHANGES; change++) {
  const batch = new NftBatch("ip", TABLE);
  addService(batch, services + change);
  await nft.commit(batch);
  await measure("a service more");
}
await reader.close();
await nft.close();

async function measure(what: string): Promise<void> {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  const table = await reader.nftTable("IPv4", TABLE);
  const { user, system } = process.cpuUsage(cpu);
  const milliseconds = (performance.now() - began).toFixed(1);
  console.log(
    `${what}: ${((user + system) / 1000).toFixed(1)} ms CPU, ${milliseconds} ms, ${table?.chains.size} chains`,
  );
}

/** A chain and a map of endpoints for the service, and a chain for each endpoint. */
function addService(batch: NftBatch, at: number): void {
  const service = `service-${at}-default/service-${at}/tcp/main`;
  const map = `__map${at}`;
  const chains = Array.from({ length: endpoints }, (_, number) => `endpoint-${number}-${service}`);
  for (const [number, name] of chains.entries()) {
    batch.addChain({ name });
    batch.addRule(name, {
      expressions: statements.dnatTo("ip", address(144, at * endpoints + number), 8080).slice(0, 2),
    });
    batch.addRule(name, { expressions: [...statements.protocolIs("tcp"), ...statements.verdict({ kind: "accept" })] });
  }
  batch.addChain({ name: service });
  batch.addSet({ name: map, key: ["mark"], data: "verdict", flags: ["constant"] });
  batch.addElements(
    map,
    chains.map((chain, number) => ({ key: hostHex(number), value: { kind: "goto", chain } as const })),
  );
  batch.addRule(service, {
    expressions: [
      { kind: "numgen", modulus: endpoints, to: 0 },
      { kind: "lookup", set: map, from: 0, to: "verdict" },
    ],
  });
  const key = padded(addressHex(address(96, at))) + padded(hexOf([6])) + padded(portHex(80));
  batch.addElements("service-ips", [{ key, value: { kind: "goto", chain: service } }]);
}

function address(second: number, at: number): string {
  return `10.${second + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`;
}
