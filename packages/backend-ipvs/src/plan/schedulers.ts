import type { ServicePortGroup } from "@fairlead/core";
import type { VirtualServer } from "@fairlead/netfilter";

/** The schedulers that a service may ask for, with what each needs alongside its name. */
const FLAGS = {
  rr: [],
  wrr: [],
  lc: [],
  wlc: [],
  lblc: [],
  lblcr: [],
  sh: [],
  dh: [],
  sed: [],
  nq: [],
  // The source's port counts too, or all connections of a client would go one way.
  mh: ["mh-port"],
  fo: [],
  ovf: [],
  twos: [],
} as const satisfies Record<string, readonly string[]>;

/** A scheduler of ip_vs by its kernel name, such as `rr` or `sh`. */
export type Scheduler = keyof typeof FLAGS;

/** Every scheduler that this mode accepts. */
export const SCHEDULERS: readonly Scheduler[] = Object.keys(FLAGS).filter(isScheduler);

/** Whether ip_vs has a scheduler of this name that this mode accepts. */
export function isScheduler(name: string): name is Scheduler {
  return Object.hasOwn(FLAGS, name);
}

/** How a scheduler stands in a virtual server. */
export interface SchedulerOptions extends Pick<VirtualServer, "flags"> {
  readonly scheduler: Scheduler;
}

export function schedulerOptions(scheduler: Scheduler): SchedulerOptions {
  return { scheduler, flags: FLAGS[scheduler] };
}

/** Hashes the client's address without its port: all connections of a client go one way (ip_vs_mh.c). */
const BY_SOURCE: SchedulerOptions = { scheduler: "mh", flags: [] };

/** The annotation by which a Service asks for a scheduler of its own. */
export const SCHEDULER_ANNOTATION = "fairlead.dev/ipvs-scheduler";

/**
 * The scheduler that the service asks for; undefined where it asks for none, or for one that does not exist. What it
 * asks for by name comes before a balance that every mode knows.
 */
export function askedScheduler({ annotations, balance }: ServicePortGroup): SchedulerOptions | undefined {
  const asked = annotations[SCHEDULER_ANNOTATION];
  if (asked !== undefined && isScheduler(asked)) return schedulerOptions(asked);
  return balance === "source-hash" ? BY_SOURCE : undefined;
}

/** What is wrong with the annotation, for its service's owner. */
export function schedulerProblem({ service, annotations }: ServicePortGroup): string | undefined {
  const asked = annotations[SCHEDULER_ANNOTATION];
  if (asked === undefined || isScheduler(asked)) return undefined;
  const wanted = `must be one of ${SCHEDULERS.join(", ")}`;
  return `Service ${service}: annotation ${SCHEDULER_ANNOTATION} is ${JSON.stringify(asked)}; it ${wanted}; using the default`;
}
