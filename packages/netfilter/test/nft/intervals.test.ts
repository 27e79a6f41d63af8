import { expect, test } from "vitest";
import { elementKey, intervalElements } from "../../src/nft/index.ts";

test.each<[what: string, cidrs: readonly string[], keys: readonly string[]]>([
  ["none", [], []],
  ["one", ["10.0.0.0/24"], ["0a000000", "0a000100 end"]],
  ["apart", ["10.0.0.0/24", "10.0.2.0/32"], ["0a000000", "0a000100 end", "0a000200", "0a000201 end"]],
  ["one after the other", ["10.0.1.0/24", "10.0.2.0/23"], ["0a000100", "0a000400 end"]],
  ["up to the highest address", ["255.0.0.0/8"], ["ff000000"]],
  ["all", ["0.0.0.0/1", "128.0.0.0/1"], ["00000000"]],
  ["IPv6", ["fd00::/64"], ["fd000000000000000000000000000000", "fd000000000000010000000000000000 end"]],
])("%s", (_what, cidrs, keys) => {
  expect(intervalElements(cidrs).map(elementKey)).toEqual(keys);
});
