/** Live networks in an agent: setting them up, keeping what is known, and what is logged and reported of them. */

import { readFile } from "node:fs/promises";
import { type Clock, errorChainText, errorCode } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { ClusterState, IPFamily, Ownership } from "@fairlead/core";
import type { FilterOptions } from "@fairlead/endpoint-filter";
import { LiveNetworks, type NetworksSetup, type NodeEvent, type NodeEvents, networksSettings } from "@fairlead/intake";
import {
  type CIDRReport,
  type LastKnown,
  type NetworksUpdate,
  NOTHING_KNOWN,
  parseLastKnown,
  type SourceReport,
  serializeLastKnown,
} from "@fairlead/networks";
import type { Fields, Log } from "./log.ts";
import type { NetworkMetrics } from "./metrics/part-metrics.ts";
import { readStateFile, replaceFile, stateFile } from "./ownership.ts";
import type { SyncFollower } from "./sync/follower.ts";

interface LiveNetworksWorld {
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: Pick<NodeEvents, "report"> | undefined;
}

/** The live networks with all that follows from their decisions alongside the plan: log, Events, metrics, the file. */
export function liveNetworks(
  { clock, log, events }: LiveNetworksWorld,
  setup: NetworksSetup,
  state: ClusterState,
  metrics: NetworkMetrics | undefined,
  known: KnownKeeper,
): LiveNetworks {
  let reported: readonly SourceReport[] = [];
  return new LiveNetworks({
    setup,
    state,
    clock,
    onProblem: (source, object, problem) => {
      log.warn("Invalid network object; using its valid CIDRs", { source, object, problem });
    },
    keep: (read) => known.keep(read),
    onDecided({ conflicts }, update) {
      metrics?.set(conflicts, update);
      writeLogEntries(logEntriesOf(reported, update), log, (event) => void events?.report(event));
      reported = update.sources;
    },
  });
}

/** Undefined: no network is learned. */
export async function setUpNetworks(
  config: AgentConfig,
  filter: FilterOptions,
  log: Log,
): Promise<NetworksSetup | undefined> {
  const settings = networksSettings(config, filter, await podNamespace());
  if (settings === undefined) return undefined;
  return { settings, known: await loadKnown(stateFile(config.stateDir, "networks"), log) };
}

/** Keeps up with where endpoints are. */
export function networksFollower(networks: LiveNetworks): SyncFollower {
  return {
    taken: () => networks.syncBegins(),
    planned: (_step, { services }) => networks.see(services),
  };
}

interface ForeignAlarmParts {
  /** 0…100 */
  readonly maxForeignPercent: number;
  readonly families: readonly IPFamily[];
  readonly services: (family: IPFamily) => Readonly<Record<Ownership, number>>;
  readonly metrics: Pick<NetworkMetrics, "setManyForeign"> | undefined;
  readonly log: Pick<Log, "warn">;
  readonly events: Pick<NodeEvents, "report"> | undefined;
}

/** Reports once that more services of a family are foreign than expected, and again after they were not. */
export function foreignAlarm(parts: ForeignAlarmParts): { planned(): void } {
  const { maxForeignPercent, families, services, metrics, log, events } = parts;
  const raised = new Set<IPFamily>();
  const look = (family: IPFamily) => {
    const { ours, foreign, mixed } = services(family);
    const all = ours + foreign + mixed;
    const isMany = foreign * 100 > all * maxForeignPercent;
    metrics?.setManyForeign(family, isMany);
    if (!isMany) {
      raised.delete(family);
      return;
    }
    if (raised.has(family)) return;
    raised.add(family);
    log.warn("More services are foreign than maxForeignPercent; they stay so, check the learned networks and rules", {
      ipFamily: family,
      foreign,
      services: all,
      maxForeignPercent,
    });
    const message = `${foreign} of ${all} ${family} services are another network's, more than ${maxForeignPercent} %`;
    void events?.report({ type: "Warning", reason: "ManyForeignServices", message });
  };
  return { planned: () => families.forEach(look) };
}

/**
 * Writes the last known networks to their file whenever they differ. That it cannot be written is reported once and no
 * reason to stop.
 */
export class KnownKeeper {
  readonly #path: string | undefined;
  readonly #log: Log;
  #next: (() => LastKnown) | undefined;
  #text = "";
  #writing: Promise<void> = Promise.resolve();
  #reported = false;

  /** @param path undefined: nothing is kept */
  constructor(path: string | undefined, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** @param read is called when the writing begins: what comes while one goes on is written once */
  keep(read: () => LastKnown): void {
    const waits = this.#next !== undefined;
    this.#next = read;
    if (!waits) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when all is written. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const read = this.#next;
    this.#next = undefined;
    if (read === undefined || this.#path === undefined) return;
    const text = serializeLastKnown(read());
    if (text === this.#text) return;
    this.#text = text;
    try {
      await replaceFile(this.#path, text);
      this.#reported = false;
    } catch (error) {
      if (this.#reported) return;
      this.#reported = true;
      const message = "Failed to save learned networks; a restart waits for their first lists";
      this.#log.warn(message, { file: this.#path, error: errorChainText(error) });
    }
  }
}

/** Where a pod finds the namespace that it runs in. */
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/** Undefined: this is no pod, or its service account is not mounted. */
async function podNamespace(): Promise<string | undefined> {
  try {
    return (await readFile(NAMESPACE_FILE, "utf8")).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Whatever is wrong with the file: nothing is known, and one line. */
async function loadKnown(path: string | undefined, log: Log): Promise<LastKnown> {
  if (path === undefined) return NOTHING_KNOWN;
  try {
    const { known, reason } = parseLastKnown(await readStateFile(path));
    if (reason !== undefined)
      log.warn("Cannot use the last known networks; starting without them", { file: path, reason });
    return known;
  } catch (error) {
    const missing = errorCode(error) === "ENOENT";
    if (!missing)
      log.warn("Cannot use the last known networks; starting without them", {
        file: path,
        reason: errorChainText(error),
      });
    return NOTHING_KNOWN;
  }
}

/** CIDRs of one decision that have a line of their own. */
const MOST_LINES = 20;

interface LogEntry {
  readonly level: "info" | "warn";
  readonly message: string;
  readonly fields: Fields;
  readonly event?: NodeEvent;
}

/** Lines and Events for what is new. */
function logEntriesOf(before: readonly SourceReport[], { sources, changes }: NetworksUpdate): readonly LogEntry[] {
  const states = new Map(before.map(({ source, state }) => [source, state]));
  return [
    ...sources.flatMap((one) => (states.get(one.source) === one.state ? [] : ofSource(one))),
    ...changes.flatMap(({ before: known, after }) => {
      if (after !== undefined)
        return known?.stage === after.stage && known.why === after.why ? [] : ofCIDR(after, known);
      return known?.stage === "effective" ? ofGone(known) : [];
    }),
  ];
}

function writeLogEntries(entries: readonly LogEntry[], log: Log, onEvent: (event: NodeEvent) => void): void {
  const worstFirst = entries.toSorted((a, b) => Number(b.level === "warn") - Number(a.level === "warn"));
  for (const { level, message, fields, event } of worstFirst.slice(0, MOST_LINES)) {
    log[level](message, fields);
    if (event !== undefined) onEvent(event);
  }
  const more = entries.length - MOST_LINES;
  if (more > 0) log.info("Further changes of learned CIDRs suppressed; /ownership lists all", { more });
}

function ofSource({ source, side, state, forbidden = [] }: SourceReport): readonly LogEntry[] {
  if (side === "consent") return ofConsent(source, state);
  if (state !== "forbidden") return [{ level: "info", message: "Source of pod networks", fields: { source, state } }];
  const message =
    "Cannot read a source of pod networks; what was learned of it stays in effect, its role must allow list and watch";
  const resources = forbidden.join(",");
  const event = warning("NetworkSourceForbidden", `${source}: ${message}: ${resources}`);
  return [{ level: "warn", message, fields: { source, resources }, event }];
}

function ofConsent(configMap: string, state: SourceReport["state"]): readonly LogEntry[] {
  if (state !== "forbidden") return [{ level: "info", message: "Consent object", fields: { configMap, state } }];
  const message =
    "Cannot read the consent object; what was last read stays in effect, its role must allow get, list and watch";
  const event = warning("NetworkConsentForbidden", `ConfigMap ${configMap}: ${message}`);
  return [{ level: "warn", message, fields: { configMap }, event }];
}

function ofCIDR(one: CIDRReport, before: CIDRReport | undefined): readonly LogEntry[] {
  const { cidr, source, side, stage, why = "", objects } = one;
  const fields = { cidr, source, side, object: objects.join(",") };
  switch (stage) {
    case "effective":
      if (why !== "") {
        const level = one.kept === true ? "info" : "warn";
        return [{ level, message: "Learned CIDR kept", fields: { ...fields, why } }];
      }
      return before?.stage === "effective" ? [] : [{ level: "info", message: "CIDR learned", fields }];
    case "refused": {
      const event = warning("NetworkCIDRRefused", `${cidr} of ${fields.object} does not count: ${why}`);
      return [
        {
          level: "warn",
          message: "Learned CIDR refused; the other CIDRs stay in effect",
          fields: { ...fields, why },
          event,
        },
      ];
    }
    case "held": {
      const event = warning("NetworkCIDRHeld", `${cidr} of ${fields.object} does not take effect: ${why}`);
      return [
        {
          level: "warn",
          message: "Learned CIDR held; it takes effect once it is accepted",
          fields: { ...fields, why },
          event,
        },
      ];
    }
  }
}

function ofGone({ cidr, source, side }: CIDRReport): readonly LogEntry[] {
  return [{ level: "info", message: "Learned CIDR no longer in effect", fields: { cidr, source, side } }];
}

function warning(reason: string, message: string): NodeEvent {
  return { type: "Warning", reason, message };
}
