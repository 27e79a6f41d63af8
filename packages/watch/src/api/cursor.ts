import { ApiError, BrokenResponseError, ProtocolError } from "./errors.ts";

/** Ways to get all objects; each is tried when the one before it does not work with this server. */
export type ListMode = "watchList" | "list" | "chunks";

/** Where a resource's loop stands: what to ask for next. A value, so that each step can be told and tested. */
export interface Cursor {
  readonly mode: ListMode | "watch";
  /** Last resourceVersion seen; undefined: none yet; "": the server doesn't know it anymore, ask for the latest. */
  readonly version: string | undefined;
  /** In a row, in this mode. */
  readonly failures: number;
  /** How a new list begins: "list" once the server has refused WatchList. */
  readonly firstMode: ListMode;
}

const LATEST = "";

/** @param firstMode how the first list begins */
export function atStart(firstMode: Cursor["firstMode"]): Cursor {
  return { mode: firstMode, version: undefined, failures: 0, firstMode };
}

/** A complete list is in: watch from its version on. */
export function afterList(cursor: Cursor, version: string): Cursor {
  return { ...cursor, mode: "watch", version, failures: 0 };
}

/** The watch has come to `version`. */
export function afterEvent(cursor: Cursor, version: string): Cursor {
  return { ...cursor, version, failures: 0 };
}

/**
 * - expired: the version is too old for the server.
 * - ahead: the server is behind the version, as after a restored etcd.
 * - refused: it doesn't take these parameters.
 * - heavy: the answer was too much for it, for something between, or for the time there is.
 * - confused: what came is not the protocol.
 * - later: no connection, no permission, too many requests: the same request may work later.
 */
export type Failure = "expired" | "ahead" | "refused" | "heavy" | "confused" | "later";

export function failureOf(error: unknown): Failure {
  if (error instanceof BrokenResponseError) return "heavy";
  if (error instanceof ProtocolError) return "confused";
  if (!(error instanceof ApiError)) return "later";
  if (error.expired) return "expired";
  if (error.versionTooLarge) return "ahead";
  return BY_CODE.get(error.code) ?? "later";
}

const BY_CODE: ReadonlyMap<number, Failure> = new Map([
  [400, "refused"],
  [405, "refused"],
  [406, "refused"],
  [422, "refused"],
  [501, "refused"],
  [413, "heavy"],
  [504, "heavy"],
  [500, "confused"],
]);

/** Failures of this many attempts in a row that another way may not have. */
const TRIES = { watchList: 2, list: 2, chunks: 2, watch: 3 } as const;

/** What to ask for after a failure; how long to wait before is not decided here. */
export function afterFailure(cursor: Cursor, failure: Failure): Cursor {
  if (failure === "later") return cursor;
  return cursor.mode === "watch" ? afterFailedWatch(cursor, failure) : afterFailedList(cursor, cursor.mode, failure);
}

function afterFailedWatch(cursor: Cursor, failure: Failure): Cursor {
  const failures = cursor.failures + 1;
  const relist = { ...cursor, mode: cursor.firstMode, failures: 0 };
  if (failure === "ahead" || failure === "refused") return { ...relist, version: LATEST };
  // A list not older than the version is what client-go asks for after 410, too: time never goes backwards.
  return failure === "expired" || failures >= TRIES.watch ? relist : { ...cursor, failures };
}

function afterFailedList(cursor: Cursor, mode: ListMode, failure: Failure): Cursor {
  const failures = cursor.failures + 1;
  const versionAtFault = failure === "expired" || failure === "ahead";
  if (versionAtFault && cursor.version !== LATEST) return { ...cursor, version: LATEST, failures };
  if (failure === "refused" && mode === "watchList") {
    return { ...cursor, mode: "list", failures: 0, firstMode: "list" };
  }
  if (failure !== "refused" && failures < TRIES[mode]) return { ...cursor, failures };
  return { ...cursor, mode: nextMode(cursor, mode), failures: 0 };
}

function nextMode({ firstMode }: Cursor, mode: ListMode): ListMode {
  switch (mode) {
    case "watchList":
      return "list";
    case "list":
      return "chunks";
    case "chunks":
      return firstMode;
  }
}
