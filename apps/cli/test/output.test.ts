import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { changedRows } from "../src/commands/status.ts";
import { jsonPathText } from "../src/frame/output.ts";
import { fairlead } from "./support/run.ts";

const stdin = JSON.stringify(goldenScenario("09-loadbalancer").objects);
const ownership = (output: string) =>
  fairlead(["ownership", "-f", "-", "--cluster-cidr", "10.144.0.0/16", "-o", output], { stdin });

test("ownership -o name: names that other commands take", async () => {
  const { out, code } = await ownership("name");
  expect(code).toBe(0);
  expect(out.split("\n")).toContain("default/lb");
  expect(out).not.toContain("SERVICE");
});

test("ownership -o wide has what -o table has not", async () => {
  expect((await ownership("table")).out).not.toContain("FRONTENDS");
  expect((await ownership("wide")).out).toMatch(/^SERVICE +FAMILY +OWNER +OWN +EXCLUDED +FRONTENDS +CIDRS +WHY\n/);
});

test("ownership -o jsonpath", async () => {
  const { out } = await ownership('jsonpath={range .services[*]}{.service}={.ownership}{"\\n"}{end}');
  expect(out.split("\n")).toContain("default/lb=ours");
});

test.each([
  ["{.a.b}", "1"],
  ["{$.a['b']}", "1"],
  ["{.list[*].name}", "x y"],
  ["{.list[0].name} {.list[-1].name}", "x y"],
  ["{.a}", '{"b":1}'],
  ["{.none.at.all}", ""],
  ['{range .list[*]}{.name}{"\\t"}{range .of[*]}<{@}>{end};{end}!', "x\t<1><2>;y\t;!"],
  ["{range .empty[*]}{.name}{end}.", "."],
])("jsonpath %s", (template, text) => {
  const data = { a: { b: 1 }, list: [{ name: "x", of: [1, 2] }, { name: "y" }], empty: [] };
  expect(jsonPathText(template, data)).toBe(text);
});

test.each([
  ["{.a", "a brace has no counterpart"],
  ["{a}", "a is not one of .FIELD"],
  ["{.a[?(@.b)]}", "is not one of .FIELD"],
  ["{range .a[*]}", "{range} without {end}"],
  ["{end}", "{end} without {range}"],
])("jsonpath %s is refused: %s", (template, why) => {
  expect(() => jsonPathText(template, {})).toThrow(why);
});

test("a format that there is not", async () => {
  const { code, err } = await ownership("jsonpth={.a}");
  expect(err).toMatch(/^--output=jsonpth=\{\.a\}: must be table or wide or name or json or yaml or jsonpath=/);
  expect(code).toBe(2);
});

test("status --watch prints a row again when it says something else", () => {
  const shown = new Map<string, string>();
  const row = { node: "node-a", answers: true, healthy: true, readAt: "2026-01-01T00:00:00Z" };
  expect(changedRows(shown, [row])).toHaveLength(1);
  expect(changedRows(shown, [{ ...row, readAt: "2026-01-01T00:00:05Z", lastSync: "2026-01-01T00:00:04Z" }])).toEqual(
    [],
  );
  expect(changedRows(shown, [{ ...row, healthy: false }])).toMatchObject([{ healthy: false }]);
});

test("status --watch goes on until it is interrupted, and prints tables only", async () => {
  expect(await fairlead(["status", "--live", "-w", "-o", "json"])).toMatchObject({ code: 2 });
  const stop = new AbortController();
  const { out, code } = await fairlead(["status", "--live", "-w"], { signal: stop.signal, onOut: () => stop.abort() });
  expect(out).toMatch(/^NODE /);
  expect(out.trimEnd().split("\n")).toHaveLength(2);
  expect(code).toBe(0);
});
