/** The process that holds a node's lock. */
export interface LockHolder {
  /** Its process id. */
  readonly pid: number;
  /** RFC 3339; absent like `version` where it cannot be read. */
  readonly startedAt?: string;
  /** Of the program, as it gave it. */
  readonly version?: string;
}

/** What a lock file says: the agent that locked it last, for the network namespace with this inode. */
export function holderText(holder: LockHolder, network: number): string {
  return `${JSON.stringify({ network, ...holder })}\n`;
}

/** Undefined when the text is no agent's, or of another network namespace's. */
export function parseHolder(text: string, network: number): LockHolder | undefined {
  try {
    return holderOf(JSON.parse(text), network);
  } catch {
    return undefined;
  }
}

/** `process 12 (version 1.2.3, running since 2030-01-01T00:00:00.000Z)` */
export function describeHolder({ pid, version, startedAt }: LockHolder): string {
  const known =
    version === undefined || startedAt === undefined ? "" : ` (version ${version}, running since ${startedAt})`;
  return `process ${pid}${known}`;
}

function holderOf(value: unknown, of: number): LockHolder | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { network, pid, startedAt, version } = value as Partial<Record<"network" | keyof LockHolder, unknown>>;
  if (network !== of || typeof pid !== "number") return undefined;
  if (typeof startedAt !== "string" || typeof version !== "string") return undefined;
  return { pid, startedAt, version };
}
