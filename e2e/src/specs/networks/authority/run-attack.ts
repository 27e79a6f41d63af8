import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import { messageOf } from "@fairlead/lab/support/processes";
import { type LearnedCIDR, make, untilLearned } from "../learning.ts";
import type { NetworkAttack, ReportedCIDR, Step } from "./attack.ts";
import type { Bystanders } from "./bystanders.ts";
import { canaryGoes, expectOwners } from "./owners.ts";
import { restrictedUser } from "./users.ts";

/**
 * Does what the row says as its user, waits until every agent reports it, and takes it back. The canary's network comes
 * and goes meanwhile, so that a decision without consequences was taken for sure.
 *
 * @throws Error when a service changed hands, or something is reported otherwise
 */
export async function runAttack(at: Bystanders, attack: NetworkAttack): Promise<void> {
  try {
    await attackAndUndo(at, attack);
  } catch (error) {
    throw new Error(`${attack.name}, by ${attack.who.name}: ${messageOf(error)}`, { cause: error });
  }
}

async function attackAndUndo(at: Bystanders, attack: NetworkAttack): Promise<void> {
  const { scene } = at;
  const logs = await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.log()));
  const removals: (() => Promise<void>)[] = [];
  for (const object of attack.before?.(at) ?? []) removals.push(await make(scene, object));
  const steps = attack.steps(at);
  const user = await restrictedUser(scene, attack.who, steps);
  for (const step of steps) scene.later(() => undo(scene.cluster.api, step));
  for (const step of steps) await act(user.api, step);
  const reported = attack.reported(at);
  const complaint = ({ cidrs }: { readonly cidrs: readonly LearnedCIDR[] }) => complaintOf(reported, cidrs);
  await untilLearned(scene, attack.name, complaint);
  await untilLogged(at, logs, attack.logged?.(at));
  await attack.meanwhile?.(at);
  const canaryIsBack = await canaryGoes(at);
  await expectOwners(at, "foreign");
  await untilLearned(scene, attack.name, complaint);
  for (const step of steps.toReversed()) await undo(user.api, step);
  await user.revoke();
  for (const remove of removals) await remove();
  await canaryIsBack();
  await expectOwners(at, "ours");
  await untilLearned(scene, `${attack.name}, taken back`, ({ cidrs }) => {
    const left = cidrs.filter(({ objects }) => reported.some(({ object = "" }) => objects.includes(object)));
    return left.length === 0 ? undefined : JSON.stringify(left);
  });
}

function complaintOf(reported: readonly ReportedCIDR[], cidrs: readonly LearnedCIDR[]): string | undefined {
  const wrong = reported.filter((one) => cidrs.some((found) => fits(one, found)) !== (one.stage !== undefined));
  return wrong.length === 0 ? undefined : `not so: ${JSON.stringify(wrong)} in ${JSON.stringify(cidrs)}`;
}

function fits({ cidr, stage, object, why = "" }: ReportedCIDR, found: LearnedCIDR): boolean {
  if (found.cidr !== cidr) return false;
  if (stage === undefined) return true;
  if (object !== undefined && !found.objects.includes(object)) return false;
  return found.stage === stage && (found.why ?? "").includes(why);
}

async function untilLogged({ scene }: Bystanders, before: readonly string[], wanted: string | undefined) {
  if (wanted === undefined) return;
  await scene.until(`${wanted} in every agent's log`, async () => {
    const logs = await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.log()));
    const news = logs.map((log, at) => log.slice(before[at]?.length ?? 0));
    return news.every((text) => text.includes(wanted)) ? undefined : news.join("\n");
  });
}

async function act(user: ApiClient, step: Step): Promise<void> {
  if ("create" in step) await user.create(step.create);
  else await user.patch(pathOf(step), step.change);
}

async function undo(user: ApiClient, step: Step): Promise<void> {
  if ("create" in step) await user.delete(objectPath(step.create));
  else if (step.back !== undefined) await user.patch(pathOf(step), step.back);
}

function pathOf({ patch, part }: Extract<Step, { readonly patch: unknown }>): string {
  return part === undefined ? objectPath(patch) : `${objectPath(patch)}/${part}`;
}
