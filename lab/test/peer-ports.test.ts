import { expect, test } from "vitest";
import { type PortRange, portsBeside } from "../src/peer/requests.ts";

const RANGES: readonly (readonly [string, PortRange, PortRange])[] = [
  ["the kernel's default", [32_768, 60_999], [11_000, 29_999]],
  ["the one of the lab's namespaces", [10_000, 29_999], [33_000, 60_999]],
];

test.each(RANGES)("a peer's source ports are not what the kernel picks: %s", (_, kernel, wanted) => {
  expect(portsBeside(kernel)).toEqual(wanted);
});
