import { expect, test } from "vitest";
import { complaintOf } from "../../src/commands/connectivity/pod/judge.ts";
import type { Answer, Expected } from "../../src/commands/connectivity/pod/probe.ts";
import { reportText } from "../../src/commands/connectivity/table.ts";
import { plain } from "../../src/frame/style.ts";

const OWN = ["10.144.1.9"];
const from = (by: string, seen = "10.144.1.9"): Answer => ({ by, seen });
const LATE: Answer = { error: "timeout" };
const REFUSED: Answer = { error: "ECONNREFUSED" };
const each: Expected = { kind: "answered", by: ["a", "b"], spread: "each" };

test.each<readonly [what: string, expected: Expected, answers: readonly Answer[], complaint: RegExp | undefined]>([
  ["both answer", each, [from("a"), from("b")], undefined],
  ["one never answers", each, [from("a"), from("a")], /expected answers of each of a, b; got 2 × a/],
  ["one of many is late", each, [from("a"), from("b"), LATE], /1 × timeout/],
  ["another server answers", each, [from("a"), from("c")], /answers of a or b only/],
  ["nothing was asked", each, [], /got nothing/],
  ["affinity holds", { ...each, spread: "one" }, [from("b"), from("b")], undefined],
  ["affinity does not hold", { ...each, spread: "one" }, [from("a"), from("b")], /all answers of one endpoint/],
  ["the client is seen", { ...each, seesClient: true }, [from("a"), from("b")], undefined],
  [
    "a node is seen",
    { ...each, seesClient: true },
    [from("a"), from("b", "172.30.0.11")],
    /own address.*172\.30\.0\.11/,
  ],
  [
    "what must not be seen is",
    { ...each, notSeen: ["172.30.0.11"] },
    [from("a"), from("b", "172.30.0.11")],
    /own address/,
  ],
  ["refused at once", { kind: "refused" }, [REFUSED, REFUSED], undefined],
  ["refused late", { kind: "refused" }, [LATE], /expected a refusal at once; got 1 × timeout/],
  ["answered in place of refused", { kind: "refused" }, [from("a")], /got 1 × a/],
  ["no answer", { kind: "unanswered" }, [LATE, REFUSED], undefined],
  ["an answer in place of none", { kind: "unanswered" }, [LATE, from("a")], /expected no answer; got/],
  [
    "the right addresses",
    { kind: "resolved", addresses: ["10.0.0.2", "10.0.0.1"] },
    [{ resolved: ["10.0.0.1", "10.0.0.2"] }],
    undefined,
  ],
  [
    "one address too few",
    { kind: "resolved", addresses: ["10.0.0.2", "10.0.0.1"] },
    [{ resolved: ["10.0.0.1"] }],
    /expected 10\.0\.0\.1, 10\.0\.0\.2/,
  ],
])("%s", (_what, expected, answers, complaint) => {
  const found = complaintOf(expected, answers, OWN);
  if (complaint === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(complaint);
});

test("the table has a row for each frontend and a column for each place, and names what is wrong below", () => {
  const row = {
    service: "web",
    frontend: "cluster-ip",
    policy: "Cluster",
    family: "IPv4",
    to: "10.96.0.1:80",
  } as const;
  const cases = [
    { ...row, place: "pod-here" },
    { ...row, place: "pod-there", complaint: "expected answers" },
  ] as const;
  const checks = [{ name: "DNS", skipped: "there is none" }, { name: "rolling update" }];
  expect(reportText(cases, checks, plain)).toBe(
    [
      "SERVICE   FRONTEND     POLICY    FAMILY   POD HERE   POD THERE   NODE HERE   NODE THERE   OUTSIDE",
      "web       cluster-ip   Cluster   IPv4     ok         FAIL        -           -            -",
      "",
      "- DNS: not tested: there is none",
      "✓ rolling update",
      "✗ web: cluster-ip 10.96.0.1:80 (Cluster) from pod there: expected answers",
      "",
    ].join("\n"),
  );
});
