import fc from "fast-check";
import { expect, test } from "vitest";
import { Attributes, AttributeWriter } from "../../src/netlink/index.ts";
import { decodeTrace, nftNumbers } from "../../src/nft/index.ts";

const { TRACE } = nftNumbers;

function told(write: (to: AttributeWriter) => void) {
  const writer = new AttributeWriter();
  writer.text(TRACE.table, "kube-proxy").text(TRACE.chain, "services").u32(TRACE.id, 7);
  write(writer);
  return decodeTrace(new Attributes(Buffer.from(writer.bytes())), 2);
}

const IPV6 = `60000000001406ff${"fd000144".padEnd(31, "0")}1${"fd000096".padEnd(31, "0")}a`;

test("a policy, with the packet as it is by then", () => {
  const event = told((to) => {
    to.u32(TRACE.type, 1).u32(TRACE.policy, 0).u32(TRACE.inInterface, 3);
    to.hex(TRACE.network, IPV6).hex(TRACE.transport, "9c400050");
  });
  expect(event).toEqual({
    id: 7,
    family: 2,
    table: "kube-proxy",
    chain: "services",
    kind: "policy",
    verdict: { kind: "drop" },
    packet: {
      inInterface: 3,
      protocol: 6,
      source: "fd00:144::1",
      sport: 40_000,
      destination: "fd00:96::a",
      dport: 80,
    },
  });
});

test("a step of no rule, or of a kind that is not known, is none", () => {
  expect(told((to) => to.u32(TRACE.type, 3))).toBeUndefined();
  expect(told((to) => to.u32(TRACE.type, 9))).toBeUndefined();
});

test("headers of any bytes are taken for a packet, or for none", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 48 }), fc.uint8Array({ maxLength: 8 }), (network, transport) => {
      const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
      const event = told((to) =>
        to.u32(TRACE.type, 1).hex(TRACE.network, hex(network)).hex(TRACE.transport, hex(transport)),
      );
      const length = { 4: 20, 6: 40 }[(network[0] ?? 0) >> 4] ?? Number.POSITIVE_INFINITY;
      expect(event?.packet !== undefined).toBe(network.length >= length);
    }),
  );
});
