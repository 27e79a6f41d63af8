import { expect, test } from "vitest";
import { agentVerdict, modesText } from "../src/page/findings.ts";
import type { NodeRow } from "../src/protocol.ts";

const answered = (at: number, healthy = true) => {
  return { state: "read", at, tookMs: 1, value: { mode: "iptables", healthy } } as const;
};
const compared = (at: number) => ({ state: "read", at, tookMs: 1, value: [] }) as const;
const failed = (at: number) => ({ state: "failed", at, tookMs: 1, error: "no such container" }) as const;

test.each<[string, Pick<NodeRow, "agent" | "kernel">, string]>([
  ["nothing asked yet", {}, "not asked"],
  ["an answer", { agent: answered(1_000), kernel: compared(2_000) }, "healthy"],
  ["no answer", { agent: failed(2_000), kernel: compared(1_000) }, "stopped or not reachable"],
  ["a read that fails after the answer", { agent: answered(1_000), kernel: failed(2_000) }, "unknown"],
  ["an answer after the read that failed", { agent: answered(3_000), kernel: failed(2_000) }, "healthy"],
  ["an answer that it is not healthy", { agent: answered(1_000, false), kernel: compared(1_000) }, "not healthy"],
])("the agent's badge after %s", (_, row, text) => {
  expect(agentVerdict(row).text).toBe(text);
});

test("the header names the modes of all nodes that were asked, not that of the first one", () => {
  const row = (node: string, mode: string): NodeRow => ({
    ...{ node, addresses: [] },
    agent: { state: "read", at: 1, tookMs: 1, value: { mode, healthy: true } },
  });
  expect(modesText([], "iptables")).toBe("iptables mode");
  expect(modesText([row("a", "nftables"), { node: "b", addresses: [] }], "iptables")).toBe("nftables mode");
  expect(modesText([row("a", "nftables"), row("b", "iptables"), row("c", "nftables")], "iptables")).toBe(
    "iptables and nftables mode",
  );
});
