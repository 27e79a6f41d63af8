// What `fairlead verify --watch` reports: lines, Events on Services, metrics and a page.
import type { IPFamily } from "@fairlead/core";
import { DIFFERENCE_KINDS, type DifferenceEvent, type TrackedDifference } from "@fairlead/inspect";
import type { NodeEvent, NodeEvents } from "@fairlead/intake";
import type { WatchedFamily } from "./family.ts";

/** The component of the Events, other than kube-proxy's own. */
export const COMPONENT = "fairlead-shadow";

type Fields = Readonly<Record<string, unknown>>;

export interface WatchLog {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  /** What only a search for a fault asks for: it is left out. */
  verbose(verbosity: number, message: string, fields?: Fields): void;
}

/** Lines on standard output: text with `key="value"` pairs, or JSON. No value can begin a line of its own. */
export function watchLog(format: "json" | "text", out: (text: string) => void, now: () => number): WatchLog {
  const say = (level: "info" | "warn", message: string, fields: Fields) => {
    const time = new Date(now()).toISOString();
    if (format === "json") return out(`${JSON.stringify({ time, level, message, ...fields })}\n`);
    const pairs = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
    out(`${time} ${level} ${message}${pairs.join("")}\n`);
  };
  return {
    info: (message, fields = {}) => say("info", message, fields),
    warn: (message, fields = {}) => say("warn", message, fields),
    verbose: () => {},
  };
}

/** A line for each service that begins to differ for good, with an Event about it, and one when it agrees again. */
export function reportEvents(
  log: WatchLog,
  events: Pick<NodeEvents, "report"> | undefined,
): (event: DifferenceEvent) => void {
  return ({ kind, subject, differences }) => {
    const { name: service, family: ipFamily } = subject;
    if (kind === "agrees") {
      log.info("kube-proxy matches the plan again", { service, ipFamily });
      return;
    }
    const [first, ...others] = differences;
    if (first === undefined) return;
    const otherPackets = others.length;
    log.warn("kube-proxy differs from the plan; nothing is changed", { service, ipFamily, ...first, otherPackets });
    if (subject.service !== undefined) void events?.report(eventOf(service, first, subject.service));
  };
}

function eventOf(
  name: string,
  { packet, found, wanted }: DifferenceEvent["differences"][number],
  service: NonNullable<NodeEvent["service"]>,
): NodeEvent {
  const message = `${name}: ${packet}: kube-proxy: ${found}; Fairlead: ${wanted}`;
  return { type: "Warning", reason: "ShadowDifference", action: "Compare", message, service };
}

export type SeenFamily = Pick<WatchedFamily, "family" | "suspicions" | "problem" | "round">;

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Of one family: values by what follows `ip_family` among the labels. */
  readonly values: (family: SeenFamily) => readonly (readonly [labels: string, value: number])[];
}

const once = (value: number) => [["", value]] as const;

/** Gauges, each with the label `ip_family`. */
export const METRICS: readonly Metric[] = [
  {
    name: "fairlead_shadow_differences",
    help: "Service ports for which kube-proxy has differed from Fairlead's plan for longer than the grace period",
    labels: ["ip_family", "kind"],
    values: ({ suspicions }) => DIFFERENCE_KINDS.map((kind) => [`,kind="${kind}"`, countOf(kind, suspicions)]),
  },
  {
    name: "fairlead_shadow_blind",
    help: "1 while the kernel cannot be read and the comparison is paused",
    labels: ["ip_family"],
    values: ({ problem }) => once(problem === undefined ? 0 : 1),
  },
  {
    name: "fairlead_shadow_compared_services",
    help: "Service ports in the last round through all of them",
    labels: ["ip_family"],
    values: ({ round }) => once(round?.services ?? 0),
  },
  {
    name: "fairlead_shadow_last_round_timestamp_seconds",
    help: "When the last round through all services ended",
    labels: ["ip_family"],
    values: ({ round }) => once((round?.at ?? 0) / 1000),
  },
  {
    name: "fairlead_shadow_last_round_seconds",
    help: "Duration of the last round through all services",
    labels: ["ip_family"],
    values: ({ round }) => once((round?.milliseconds ?? 0) / 1000),
  },
];

/** In Prometheus' text format, version 0.0.4. */
export function metricsText(families: readonly SeenFamily[]): string {
  return METRICS.map(({ name, help, values }) => {
    const lines = families.flatMap((one) =>
      values(one).map(([labels, value]) => `${name}{ip_family="${one.family}"${labels}} ${value}\n`),
    );
    return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
  }).join("");
}

/** By the kind of each subject's first difference. */
function countOf(kind: string, suspicions: readonly TrackedDifference[]): number {
  return suspicions.filter(({ lasting, differences: [first] }) => lasting && first?.kind === kind).length;
}

/** Services of each page and family that are listed one by one. */
const MOST_LISTED = 200;

export function differencesPage(mode: string, families: readonly SeenFamily[], grace: number): object {
  return {
    mode,
    gracePeriodSeconds: grace / 1000,
    families: Object.fromEntries(families.map((one) => [one.family, pageOf(one)])),
  };
}

interface FamilyPage {
  readonly family: IPFamily;
  readonly differing: number;
}

function pageOf({ family, suspicions, problem, round }: SeenFamily): FamilyPage & Readonly<Record<string, unknown>> {
  const lasting = suspicions.filter((one) => one.lasting);
  return {
    family,
    ...(problem !== undefined && { problem }),
    lastRound: round && {
      at: new Date(round.at).toISOString(),
      seconds: round.milliseconds / 1000,
      services: round.services,
    },
    differing: lasting.length,
    withinGrace: suspicions.length - lasting.length,
    services: lasting.slice(0, MOST_LISTED).map(({ subject, differences }) => ({ name: subject.name, differences })),
  };
}
