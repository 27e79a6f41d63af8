import { readFileSync } from "node:fs";
import { join } from "node:path";
import { whyNoWine } from "@fairlead/lab/wine/wine";
import { execa } from "execa";
import { expect, test } from "vitest";
import { provideNode } from "../src/windows/ground.ts";

/** The built agent for Windows under Wine; `pnpm e2e --suite windows` plays more to it. */
const missing = process.getuid?.() === 0 ? await whyNoWine() : "needs root, for a network namespace with an interface";
const STEPS = 4;
/** To HCN, in all after each step: 24 at the start, two for an endpoint more and for one that leaves, then none. */
const WRITES = [24, 26, 28, 28];
const CASE = "l2bridge";
const recording = join(import.meta.dirname, "../../packages/backend-windows/test/fixtures/kube-proxy", `${CASE}.json`);

if (missing === undefined) {
  test("the built agent leaves what kube-proxy left in HCN, and ends with the pipe to it", async () => {
    const { steps } = JSON.parse(readFileSync(recording, "utf8"));
    const node = ["--conditions=@fairlead/source", "--no-warnings"];
    const script = join(import.meta.dirname, "../src/windows/short-main.ts");
    const args = [await provideNode(), CASE, String(STEPS)];
    const { stdout } = await execa("unshare", ["--net", "--", process.execPath, ...node, script, ...args]);
    const ours = stdout.split("\n").map((line) => JSON.parse(line));
    // Its input is closed in the end.
    expect(ours.pop()).toBe(0);
    // kube-proxy keeps the endpoint that terminates: it is gone in the step after.
    const without = ({ what, objects }: { what: string; objects: readonly string[] }) => ({
      what,
      objects: objects.filter((line) => what !== "it terminates" || !line.startsWith("endpoint 10.244.2.21 ")),
    });
    expect(ours.map(({ writes, ...step }) => step)).toEqual(steps.slice(0, STEPS).map(without));
    expect(ours.map(({ writes }) => writes)).toEqual(WRITES);
  });
} else {
  test("the built agent for Windows under Wine", ({ skip }) => {
    const { CI = "" } = process.env;
    if (CI !== "") throw new Error(`CI must run it: ${missing}`);
    skip(missing);
  });
}
