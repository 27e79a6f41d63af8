import { damagesTold } from "../cases/shadow/damages-told.ts";
import { heldInIpvs } from "../cases/shadow/held.ts";
import { IPVS_DAMAGES, ipvsAsNow } from "../cases/shadow/ipvs-damages.ts";
import { statesAgree } from "../cases/shadow/states-agree.ts";
import type { Spec } from "./suite.ts";

/** Processes take a second each here, and kube-proxy starts hundreds for a state. */
const GRACE = "--grace-period=120s";
const MODE = { mode: "ipvs", variant: "legacy" } as const;

/** A shadow alongside the real kube-proxy in ipvs mode. */
export const shadowSpecs = (program: string): readonly Spec[] => [
  {
    name: "ipvs shadow: nothing is told in random states, and nothing written",
    run: async (lab) => {
      const settings = { ...MODE, program, flags: [GRACE] };
      const { mode, differences, before, after } = await statesAgree(lab, settings, () =>
        heldInIpvs(lab.runner("node-a")),
      );
      const problems = [...differences];
      const modes = [mode, MODE.mode];
      if (new Set(modes).size > 1) problems.push(`the shadow took the mode for another: ${modes.join(", ")}`);
      for (const [at, text] of before.entries()) if (after[at] !== text) problems.push(`${text} became ${after[at]}`);
      return problems;
    },
  },
  {
    name: "ipvs shadow: each damage is told",
    run: async (lab) => {
      const how = { damages: IPVS_DAMAGES, mending: ipvsAsNow };
      for await (const { what, kind, afterMs } of damagesTold(lab, { ...MODE, program }, how)) {
        process.stderr.write(`shadow, ipvs: ${what}: ${kind} told after ${afterMs} ms\n`);
      }
      return [];
    },
  },
];
