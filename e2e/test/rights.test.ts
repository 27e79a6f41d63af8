import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { COMMAND_LINES, complaintOf, lackedIn, READERS, type RightsOutcome } from "../src/specs/readers.ts";
import { PAGE, RECORDED, withTable } from "../src/specs/rights.ts";

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
