import type { ServicePortGroup } from "@fairlead/core";
import type { VirtualServer } from "@fairlead/netfilter";

/** The schedulers that a service may ask for, with what each needs beside its name. */
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

export type Scheduler = keyof typeof FLAGS;

export const SCHEDULERS: readonly Scheduler[] = Object.keys(FLAGS).filter(isScheduler);

export function isScheduler(name: string): name is Scheduler {
  return Object.hasOwn(FLAGS, name);
}

/** How a scheduler stands in a virtual server. */
export function schedulerOptions(scheduler: Scheduler): Pick<VirtualServer, "scheduler" | "flags"> {
  return { scheduler, flags: FLAGS[scheduler] };
}

/** The annotation by which a Service asks for a scheduler of its own. */
export const SCHEDULER_ANNOTATION = "fairlead.dev/ipvs-scheduler";

/** The scheduler that the service asks for; undefined where it asks for none, or for one that does not exist. */
export function askedScheduler({ annotations }: ServicePortGroup): Scheduler | undefined {
  const asked = annotations[SCHEDULER_ANNOTATION];
  return asked !== undefined && isScheduler(asked) ? asked : undefined;
}

/** What is wrong with the annotation, for its service's owner. */
export function schedulerProblem({ service, annotations }: ServicePortGroup): string | undefined {
  const asked = annotations[SCHEDULER_ANNOTATION];
  if (asked === undefined || isScheduler(asked)) return undefined;
  const wanted = `must be one of ${SCHEDULERS.join(", ")}`;
  return `Service ${service}: annotation ${SCHEDULER_ANNOTATION} is ${JSON.stringify(asked)}; it ${wanted}. The default is used`;
}
