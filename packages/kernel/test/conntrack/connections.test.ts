import { expect, test } from "vitest";
import { FakeRunner } from "../../src/fake/index.ts";
import { listConnections } from "../../src/index.ts";

test("connections are listed with both directions, their addresses in canonical form", async () => {
  const line =
    "tcp      6 117 SYN_SENT src=fd00:0198:0051:0000:0000:0000:0000:0007 dst=fd00:10:96::71 sport=40000 dport=80 [UNREPLIED] src=fd00:144::1:5 dst=fd00:201::10 sport=8080 dport=61000 mark=0 use=1";
  const runner = new FakeRunner({ conntrack: (args) => (args.includes("ipv6") ? `${line}\nno entry\n` : "") });
  const found = [];
  for await (const connection of listConnections(runner, "IPv6", "TCP")) found.push(connection);
  expect(found).toEqual([
    {
      ...{ family: "IPv6", protocol: "TCP", state: "SYN_SENT", replied: false, expires: 117 },
      original: { source: "fd00:198:51::7", destination: "fd00:10:96::71", sourcePort: 40_000, destinationPort: 80 },
      reply: { source: "fd00:144::1:5", destination: "fd00:201::10", sourcePort: 8080, destinationPort: 61_000 },
    },
  ]);
});
