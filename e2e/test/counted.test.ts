import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { printedNumber, readCounted, SUBJECTS, withGuest } from "../src/cost/measure.ts";
import { missedBudgets, PAGE, withTables } from "../src/cost/suite.ts";

test("docs/fast-path.md has the tables of what was counted", async () => {
  const page = await readFile(PAGE, "utf8");
  expect(withTables(page, await readCounted())).toBe(page);
});

const OF = { release: "6.12.1", kubeProxy: "v1.37.2" };
const guest = (fast: number) => ({ [SUBJECTS.base]: { request: 1000 }, [SUBJECTS.fast]: { request: fast } });

test("a guest takes the place of what it counted before; another release of the kernel or of kube-proxy forgets the others", () => {
  const first = withGuest({}, "6.12", OF, "one node 10", guest(800));
  const second = withGuest(first, "6.12", OF, "one node 1000", guest(800));
  expect(Object.keys(second["6.12"]?.guests ?? {})).toEqual(["one node 10", "one node 1000"]);
  for (const other of [
    { ...OF, release: "6.12.2" },
    { ...OF, kubeProxy: "v1.37.3" },
  ]) {
    const third = withGuest(second, "6.12", other, "one node 10", guest(800));
    expect(third["6.12"]).toEqual({ ...other, guests: { "one node 10": guest(800) } });
  }
});

test.each([
  [805, []],
  [820, ["Linux 6.12.1, request over an open connection: 0.820, at most 0.8 is allowed"]],
])("a request of %d instructions where kube-proxy's has 1,000", (instructions, missed) => {
  expect(missedBudgets(withGuest({}, "6.12", OF, "one node 1000", guest(instructions)))).toEqual(missed);
});

test("what a guest counted is read by its words, and a count that is missing is an error with the guest's last words", () => {
  const text = "0 request 27316.0\r\n0 datagram \r\ncount: connect: timed out\r\n";
  expect(printedNumber(text, "0 request")).toBe(27316);
  expect(() => printedNumber(text, "0 datagram")).toThrow('counted nothing for "0 datagram"');
  expect(() => printedNumber(text, "1 request")).toThrow("connect: timed out");
});
