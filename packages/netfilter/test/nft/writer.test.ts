import { expect, test } from "vitest";
import { AttributeWriter } from "../../src/netlink/attributes.ts";

test("attributes are padded with zeros, also where the buffer had to grow", () => {
  const writer = new AttributeWriter(8);
  writer.nest(1, (inner) => inner.hex(2, "abcd").u8(3, 7)).text(4, "x");
  expect(writer.bytes().toString("hex")).toBe("1400018006000200abcd00000500030007000000060004007800".padEnd(56, "0"));
});

test("what is longer than an attribute can be is refused", () => {
  expect(() => new AttributeWriter().raw(1, new Uint8Array(65_532))).toThrow("an attribute of 65536 bytes; 65535");
  expect(new AttributeWriter().raw(1, new Uint8Array(65_531)).length).toBe(65_536);
  const half = new Uint8Array(40_000);
  expect(() => new AttributeWriter().nest(1, (inner) => inner.raw(2, half).raw(2, half))).toThrow(RangeError);
});
