import { hostname } from "node:os";
import { fieldsOf, stringOf, systemClock } from "@fairlead/base";
import {
  type HeldBy,
  HeldByAnother,
  type HolderPort,
  MANAGED_BY_LABEL,
  MANAGER,
  NAMESPACE,
  PROCESS_ANNOTATION,
  whileHolding,
} from "@fairlead/migrate";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { type KubectlOptions, kubectl } from "../../node/kubectl.ts";
import { ownProcess, processState } from "./own-process.ts";

/**
 * Changes the cluster while no other run does. One that was killed on this machine is known at once; one elsewhere is
 * waited for until it is given up.
 *
 * @param work ends when its signal aborts
 * @throws CommandFailure when another run is changing it
 */
export async function changingAlone<T>(
  kubectlOptions: KubectlOptions,
  { signal, warn }: Context,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const onWait = (holder: string, milliseconds: number) =>
    warn(`another run has not ended: ${holder}; this one goes on in ${milliseconds / 1000} s unless that is alive`);
  const options = { holder: `process ${process.pid} on ${hostname()}`, clock: systemClock, onWait, signal };
  try {
    return await whileHolding(leasePort(kubectlOptions), options, (lost) => work(AbortSignal.any([signal, lost])));
  } catch (error) {
    throw error instanceof HeldByAnother ? new CommandFailure(error.message, { cause: error }) : error;
  }
}

const LEASE = ["lease", MANAGER, `--namespace=${NAMESPACE}`];

/** Who changes the cluster: a Lease that is there only meanwhile. The API server refuses a write over a newer one. */
function leasePort(options: KubectlOptions): HolderPort {
  const read = async () =>
    heldBy((await kubectl(["get", ...LEASE, "--ignore-not-found", "--output=json"], options)).stdout);
  return {
    read,
    async write(holder, before) {
      const verb = before === undefined ? "create" : "replace";
      const input = JSON.stringify(lease(holder, before?.version));
      try {
        return heldBy((await kubectl([verb, "--filename=-", "--output=json"], options, { input })).stdout);
      } catch (error) {
        // Refused, and not merely failed: it is another one by now.
        const now = await read();
        if (now?.version === before?.version) throw error;
        return now?.holder === holder ? now : undefined;
      }
    },
    async release(held) {
      if ((await read())?.version !== held.version) return;
      await kubectl(["delete", ...LEASE, "--ignore-not-found"], options);
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

function heldBy(json: string): HeldBy | undefined {
  if (json.trim() === "") return undefined;
  const { metadata, spec } = fieldsOf(JSON.parse(json));
  const { resourceVersion, annotations } = fieldsOf(metadata);
  const process = processState(stringOf(fieldsOf(annotations)[PROCESS_ANNOTATION]) ?? "");
  return {
    version: stringOf(resourceVersion) ?? "",
    holder: stringOf(fieldsOf(spec)["holderIdentity"]) ?? "somebody without a name",
    ...(process !== undefined && { process }),
  };
}
