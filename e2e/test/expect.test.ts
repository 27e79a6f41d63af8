import type { Ending } from "@fairlead/lab/peer/protocol";
import type { Client } from "@fairlead/lab/provider/cluster";
import { describe, expect, test } from "vitest";
import { expectAnswers, expectBytes, expectLost, expectRefused, expectUntouched } from "../src/specs/expect.ts";
import { expectNoTrace } from "../src/specs/multi-cni/untouched.ts";

/** Answers each request with the next of these, over and over. */
function client(...endings: readonly [Ending, ...Ending[]]): Client {
  let asked = 0;
  const next = () => ({ at: 0, ms: 0, ...(endings[asked++ % endings.length] ?? endings[0]) });
  return { name: "caller", addresses: {}, send: async ({ count }) => Array.from({ length: count }, next) };
}

const answer = (server: string, remote = "10.0.0.9:1000", padding = 0): Ending => {
  return { kind: "answer", sender: "", local: "", server, remote, padding };
};
const LOST: Ending = { kind: "lost" };
const REFUSED: Ending = { kind: "refused" };
const UNREACHABLE: Ending = { kind: "error", code: "EHOSTUNREACH" };
/** What is wrong stays wrong, so it is not waited for. */
const target = { to: "10.96.0.1", port: 80, withinMs: 0 };
const [a, b] = [{ name: "a" }, { name: "b" }];

const asked = {
  answers: (from: Client) => expectAnswers(from, target, { by: [a, b] }),
  "answers that see": (from: Client) => expectAnswers(from, target, { by: [a], seen: "10.0.0.9" }),
  "answers that do not see": (from: Client) => expectAnswers(from, target, { by: [a], notSeen: "10.0.0.9" }),
  refused: (from: Client) => expectRefused(from, target),
  lost: (from: Client) => expectLost(from, target),
  untouched: (from: Client) => expectUntouched(from, target),
  bytes: (from: Client) => expectBytes(from, target, 4),
} as const;

describe("what specs ask for is not so", () => {
  test.each<[keyof typeof asked, string, Client]>([
    ["answers", "nothing answers", client(LOST)],
    ["answers", "it is refused", client(REFUSED)],
    ["answers", "another one answers", client(answer("c"))],
    ["answers", "one of two never answers", client(answer("a"))],
    ["answers", "one of many requests is lost", client(answer("a"), answer("b"), answer("a"), LOST)],
    ["answers that see", "the source is hidden", client(answer("a", "10.0.0.1:1000"))],
    ["answers that do not see", "the source is kept", client(answer("a"))],
    ["refused", "it answers", client(answer("a"))],
    ["refused", "it is lost", client(LOST)],
    ["lost", "it answers", client(answer("a"))],
    ["lost", "it is refused", client(REFUSED)],
    ["lost", "some are refused", client(LOST, LOST, LOST, REFUSED)],
    ["untouched", "it answers", client(answer("a"))],
    ["untouched", "it is refused, as by a rule", client(REFUSED)],
    ["bytes", "fewer come", client(answer("a", "", 3))],
    ["bytes", "none come", client(LOST)],
  ])("%s: %s", (what, _, from) => expect(asked[what](from)).rejects.toThrow(/^wanted /));
});

test.each<[keyof typeof asked, Client]>([
  ["answers", client(answer("a"), answer("b"))],
  ["answers that see", client(answer("a"))],
  ["answers that do not see", client(answer("a", "10.0.0.1:1000"))],
  ["refused", client(REFUSED)],
  ["lost", client(LOST)],
  ["untouched", client(UNREACHABLE)],
  ["bytes", client(answer("a", "", 4))],
])("%s, and it is so", (what, from) => expect(asked[what](from)).resolves.toBeUndefined());

describe("no trace of an address", () => {
  const cluster = (stdout: string) => ({ cluster: { nodes: [{ run: async () => ({ stdout, stderr: "" }) }] } });

  test.each([
    "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.144.1.5:80",
    "-A KUBE-SEP-X -j DNAT --to-destination 10.96.0.1:80",
    "add KUBE-CLUSTER-IP 10.96.0.1,tcp:80",
    "    elements = { 10.96.0.1 . tcp . 80 : drop }",
  ])("there is one in %s", (line) =>
    expect(expectNoTrace(cluster(`before\n${line}\n`), "10.96.0.1", 0)).rejects.toThrow(line),
  );

  test.each([
    "-A KUBE-SERVICES -d 10.96.0.10/32 -j DNAT",
    "add KUBE-CLUSTER-IP 110.96.0.1,tcp:80",
    "\n\tset foreign-cluster-ips {\n\t\telements = { 10.96.0.1 }\n\t}\n",
  ])("there is none in %j", (text) => expect(expectNoTrace(cluster(text), "10.96.0.1", 0)).resolves.toBeUndefined());
});
