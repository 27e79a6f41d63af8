import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { COMMAND_LINES, complaintOf, lackedIn, READERS, type RightsOutcome } from "../src/specs/readers.ts";
import { PAGE, RECORDED, withTable } from "../src/specs/rights.ts";
import { gatewayFigures, readGinkgo, SKIPPED_GATEWAY_TESTS } from "../src/specs/sig-network.ts";

const recorded: readonly RightsOutcome[] = JSON.parse(await readFile(RECORDED, "utf8"));

/** The formatter aligns columns. */
const cells = (text: string) => text.replaceAll(/ +\|/g, " |").replaceAll(/-{3,}/g, "---");

test("docs/tools.md has the table of what was recorded, with every command and every reader", async () => {
  const page = await readFile(PAGE, "utf8");
  expect(cells(withTable(page, recorded))).toBe(cells(page));
  const wanted = Object.keys(COMMAND_LINES).flatMap((command) => READERS.map(({ name }) => `${command} ${name}`));
  expect(recorded.map(({ command, reader }) => `${command} ${reader}`)).toEqual(wanted);
});

const NODES =
  'user eve may not list nodes in the whole cluster; a ClusterRole with this rule allows it: {apiGroups: [""], resources: [nodes], verbs: [list, watch]}';
const EXEC =
  'user eve may not get pods/exec in namespace kube-system; a Role with this rule allows it: {apiGroups: [""], resources: [pods/exec], verbs: [get]}';

describe("what a reader gets", () => {
  test("goes on with less: every right that is named counts", () => {
    const ended = { code: 0, out: "shop/web", err: `planned without zone: ${NODES}\n${EXEC}\n` };
    expect(complaintOf(ended)).toBeUndefined();
    expect(lackedIn("eve", ended)).toEqual(["get pods/exec", "list nodes"]);
  });

  test("fails: the last right counts", () => {
    const ended = { code: 3, out: "", err: `planned without zone: ${NODES}\n${EXEC}\n` };
    expect(lackedIn("eve", ended)).toEqual(["get pods/exec"]);
  });

  test.each([
    ["a stack", 3, "TypeError: x\n    at run (run.ts:1:1)"],
    ["the command line is refused", 2, "unknown option"],
    ["what is refused is said to be no answer", 3, "the API server https://x does not answer: 403"],
    ["a missing right without the rule that gives it", 3, "user eve may not list nodes in the whole cluster"],
    ["a failure that names no right", 3, "no Node has this host's name"],
  ])("never %s", (complaint, code, err) => expect(complaintOf({ code, out: "", err })).toBe(complaint));

  test("of another user is a mistake of the ground", () => {
    expect(() => lackedIn("mallory", { code: 3, out: "", err: NODES })).toThrow(/the rights of eve/);
  });
});

const FAILED = `
••••••••••
------------------------------
• [FAILED] [12.345 seconds]
  [FAIL] while it ran, which is said again below

Summarizing 2 Failures:
  [FAIL] [sig-network] Services [It] should serve endpoints on same port
  k8s.io/kubernetes/test/e2e/network/service.go:4263
  [TIMEDOUT] [sig-network] DNS [It] should provide DNS for services
  k8s.io/kubernetes/test/e2e/network/dns_common.go:476

Ran 47 of 7579 Specs in 192.568 seconds
FAIL! -- 45 Passed | 2 Failed | 0 Pending | 7532 Skipped
`;

test("Ginkgo's summary: counts, and each failure once", () => {
  expect(readGinkgo(FAILED)).toEqual({
    passed: 45,
    failed: 2,
    ran: 47,
    failures: [
      "[sig-network] Services [It] should serve endpoints on same port",
      "[sig-network] DNS [It] should provide DNS for services",
    ],
  });
});

test("Ginkgo's summary: all passed", () => {
  const output = "Ran 47 of 7579 Specs in 95.2 seconds\nSUCCESS! -- 47 Passed | 0 Failed | 0 Pending | 7532 Skipped\n";
  expect(readGinkgo(output)).toEqual({ passed: 47, failed: 0, ran: 47, failures: [] });
});

test("a run that was cut off has no summary", () => {
  expect(readGinkgo("Will run 47 of 7579 specs\n•••")).toBeUndefined();
});

describe("the report of the Gateway API's suite", () => {
  const profile = (name: string, counts: string, more = "") =>
    `- core:\n    result: partial\n    statistics: ${counts}\n${more}  name: ${name}\n`;
  const udp = profile("GATEWAY-UDP", "{ Failed: 0, Passed: 11, Skipped: 9 }");

  test("says what passed and was skipped of each profile", () => {
    const tcp = profile("GATEWAY-TCP", "{ Failed: 0, Passed: 8, Skipped: 10 }");
    expect(gatewayFigures(`profiles:\n${tcp}${udp}`, "")).toEqual({
      "GATEWAY-TCP": "8 passed, 0 failed, 10 skipped",
      "GATEWAY-UDP": "11 passed, 0 failed, 9 skipped",
    });
  });

  test("names what failed, with the suite's own words", () => {
    const failed = "    failedTests: [TCPRouteWeightedRouting]\n";
    const tcp = profile("GATEWAY-TCP", "{ Failed: 1, Passed: 7, Skipped: 10 }", failed);
    const output = "=== RUN TestConformance\n    --- FAIL: TestConformance/TCPRouteWeightedRouting (9.1s)\n";
    expect(() => gatewayFigures(`profiles:\n${tcp}${udp}`, output)).toThrow(
      /failed: TCPRouteWeightedRouting\n.*--- FAIL: .*WeightedRouting/,
    );
  });

  test.each([
    ["no report", "", "panic: test timed out"],
    ["a profile without enough tests", `profiles:\n${udp}`, "PASS"],
  ])("%s is not a success", (_, report, output) => {
    expect(() => gatewayFigures(report, output)).toThrow(new RegExp(`GATEWAY-TCP to pass; 0 did\n${output}`));
  });

  test("docs/gateway.md lists what is skipped", async () => {
    const page = await readFile(new URL("../../docs/gateway.md", import.meta.url), "utf8");
    expect(Object.keys(SKIPPED_GATEWAY_TESTS).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
