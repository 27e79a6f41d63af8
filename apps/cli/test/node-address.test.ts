import { expect, test } from "vitest";
import { nodeAddressOption } from "../src/inputs/node-address-option.ts";

const { read } = nodeAddressOption("An address.");

test("addresses are given one by one or with commas between, and in one spelling", () => {
  expect(read(["192.0.2.10,2001:DB8:0::10", "192.0.2.11"])).toEqual(["192.0.2.10", "2001:db8::10", "192.0.2.11"]);
  expect(read([])).toEqual([]);
});

test.each(["node-a", "192.0.2", "192.0.2.1/24", "192.0.2.1,"])("%s is told to be none", (given) => {
  expect(() => read([given])).toThrow(/^--node-address=.*: must be an address, such as 192\.0\.2\.10 or 2001:db8::10$/);
});
