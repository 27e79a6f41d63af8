import type { Backend } from "@fairlead/core";
import type { CrowdNode } from "./crowd.ts";
import { type CrowdKernel, TracedCrowd } from "./traced-crowd.ts";

/** A kernel in memory, which may have to follow what a backend has written. */
interface ServedKernel extends CrowdKernel {
  changed?(): void;
}

type Served = Pick<CrowdNode, "apply" | "fullSync" | "restart" | "connect">;

/** @param backendAnew the backend as another process makes it, on the same kernel */
export function servedCrowd(
  backendAnew: () => Pick<Backend, "apply" | "sync">,
  kernel: ServedKernel,
  random: () => number,
): Served {
  let backend = backendAnew();
  const packets = new TracedCrowd(kernel, random);
  const changing = async (work: Promise<unknown>) => {
    await work;
    kernel.changed?.();
  };
  return {
    apply: (plan, change) => changing(backend.apply(plan, change)),
    fullSync: (plan) => changing(backend.sync(plan)),
    restart: (plan) => {
      backend = backendAnew();
      return changing(backend.sync(plan));
    },
    connect: (client, to) => packets.connect(client, to),
  };
}
