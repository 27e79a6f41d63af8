import { attribute } from "@fairlead/netfilter/netlink";
import { expect, test } from "vitest";
import { decodeConnection } from "../../src/conntrack/decode-connection.ts";
import { original, reply } from "./tuples.ts";

/** IPS_SEEN_REPLY | IPS_CONFIRMED, IPS_OFFLOAD, IPS_HW_OFFLOAD. */
test.each([
  [0x000a, undefined],
  [0x400a, true],
  [0xc00a, true],
])("status %i: in a flowtable %s", (status, offloaded) => {
  const bits = Buffer.alloc(4);
  bits.writeUInt32BE(status);
  const head = Buffer.from([2, 0, 0, 0]);
  const bytes = Buffer.concat([head, original, reply, attribute(3, bits)]);
  const found = decodeConnection(bytes, { start: head.length, end: bytes.length });
  expect(found).toMatchObject({ family: "IPv4", protocol: "UDP", replied: true });
  expect(found?.offloaded).toBe(offloaded);
});
