/** What users who may write networks' objects can make, and what becomes of services. */

import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { messageOf } from "@fairlead/lab/support/processes";
import { excludedNetwork, type LearnedCIDR, needsExcluded } from "../../multi-cni/untouched.ts";
import { each, needs, onlyIPv4, restoreAgents, type Scene, type Spec } from "../../spec.ts";
import { untilLearned } from "../learning.ts";
import {
  type Bystanders,
  canaryGoes,
  describeAndLearn,
  expectOwners,
  guarded,
  openBystanders,
  unguarded,
  untilOwned,
} from "./bystanders.ts";
import { guardedRows, type NetworkAttack, openRows, type ReportedCIDR, type Step } from "./rows.ts";

const COMMON = { suite: "networks", about: ["endpoint-filter", "networks"], eachFamily: false } as const;

/** The operator's own mistake: a list without any source. */
const writtenList: Spec = {
  ...COMMON,
  name: "attacks on networks, a written list over the API server: its Service stays ours, with a warning",
  unfit,
  run: async (scene) => {
    const { at, load } = await openBystanders(scene);
    const finish = await load();
    const cidr = at.apiServer.replace(/\d+$/, "0/24");
    restoreAgents(scene);
    const excluded = [...Object.values(excludedNetwork(scene.cluster).podCIDRs), cidr];
    const flags = [`--exclude-cluster-cidr=${excluded.join(",")}`];
    await each(scene, ({ agent }) => agent.restart({ memory: scene.namespace, flags }));
    await untilOwned(at);
    await scene.until("a warning on every node", async () => {
      const logs = await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.log()));
      const wanted = `the API server is in ${cidr}, which is excluded`;
      return logs.every((log) => log.includes(wanted)) ? undefined : "none";
    });
    return finish();
  },
};

export const attacksOnNetworks: readonly Spec[] = [
  attacksOn("where other networks' sources have within", guarded, guardedRows),
  attacksOn("without within", unguarded, openRows),
  writtenList,
];

function unfit(shape: ClusterShape): string | undefined {
  const able = needs("learn")(shape) ?? needs("pod-script")(shape);
  return able ?? needsExcluded(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape);
}

/** Each row of a table after the other, under one load. */
function attacksOn(how: string, multiCNI: (scene: Scene) => object, rows: readonly NetworkAttack[]): Spec {
  return {
    ...COMMON,
    name: `attacks on networks, ${how}: no service changes hands, DNS and the API answer`,
    unfit,
    run: async (scene) => {
      const { at, load } = await openBystanders(scene);
      await describeAndLearn(scene, multiCNI(scene));
      await untilOwned(at);
      const finish = await load();
      for (const row of rows) await runAttack(at, row);
      const counts = Object.entries(Object.groupBy(rows, ({ outcome }) => outcome));
      const outcomes = counts.map(([outcome, found = []]) => [outcome, String(found.length)] as const);
      return { ...(await finish()), ...Object.fromEntries(outcomes) };
    },
  };
}

/**
 * Does what the row says, waits until every agent reports it, and takes it back. The canary's network comes
 * and goes meanwhile, so that a decision without consequences was taken for sure.
 */
async function runAttack(at: Bystanders, attack: NetworkAttack): Promise<void> {
  try {
    await attackAndUndo(at, attack);
  } catch (error) {
    throw new Error(`${attack.name}: ${messageOf(error)}`, { cause: error });
  }
}

async function attackAndUndo(at: Bystanders, attack: NetworkAttack): Promise<void> {
  const { scene } = at;
  const logs = await Promise.all(scene.cluster.nodes.map(({ agent }) => agent.log()));
  const { api } = scene.cluster;
  const steps = attack.steps(at);
  for (const step of steps) scene.later(() => undo(api, step));
  for (const step of steps) await act(api, step);
  const reported = attack.reported(at);
  const complaint = ({ cidrs }: { readonly cidrs: readonly LearnedCIDR[] }) => complaintOf(reported, cidrs);
  await untilLearned(scene, attack.name, complaint);
  await untilLogged(at, logs, attack.logged?.(at));
  const canaryIsBack = await canaryGoes(at);
  await expectOwners(at, "foreign");
  await untilLearned(scene, attack.name, complaint);
  for (const step of steps.toReversed()) await undo(api, step);
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

async function act(api: ApiClient, step: Step): Promise<void> {
  if ("create" in step) await api.create(step.create);
  else await api.patch(pathOf(step), step.change);
}

async function undo(api: ApiClient, step: Step): Promise<void> {
  if ("create" in step) await api.delete(objectPath(step.create));
  else if (step.back !== undefined) await api.patch(pathOf(step), step.back);
}

function pathOf({ patch, part }: Extract<Step, { readonly patch: unknown }>): string {
  return part === undefined ? objectPath(patch) : `${objectPath(patch)}/${part}`;
}
