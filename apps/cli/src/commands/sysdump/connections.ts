import type { Tracking } from "@fairlead/kernel";

/** More are not read: the kernel's own count says how many there are. */
const MOST = 200_000;

/** How many connections a node tracks of each kind; no address of any. */
export interface ConnectionCounts {
  /** By `IPv4 TCP ESTABLISHED`, in the order of names. */
  readonly counts: Readonly<Record<string, number>>;
  /** Whether all were read. */
  readonly complete: boolean;
}

export async function countConnections(tracking: Tracking): Promise<ConnectionCounts> {
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
