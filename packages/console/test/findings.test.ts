import { expect, test } from "vitest";
import { agentVerdict, kernelVerdict, modesText } from "../src/page/findings.ts";
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

test("what is asked for and has no answer is neither good nor bad", () => {
  expect(kernelVerdict({ state: "asking", at: 1 })).toEqual({ tone: "plain", text: "asking …" });
  expect(agentVerdict({ agent: { state: "asking", at: 1 } })).toEqual({ tone: "plain", text: "asking …" });
});

test.each<[readonly (string | undefined)[], string]>([
  [["iptables"], "iptables mode"],
  [[undefined, undefined, undefined], "ipvs mode on 1 of 3 nodes"],
  [["iptables", "iptables"], "iptables mode"],
  [["nftables", "iptables", "nftables"], "iptables on 1, nftables on 2 nodes"],
  [["nftables", "iptables", undefined], "iptables on 1, nftables on 1 of 3 nodes"],
])("the header of agents in the modes %j: %s", (modes, text) => {
  const nodes = modes.map((mode, at): NodeRow => {
    const agent = mode === undefined ? undefined : ({ state: "read", at: 1, tookMs: 1, value: { mode } } as const);
    return { node: `node-${at}`, addresses: [], ...(agent && { agent }) };
  });
  expect(modesText(nodes, { node: "node-0", mode: "ipvs" })).toBe(text);
});
