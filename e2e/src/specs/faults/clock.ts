import { able, needs } from "../needs.ts";
import { requireLogged } from "../require-logged.ts";
import type { Spec } from "../spec.ts";
import { each, expectLate, restoreAgents, withoutLoss } from "./stage.ts";

const HOUR_MS = 3_600_000;

const ofAgents = withoutLoss(
  "the agents' clock stepped an hour ahead, and two back",
  async (scene) => {
    restoreAgents(scene);
    await each(scene, ({ agent }) => agent.restart({ ownClock: true }));
    await each(scene, ({ agent }) => able(agent.stepClock)(HOUR_MS));
    await expectLate(scene, { name: "ahead" });
    await each(scene, ({ agent }) => able(agent.stepClock)(-HOUR_MS));
    await expectLate(scene, { name: "back" });
    await each(scene, (node) => requireLogged(node, isStepped));
  },
  { unfit: needs("step-clock") },
);

/** Lines begin with the time, as klog writes it: `I1121 11:20:03.123456`. */
function isStepped(line: string): boolean {
  const [, month, day, hours, minutes] = /^[IWE](\d\d)(\d\d) (\d\d):(\d\d)/.exec(line) ?? [];
  if (month === undefined) return false;
  const now = new Date();
  const reported = new Date(now);
  reported.setMonth(Number(month) - 1, Number(day));
  reported.setHours(Number(hours), Number(minutes));
  return Math.abs(reported.getTime() - now.getTime()) > HOUR_MS / 2;
}

const ofKernel = withoutLoss(
  "the clock stepped by an hour, forth and back: changes still come through",
  async (scene) => {
    const [node] = scene.nodes;
    for (const [step, by] of ["+1 hour", "-1 hour"].entries()) {
      await node.run(["date", `--set=${by}`]);
      await expectLate(scene, { name: `late-${step}` });
    }
  },
  { unfit: ({ ownKernel }) => (ownKernel === true ? undefined : "the clock is the machine's") },
);

export const clock: readonly Spec[] = [ofAgents, ofKernel];
