/** What `fairlead verify --watch` says of an agent's rules: damages, and states in which both agree. */

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Argv, Runner } from "@fairlead/kernel";
import { type AgentProcess, agentFolder, startAgent } from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { type KubeProxyMode, startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import type { Lab } from "@fairlead/lab/plain/lab";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { tool } from "@fairlead/lab/tools/page-reader";
import { clusterObjects, endpointSlice, type RawObject, webA1, webA2, webB1, workload } from "@fairlead/testkit";
import { slotChanges, slotObjects, webState } from "@fairlead/testkit/histories";
import fc from "fast-check";
import type { KernelDamage, Mending } from "./shadow-damages.ts";

/** What the shadow has for a damage: its grace, its pace, and a machine that does other things as well. */
const TOLD_MS = 300_000;

/** A damage, and after how many milliseconds the shadow told it. */
interface ToldDamage extends Pick<KernelDamage, "what" | "kind"> {
  readonly afterMs: number;
}

/** Inflicts the damages one by one on what kube-proxy wrote, each until it is told, and mends it. */
export async function* damagesTold(
  lab: Lab,
  settings: BesideSettings,
  { damages, mending }: { readonly damages: readonly KernelDamage[]; readonly mending: Mending },
): AsyncGenerator<ToldDamage, void, void> {
  await using beside = await openBeside(lab, settings, damagedObjects);
  await beside.agreed(0);
  // It would mend some of them.
  await beside.killKubeProxy();
  const runner = lab.runner("node-a");
  const mend = await mending(runner);
  for (const { what, kind, inflict } of damages) {
    await inflict(runner);
    yield { what, kind, afterMs: await beside.told(what, TOLD_MS, kind) };
    const since = Date.now();
    await mend();
    await beside.agreed(since);
  }
}

/** Many states take their time: how far it has come is said each time. */
const TOLD_EVERY = 20;

/** What the log says when a service begins to differ for good. */
const DIFFERS = "kube-proxy differs from the plan";

interface Agreement {
  readonly mode: string;
  /** The log lines of services that differed. */
  readonly differences: readonly string[];
  /** What the kernel held before and after a change that nobody programmed. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** A state may be that before it, with nothing to write and nothing to look at: this makes it another. */
function another(turn: number): readonly RawObject[] {
  return workload(98, { endpoints: [turn % 2 === 0 ? webA1 : webB1] }).objects;
}

/**
 * Has kube-proxy program random states of a cluster, one after the other, each until the shadow agrees with it; then
 * kube-proxy is killed and one more state is put, which the shadow tells and does not program.
 *
 * @param held what the kernel holds
 */
export async function statesAgree(
  lab: Lab,
  settings: BesideSettings,
  held: () => Promise<readonly string[]>,
): Promise<Agreement> {
  const { FAIRLEAD_SHADOW_STATES = "12", FAIRLEAD_SHADOW_SKIPPED = "0", FAIRLEAD_SHADOW_SEED = "1" } = process.env;
  const states = randomStates(Number(FAIRLEAD_SHADOW_STATES), Number(FAIRLEAD_SHADOW_SEED));
  const skipped = Number(FAIRLEAD_SHADOW_SKIPPED);
  // Each state is some services only: it begins with what those before would have left.
  const first = states.slice(0, skipped + 1).flat();
  const others = states.slice(skipped + 1);
  await using beside = await openBeside(lab, settings, first);
  const { mode } = await beside.agreed(0);
  for (const [turn, state] of others.entries()) {
    const since = Date.now();
    await beside.put([...state, ...another(turn)]);
    await beside.agreed(since);
    if ((turn + 1) % TOLD_EVERY === 0) process.stderr.write(`shadow, ${mode}: ${skipped + turn + 2} states agreed\n`);
  }
  const lines = beside.shadow.log().split("\n");
  await beside.killKubeProxy();
  const before = await held();
  await beside.put(workload(99, { endpoints: [webA1] }).objects);
  await beside.told("what nobody programs", TOLD_MS);
  return { mode, differences: lines.filter((line) => line.includes(DIFFERS)), before, after: await held() };
}

const SLOTS = Array.from({ length: 12 }, (_, at) => at + 1);
const MOST_AT_ONCE = 6;

/** Of two services that claim one external address each proxy serves one: these have addresses of their own. */
const OWN_EXTERNAL_IP = 3;

/** What is written to the API server state by state: each is some services of a random kind, the others stay. */
function randomStates(count: number, seed: number): readonly (readonly RawObject[])[] {
  const changes = fc.sample(slotChanges(SLOTS, MOST_AT_ONCE), { numRuns: count, seed });
  return changes.map((some) =>
    some.flatMap(([slot, state]) => {
      if (state !== undefined) {
        return slotObjects(slot, { ...state, externalIP: state.externalIP && slot <= OWN_EXTERNAL_IP });
      }
      const [service] = slotObjects(slot, webState());
      const none = { service: `slot-${slot}`, family: "IPv4" as const, ports: [], endpoints: [] };
      return [...(service === undefined ? [] : [service]), endpointSlice(`slot-${slot}`, none)];
    }),
  );
}

const SCRIPT = fileURLToPath(new URL("shadow-generation-main.ts", import.meta.url));

const LEGACY: readonly Argv[] = [["iptables-legacy-save"], ["ip6tables-legacy-save"]];

/**
 * All rules of iptables and nf_tables without their counters, with handles, and the number of the last transaction: the
 * same twice means that nobody wrote in between.
 */
export function heldBy(runner: Runner): Promise<readonly string[]> {
  const generation: Argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", SCRIPT];
  return listed(runner, [...LEGACY, ["nft", "-a", "list", "ruleset"], generation]);
}

/** Virtual servers, sets, addresses and rules of ipvs mode, of whose changes no number tells. */
export function heldInIpvs(runner: Runner): Promise<readonly string[]> {
  return listed(runner, [
    ...LEGACY,
    ["ipvsadm", "--save", "-n"],
    ["ipset", "save"],
    ["ip", "-oneline", "address", "show"],
  ]);
}

async function listed(runner: Runner, listings: readonly Argv[]): Promise<readonly string[]> {
  const texts = await Promise.all(listings.map((argv) => runner.run(argv)));
  return texts.map(({ stdout }) => stdout.replace(/counter packets \d+ bytes \d+|\[\d+:\d+\]|^#.*$/gm, ""));
}

/** A busy machine takes its time to start both, and a guest for every sync of kube-proxy. */
const AGREED_MS = 600_000;
/** Each question is a process, which in a guest takes its time from those that are to agree. */
const AGREED_PAUSE_MS = 1_000;

interface BesideSettings extends KubeProxyMode {
  /** The real kube-proxy. */
  readonly program: string;
  /** More flags for the shadow. */
  readonly flags?: readonly string[];
}

/** The real kube-proxy on node-a of a lab, and `fairlead verify --watch` alongside it: the shadow. */
interface Beside extends AsyncDisposable {
  readonly shadow: AgentProcess;
  put(objects: readonly RawObject[]): Promise<void>;
  /** Waits until all was looked at since that moment (of Date) and nothing differs. */
  agreed(since: number): Promise<ShadowPage>;
  /** Waits until a difference (of the kind) is told, and gives after how many milliseconds. */
  told(what: string, withinMs: number, kind?: string): Promise<number>;
  /** With SIGKILL: whatever is done to the kernel stays. */
  killKubeProxy(): Promise<void>;
}

async function openBeside(
  lab: Lab,
  { program, flags = [], ...mode }: BesideSettings,
  objects: readonly RawObject[],
): Promise<Beside> {
  await using opening = new AsyncDisposableStack();
  const { path } = await agentFolder([]);
  opening.defer(() => rm(path, { recursive: true }));
  const { url, put, stop } = await startApi(lab.namespace("node-a"), [...clusterObjects, ...objects]);
  opening.defer(stop);
  const access = join(path, "kubeconfig");
  await writeFile(access, kubeconfig({ server: url, token: USERS.proxy.token }));
  const folder = join(path, "kube-proxy");
  const kubeProxy = await startKubeProxy(lab, { ...mode, program, kubeconfig: access, folder });
  const killKubeProxy = () => kubeProxy.stop("SIGKILL");
  opening.defer(killKubeProxy);
  const shadow = startAgent(lab.namespace("node-a"), {
    bundle: tool,
    flags: ["verify", "--watch", `--config=${join(folder, "config.conf")}`, "--node=node-a", ...OWN, ...flags],
  });
  opening.defer(async () => void (await shadow.kill()));
  const opened = opening.move();
  const page = () => askShadow(lab.runner("node-a"));
  const until = (what: string, withinMs: number, holds: (seen: ShadowPage) => boolean, pauseMs?: number) =>
    waitUntil(
      what,
      withinMs,
      async () => {
        const seen = await page();
        return seen !== undefined && holds(seen) ? seen : undefined;
      },
      pauseMs,
    ).catch(async (error: unknown) => {
      const seen = JSON.stringify((await page()) ?? "no page", undefined, 1);
      const all = [seen, shadow.log(), await kubeProxy.log()].map((text) => text.slice(-20_000));
      throw new Error(`${what}: ${all.join("\n")}`, { cause: error });
    });
  return {
    shadow,
    put,
    agreed: (since) => until("the shadow to agree", AGREED_MS, (seen) => agrees(seen, since), AGREED_PAUSE_MS),
    told: async (what, withinMs, kind) => {
      const began = performance.now();
      await until(`${what} to be told`, withinMs, (seen) =>
        kind === undefined ? kindsOf(seen).length > 0 : kindsOf(seen).includes(kind),
      );
      return Math.round(performance.now() - began);
    },
    killKubeProxy,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The test's services have no annotation that says whose they are. */
const OWN = ["--agent-flag=ownership-annotation=false"];

/** Services that each kind of damage shows at: the damages name them. */
const damagedObjects: readonly RawObject[] = [
  ...workload(1, { endpoints: [webA1, webB1], nodePort: true }).objects,
  ...workload(2, { endpoints: [webA1, webA2], loadBalancer: "VIP", sourceRanges: ["198.51.100.0/24"] }).objects,
  ...workload(3, { endpoints: [], external: true }).objects,
  ...workload(4, { endpoints: [webA1, webB1], affinitySeconds: 600 }).objects,
];

/** What the shadow reports at /differences, as far as tests ask. */
interface ShadowPage {
  readonly mode: string;
  readonly families: Readonly<Record<"IPv4" | "IPv6", FamilyPage>>;
}

interface FamilyPage {
  readonly problem?: string;
  readonly lastRound?: { readonly at: string; readonly seconds: number; readonly services: number };
  readonly differing: number;
  readonly withinGrace: number;
  readonly services: readonly { readonly name: string; readonly differences: readonly { readonly kind: string }[] }[];
}

const PAGE_URL = "http://127.0.0.1:10449/differences";

/** Undefined: it does not answer (yet). */
async function askShadow(runner: Runner): Promise<ShadowPage | undefined> {
  try {
    const { stdout } = await runner.run(["curl", "--silent", "--fail", "--max-time", "10", PAGE_URL]);
    return JSON.parse(stdout);
  } catch {
    return undefined;
  }
}

/** Whether all services were looked at since, in each family that has any, and none differs. */
function agrees({ families }: ShadowPage, since: number): boolean {
  return Object.values(families).every(
    ({ lastRound, differing, withinGrace, problem }) =>
      problem === undefined && differing + withinGrace === 0 && Date.parse(lastRound?.at ?? "") > since,
  );
}

function kindsOf({ families }: ShadowPage): readonly string[] {
  return Object.values(families).flatMap(({ services }) =>
    services.flatMap(({ differences }) => differences.map(({ kind }) => kind)),
  );
}
