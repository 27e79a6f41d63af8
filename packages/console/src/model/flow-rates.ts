import type { Flow } from "@fairlead/inspect";
import type { FlowsSince } from "../protocol/index.ts";

/** A look after a longer pause begins anew: what came and went meanwhile was never seen. */
const LONGEST_MS = 15_000;
/** Nodes, or services of a node, that are compared with the look before. */
const MOST_WATCHED = 8;

interface Look {
  readonly at: number;
  /** Bytes so far, by connection. */
  readonly bytes: ReadonlyMap<string, number>;
}

/** What has come since the look before, of the connections in view. */
export class FlowRates {
  /** What was looked at last comes last. */
  readonly #looks = new Map<string, Look>();

  /**
   * @param what is looked at: a node, or a service on it
   * @param flows all of its connections
   * @param at milliseconds since the epoch
   * @returns undefined: no look before, or too long ago
   */
  take(what: string, flows: readonly Flow[], at: number): FlowsSince | undefined {
    const before = this.#looks.get(what);
    const look = { at, bytes: new Map(flows.map((flow) => [idOf(flow), bytesOf(flow)])) };
    this.#looks.delete(what);
    this.#looks.set(what, look);
    const [oldest] = this.#looks.keys();
    if (this.#looks.size > MOST_WATCHED && oldest !== undefined) this.#looks.delete(oldest);
    if (before === undefined || at <= before.at || at - before.at > LONGEST_MS) return undefined;
    const counted =
      flows.length === 0 || flows.some(({ sent, received }) => sent !== undefined || received !== undefined);
    const { opened, bytes } = difference(before, look);
    return { ms: at - before.at, opened, ...(counted && { bytes }) };
  }
}

function difference(before: Look, { bytes: now }: Look): { readonly opened: number; readonly bytes: number } {
  let [opened, bytes] = [0, 0];
  for (const [id, count] of now) {
    const known = before.bytes.get(id);
    // Of fewer bytes than before it is another one from the same port.
    const isNew = known === undefined || count < known;
    if (isNew) opened += 1;
    bytes += isNew ? count : count - known;
  }
  return { opened, bytes };
}

function idOf({ protocol, client, frontend }: Flow): string {
  return `${protocol} ${client.address} ${client.port} ${frontend.address} ${frontend.port}`;
}

function bytesOf({ sent, received }: Flow): number {
  return (sent?.bytes ?? 0) + (received?.bytes ?? 0);
}
