import type { NodeEvent } from "@fairlead/intake";
import type { CIDRReport, NetworksUpdate, SourceReport } from "@fairlead/networks";
import type { Fields, Log } from "../log/log.ts";

/** CIDRs of one decision that have a line of their own. */
const MOST_LINES = 20;

export interface LogEntry {
  readonly level: "info" | "warn";
  readonly message: string;
  readonly fields: Fields;
  readonly event?: NodeEvent;
}

/**
 * Lines and Events for what is new.
 *
 * @param before the sources' states that were logged before
 */
export function logEntriesOf(
  before: readonly SourceReport[],
  { sources, changes }: NetworksUpdate,
): readonly LogEntry[] {
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

export function writeLogEntries(entries: readonly LogEntry[], log: Log, onEvent: (event: NodeEvent) => void): void {
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
