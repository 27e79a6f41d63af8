/** Holds the migration by a Lease. */

import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { fieldsOf, stringOf, systemClock } from "@fairlead/base";
import { ApiError } from "../../cluster/api-error.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { Resource } from "../../cluster/resources.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { type HeldBy, HeldByAnother, type HolderPort, whileHolding } from "../../migrate/hold.ts";
import { MANAGED_BY_LABEL, MANAGER, NAMESPACE, PROCESS_ANNOTATION } from "../../migrate/state.ts";

/**
 * Changes the cluster while no other run does. One that was killed on this machine is known at once; one elsewhere is
 * waited for until it is given up.
 *
 * @param work ends when its signal aborts
 */
export async function whileOnlyWriter<T>(
  cluster: Cluster,
  { signal, warn }: Context,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const onWait = (holder: string, milliseconds: number) =>
    warn(
      `another run has not ended: ${holder}; this one continues in ${milliseconds / 1000} s unless the other one is alive`,
    );
  const options = { holder: `process ${process.pid} on ${hostname()}`, clock: systemClock, onWait, signal };
  try {
    return await whileHolding(leasePort(cluster), options, (lost) => work(AbortSignal.any([signal, lost])));
  } catch (error) {
    throw error instanceof HeldByAnother ? new CommandFailure(error.message, { cause: error }) : error;
  }
}

const LEASES: Resource = { apiVersion: "coordination.k8s.io/v1", plural: "leases", namespace: NAMESPACE };

/** The run that changes the cluster: a Lease that exists meanwhile. The API server refuses a write over a newer one. */
function leasePort(cluster: Cluster): HolderPort {
  const read = async () => heldBy(await cluster.get(LEASES, MANAGER));
  return {
    read,
    async write(holder, before) {
      const object = lease(holder, before?.version);
      try {
        return heldBy(await (before === undefined ? cluster.create(object) : cluster.replace(object)));
      } catch (error) {
        // Another one has written it, or it is there already.
        if (error instanceof ApiError && error.status === 409) return undefined;
        // No answer: it may have been written all the same.
        const now = await read();
        if (now?.version === before?.version || now?.holder !== holder) throw error;
        return now;
      }
    },
    async release(held) {
      if ((await read())?.version === held.version) await cluster.remove(LEASES, MANAGER);
    },
  };
}

function lease(holderIdentity: string, resourceVersion: string | undefined) {
  const annotations = { [PROCESS_ANNOTATION]: ownProcess() };
  const metadata = { name: MANAGER, namespace: NAMESPACE, labels: { [MANAGED_BY_LABEL]: MANAGER }, annotations };
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: resourceVersion === undefined ? metadata : { ...metadata, resourceVersion },
    spec: { holderIdentity, renewTime: `${new Date().toISOString().slice(0, -1)}000Z` },
  };
}

function heldBy(object: unknown): HeldBy | undefined {
  if (object === undefined) return undefined;
  const { metadata, spec } = fieldsOf(object);
  const { resourceVersion, annotations } = fieldsOf(metadata);
  const process = processState(stringOf(fieldsOf(annotations)[PROCESS_ANNOTATION]) ?? "");
  return {
    version: stringOf(resourceVersion) ?? "",
    holder: stringOf(fieldsOf(spec)["holderIdentity"]) ?? "a holder without a name",
    ...(process !== undefined && { process }),
  };
}

/** This process, for others on the same machine; nothing where there is no /proc. */
function ownProcess(): string {
  try {
    return JSON.stringify(ownMark());
  } catch {
    return "";
  }
}

/** @returns undefined: what is written is of another machine, or says nothing */
function processState(written: string): "runs" | "gone" | undefined {
  try {
    const { pid, start, namespace, boot } = fieldsOf(JSON.parse(written));
    return stateHere({
      pid: Number(pid),
      start: Number(start),
      namespace: Number(namespace),
      boot: stringOf(boot) ?? "",
    });
  } catch {
    return undefined;
  }
}

/** A process, distinguished from every other one that ever had its number. */
export interface ProcessMark {
  readonly pid: number;
  /** When it started, in ticks since boot (field 22 of /proc/PID/stat, proc_pid_stat(5)). */
  readonly start: number;
  /** The process namespace that `pid` counts in (the inode of /proc/PID/ns/pid). */
  readonly namespace: number;
  /** /proc/sys/kernel/random/boot_id */
  readonly boot: string;
}

export function ownMark(): ProcessMark {
  return { pid: process.pid, start: startOf(process.pid) ?? 0, namespace: ownNamespace(), boot: bootId() };
}

/** Whether the process runs. Undefined: it is not of this machine, or of another process namespace, as far as known. */
function stateHere({ pid, start, namespace, boot }: ProcessMark): "runs" | "gone" | undefined {
  if (boot !== bootId() || namespace !== ownNamespace()) return undefined;
  return startOf(pid) === start ? "runs" : "gone";
}

/** A process that has ended and that its parent has not asked for: where nothing does, it stays. */
const ZOMBIE = "Z";

/** Undefined: there is no such process. */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the program stands in parentheses and may have any character in it, spaces and parentheses too.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === ZOMBIE ? undefined : Number(fields[19]);
  } catch {
    return undefined;
  }
}

function ownNamespace(): number {
  return Number(/\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0]);
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
