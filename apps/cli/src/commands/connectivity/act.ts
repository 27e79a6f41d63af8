import {
  type Clock,
  familyOf,
  fieldsOf,
  type IPFamily,
  itemsOf,
  sleep,
  stringOf,
  systemClock,
  valueAt,
} from "@fairlead/base";
import { ApiError } from "../../cluster/api-error.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { Container } from "../../cluster/pods.ts";
import { inNamespace, isReady, type Manifest, PODS, resourceOf, whyNotReady } from "../../cluster/resources.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { type PodSettings, type PodWanted, podObject } from "./objects.ts";
import type { TestPod } from "./plan.ts";
import type { Line } from "./pod.ts";

/** Milliseconds between two looks, and until a pod has to run: its image may have to come first. */
const LOOK_MS = 500;
const PATIENCE_MS = 180_000;

const LOG = { lines: 20_000, bytes: 8 << 20, previous: false } as const;

export interface Acting {
  readonly cluster: Cluster;
  /** The service proxy name of the proxies that are tested; "": the nodes' first ones. */
  readonly instance: string;
  readonly settings: PodSettings;
  readonly signal: AbortSignal;
  /** Says what becomes of the test while it runs. */
  readonly warn: (line: string) => void;
}

export async function ensured({ cluster }: Pick<Acting, "cluster">, object: Manifest): Promise<unknown> {
  try {
    return await cluster.create(object);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    return cluster.get(resourceOf(object), object.metadata.name);
  }
}

export function startPod(acting: Acting, wanted: PodWanted): Promise<unknown> {
  return ensured(acting, podObject(acting.settings, wanted));
}

export async function readyPod(acting: Acting, name: string): Promise<TestPod> {
  const pods = inNamespace(PODS, acting.settings.namespace);
  const found = await waitFor(`pod ${name}`, acting, async () => {
    const pod = await acting.cluster.get(pods, name);
    return isReady(pod) ? { pod } : whyNotReady(pod);
  });
  const ips = itemsOf(valueAt(found.pod, "status", "podIPs")).flatMap((one) => {
    return stringOf(fieldsOf(one)["ip"]) ?? [];
  });
  return { name, addresses: Object.fromEntries(ips.map((ip): [IPFamily, string] => [familyOf(ip), ip])) };
}

/** Removes a pod and waits until it is gone: also one that is not there. */
export function removePod({ cluster, settings }: Acting, name: string): Promise<void> {
  return cluster.remove(inNamespace(PODS, settings.namespace), name);
}

/** What a container has printed once one of its lines is of that kind. */
export function linesUntil(
  acting: Acting,
  pod: string,
  container: string,
  kind: Line["kind"],
): Promise<readonly Line[]> {
  return waitFor(`${container} of pod ${pod} to end`, acting, async () => {
    const lines = await linesOf(acting, pod, container);
    return lines.some((line) => line.kind === kind) ? lines : "no answer yet";
  });
}

export async function linesOf({ cluster, settings }: Acting, pod: string, container: string): Promise<readonly Line[]> {
  const from: Container = { namespace: settings.namespace, name: pod, container };
  return linesIn(await cluster.log(from, LOG).catch(notStarted));
}

/** The kubelet has no log of a container that has not started. */
function notStarted(error: unknown): string {
  if (error instanceof ApiError && error.status !== 403) return "";
  throw error;
}

function linesIn(log: string): readonly Line[] {
  return log
    .split("\n")
    .flatMap((line): readonly Line[] => (line.startsWith("{") && line.endsWith("}") ? [JSON.parse(line)] : []));
}

/** Milliseconds until is said what is waited for. */
const SILENT_MS = 10_000;

/** Looks again and again; a text is why it is not so yet. It is said once it has taken a while. */
export async function waitFor<T extends object>(
  what: string,
  { signal, warn }: Pick<Acting, "signal" | "warn">,
  look: () => Promise<T | string>,
  { patienceMs = PATIENCE_MS, clock = systemClock }: { readonly patienceMs?: number; readonly clock?: Clock } = {},
): Promise<T> {
  const begin = clock.monotonic();
  let said = "";
  for (;;) {
    if (signal.aborted) throw new CommandFailure("stopped");
    const found = await look();
    if (typeof found !== "string") return found;
    const waited = clock.monotonic() - begin;
    if (waited > patienceMs) throw new CommandFailure(`waited ${patienceMs / 1_000} s for ${what}: ${found}`);
    if (waited >= SILENT_MS && found !== said) {
      said = found;
      warn(`waiting for ${what}, up to ${patienceMs / 1_000} s: ${found}`);
    }
    await sleep(clock, LOOK_MS, signal);
  }
}
