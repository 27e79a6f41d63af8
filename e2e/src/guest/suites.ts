import type { Lab } from "@fairlead/lab/plain/lab";
import { openScene } from "@fairlead/lab/plain/scene";
import { applySettings } from "@fairlead/lab/wire";
import { flowObjects, flowsReported, REMEMBERED } from "../cases/flows.ts";
import { conformance, golden } from "./conformance.ts";
import { drainSpecs, faultSpecs, resetSpecs } from "./fault-specs.ts";
import { meaning } from "./meaning.ts";
import { type Spec, type Suite, suiteOf } from "./suite.ts";
import { verify } from "./verify-specs.ts";

const nothingLeft = async (_: Lab) => {};

const flowSpecs: readonly Spec[] = [
  {
    name: "ipvs flows: every connection of a service is reported with service, endpoint and owner, and no other",
    run: async (lab) => {
      await applySettings(lab.runner("node-a"), REMEMBERED);
      const scene = await openScene(lab, flowObjects, { flags: ["--proxy-mode=ipvs"] });
      try {
        const { made, reported, code } = await flowsReported(lab, scene.folder.manifests, false);
        const problems = [...without(made.lines, reported, "missing"), ...without(reported, made.lines, "invented")];
        if (code !== 0) problems.push(`exit code ${code}`);
        if (made.connections < 1_000) problems.push(`only ${made.connections} connections were made`);
        return problems;
      } finally {
        await scene.close();
      }
    },
  },
];

export const suites: ReadonlyMap<string, Suite> = new Map([
  ["meaning", meaning],
  ["conformance", conformance],
  ["golden", golden],
  ["faults", suiteOf(faultSpecs, nothingLeft)],
  ["drain", suiteOf(drainSpecs, nothingLeft)],
  ["reset", suiteOf(resetSpecs, nothingLeft)],
  ["verify", verify],
  ["flows", suiteOf(flowSpecs, nothingLeft)],
]);

/** The lines that stand more often in one list than in the other. */
function without(lines: readonly string[], others: readonly string[], what: string): readonly string[] {
  const left = Map.groupBy(others, (line) => line);
  return lines.filter((line) => left.get(line)?.pop() === undefined).map((line) => `${what}: ${line}`);
}
