import { readFileSync } from "node:fs";
import { join } from "node:path";
import { COST_SERVICES, costObjects, WINDOWS_CASES, type WindowsCase } from "@fairlead/testkit/windows";
import { describe, expect, test } from "vitest";
import { DIFFERENCES } from "./support/differences.ts";
import { differing, WindowsNode } from "./support/played.ts";
import { caseOf } from "./support/world.ts";

const FIXTURES = join(import.meta.dirname, "fixtures/kube-proxy");

interface Recording {
  readonly steps: readonly { readonly what: string; readonly objects: readonly string[] }[];
}

function recordingOf({ name }: WindowsCase): Recording {
  return JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), "utf8"));
}

/** Differing lines after each step. */
async function compared(of: WindowsCase): Promise<readonly { readonly what: string; readonly line: string }[]> {
  const { steps } = recordingOf(of);
  const node = new WindowsNode(of);
  const found: { what: string; line: string }[] = [];
  for (const [at, step] of of.steps.entries()) {
    if (step.restart) node.restart();
    node.cluster.remove(...(step.delete ?? []));
    node.put(...(step.put ?? []));
    await node.settle(step.restart ? "full" : "partial");
    const { what, objects = [] } = steps[at] ?? {};
    expect(what).toBe(step.what);
    found.push(...differing(objects, node.state).map((line) => ({ what: step.what, line })));
  }
  return found;
}

const used = new Set<string>();

describe("as kube-proxy left it, but for the named differences", () => {
  test.each(WINDOWS_CASES)("$name", async (of) => {
    const unexplained = (await compared(of)).filter(({ what, line }) => {
      const difference = DIFFERENCES.find(({ seen }) => typeof seen !== "string" && seen({ of, what, line }));
      if (difference !== undefined) used.add(difference.name);
      return difference === undefined;
    });
    expect(unexplained).toEqual([]);
  });

  test("there is none that is not seen, but for those that recordings cannot show", () => {
    const shown = DIFFERENCES.filter(({ seen }) => typeof seen !== "string");
    expect([...used].sort()).toEqual(shown.map(({ name }) => name).sort());
  });

  test("docs/windows.md lists them with their reasons, and nothing else", () => {
    const docs = readFileSync(join(import.meta.dirname, "../../../docs/windows.md"), "utf8");
    const [, section = ""] = docs.split("## Differences to kube-proxy\n");
    const rows = section.split("\n## ", 1)[0]?.matchAll(/^\| (.+?) +\| (.+?) +\| (.+?) +\| `(.+?)` +\|$/gm) ?? [];
    const listed = Array.from(rows, ([, name, , , upstream]) => ({ name, upstream }));
    expect(listed).toEqual(DIFFERENCES.map(({ name, upstream }) => ({ name, upstream })));
  });
});

describe("calls to HCN at 1,000 services", () => {
  const { services, ...theirs }: Readonly<Record<"services" | "start" | "change" | "sync", number>> = JSON.parse(
    readFileSync(join(FIXTURES, "cost.json"), "utf8"),
  );

  test("are at most kube-proxy's, at the start, for an endpoint more and for a full sync", async () => {
    expect(services).toBe(COST_SERVICES);
    const { all, change } = costObjects();
    const node = new WindowsNode(caseOf("l2bridge"));
    const calls = async (kind: "full" | "partial") => {
      const before = node.hcn.calls.length;
      await node.sync(kind);
      return node.hcn.calls.length - before;
    };
    node.put(...all);
    const start = await calls("partial");
    node.put(...change);
    const ours = { start, change: await calls("partial"), sync: await calls("full") };
    expect(ours.change).toBe(7);
    for (const what of ["start", "change", "sync"] as const) expect(ours[what]).toBeLessThanOrEqual(theirs[what]);
  });
});
