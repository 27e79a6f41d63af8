import type { StateParts } from "@fairlead/inspect";
import {
  CommandError,
  type Connection,
  type ConnectionEvent,
  createTrackingTools,
  lines,
  openTracking,
  type Runner,
  type Tracking,
} from "@fairlead/kernel";
import { CONNECTIONS } from "./host.ts";

/** Prints what this host tracks, for `podTracking`. */
export async function printConnections(
  argv: readonly string[],
  runner: Runner,
  signal: AbortSignal,
  out: (text: string) => void,
): Promise<void> {
  const tracking = await openTracking(runner);
  const items = argv.includes(FOLLOW) ? await tracking.follow(signal) : tracking.list();
  for await (const item of items) out(`${JSON.stringify(item)}\n`);
}

const FOLLOW = "--follow";

/**
 * What a node tracks whose programs the runner starts: by the pod's own `fairlead`, and where there is none by
 * conntrack-tools.
 */
export function podTracking(runner: Runner): Tracking {
  const tools = createTrackingTools(runner);
  const asked = (...more: readonly string[]) => ["fairlead", CONNECTIONS, ...more] as const;
  return {
    list: () => otherwise(itemsOf<Connection>(runner.stream(asked(), { timeoutMs: 0 })), () => tools.list()),
    follow: async (signal) => {
      const events = itemsOf<ConnectionEvent>(runner.stream(asked(FOLLOW), { timeoutMs: 0, signal }));
      return otherwise(untilAborted(events, signal), () => toolEvents(tools, signal));
    },
  };
}

async function* toolEvents(tools: Tracking, signal: AbortSignal): AsyncGenerator<ConnectionEvent, void, void> {
  yield* await tools.follow(signal);
}

/** More are not read: the kernel's own count says how many there are. */
const MOST = 200_000;

/** How many connections a node tracks of each kind; no address of any. */
export async function countConnections(tracking: Tracking): Promise<StateParts["connections"]> {
  const counts = new Map<string, number>();
  let read = 0;
  for await (const { family, protocol, state, replied } of tracking.list()) {
    if (read >= MOST) break;
    read += 1;
    const kind = [family, protocol, state ?? (replied ? "replied" : "unreplied")].join(" ");
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  return { counts: Object.fromEntries(sorted), complete: read < MOST };
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** Lines that a `fairlead` of the same image printed. */
async function* itemsOf<Item>(output: AsyncIterable<string>): AsyncGenerator<Item, void, void> {
  for await (const line of lines(output)) if (line !== "") yield JSON.parse(line);
}

async function* untilAborted<Item>(items: AsyncIterable<Item>, signal: AbortSignal): AsyncGenerator<Item, void, void> {
  try {
    yield* items;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** The second one where the first ends with an error before it gave anything: it is not there. */
async function* otherwise<Item>(
  first: AsyncIterable<Item>,
  second: () => AsyncIterable<Item>,
): AsyncGenerator<Item, void, void> {
  let given = false;
  try {
    for await (const item of first) {
      given = true;
      yield item;
    }
  } catch (error) {
    if (given || !(error instanceof CommandError)) throw error;
    yield* second();
  }
}
