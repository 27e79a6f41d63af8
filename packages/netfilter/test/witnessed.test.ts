import { expect, test } from "vitest";
import { type IptablesPort, witnessed } from "../src/index.ts";

const port = (variant: IptablesPort["variant"], states: readonly (string | undefined)[]) => {
  const left = [...states];
  const glance = async () => {
    const state = left.shift();
    return state === undefined ? undefined : { state };
  };
  return { family: "IPv6", variant, glance } as const;
};
const write = async () => "done";

test("nft: a generation that is as it was after writing is an error", async () => {
  await expect(witnessed(port("nft", ["7", "7"]), write)).rejects.toThrow(
    "iptables-restore (IPv6) reported success, but the kernel's rules are as they were before",
  );
});

test.each([
  ["another generation", port("nft", ["7", "8"])],
  ["a kernel that cannot be asked", port("nft", [])],
  ["one that could be asked before only", port("nft", ["7"])],
  ["the legacy variant, which may hold the same rules already", port("legacy", ["7", "7"])],
  ["no way to ask", { family: "IPv4", variant: "nft" } as const],
])("%s is none", async (_, asked) => {
  expect(await witnessed(asked, write)).toBe("done");
});

test("nor is one after writing that changes nothing", async () => {
  expect(await witnessed(port("nft", ["7", "7"]), write, (result) => result !== "done")).toBe("done");
});
