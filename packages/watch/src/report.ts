import type { ResourceName } from "./change.ts";

/** Events of a source that an operator may want to read. Objects are data, `reportText` makes the line. */
export type SourceReport =
  | ListedReport
  | RetryReport
  | EncodingReport
  | FailingReport
  | RecoveredReport
  | BadObjectReport
  | FileReport
  | DuplicateReport
  | SkippedKindReport
  | WaitingReport;

/** A complete list of a resource is in: the first one, or one after changes had been missed. */
export interface ListedReport {
  readonly type: "listed";
  /** The resource that was listed. */
  readonly resource: ResourceName;
  /** By a watch that begins with the list, by one list, or by one in chunks. */
  readonly how: "watchList" | "list" | "chunks";
  /** How many objects the list had. */
  readonly objects: number;
  /** From the first request to the last object. */
  readonly milliseconds: number;
}

/** One request failed and is tried again: detail for a verbose log, the operator's line is "failing". */
export interface RetryReport {
  readonly type: "retry";
  /** The resource whose request failed. */
  readonly resource: ResourceName;
  /** Why, for a log line. */
  readonly error: string;
  /** Until the next attempt. */
  readonly delayMilliseconds: number;
}

/** Protobuf was asked for, and the server answers so, or otherwise than before. */
export interface EncodingReport {
  readonly type: "encoding";
  /** The resource whose answers are meant. */
  readonly resource: ResourceName;
  /** The encoding that the server answers in. */
  readonly encoding: "protobuf" | "json";
  /** What failed in protobuf; absent: the server chose. */
  readonly why?: string;
}

/**
 * How far requests come: `unreachable` without an answer, or one that broke off or stands still; `refused` by an HTTP
 * status or an ERROR event; `unreadable` where the answer is not what the API speaks.
 */
export type RequestProblem = "unreachable" | "refused" | "unreadable";

/** Requests fail: reported with the first failure and then once a minute. */
export interface FailingReport {
  readonly type: "failing";
  /** That of the request that came furthest. */
  readonly problem: RequestProblem;
  /** Base URL of the API server. */
  readonly server: string;
  /** Its host, without port and brackets: an IP address or a name. */
  readonly address: string;
  /** Since the first failure. */
  readonly milliseconds: number;
  /** Why, for a log line. */
  readonly error: string;
  /** What is not being followed meanwhile. */
  readonly resources: readonly ResourceName[];
}

/** All resources are followed again. */
export interface RecoveredReport {
  readonly type: "recovered";
  /** Base URL of the API server. */
  readonly server: string;
  /** How long requests failed. */
  readonly milliseconds: number;
}

/** An object was skipped because it has no usable name, or because decoding it threw. */
export interface BadObjectReport {
  readonly type: "badObject";
  /** The resource of the object. */
  readonly resource: ResourceName;
  /** `namespace/name` where known. */
  readonly key?: string;
  /** The manifest file that has it; absent: it came from the API server. */
  readonly file?: string;
  /** Why it cannot be used. */
  readonly error: string;
}

/** A manifest file can't be used as it is. Its objects stay as last read, if it ever was readable. */
export interface FileReport {
  readonly type: "badFile";
  /** Path of the file. */
  readonly file: string;
  /** From 1, where the parser knows. */
  readonly line?: number;
  /** From 1, where the parser knows. */
  readonly column?: number;
  /** Why it cannot be used. */
  readonly error: string;
  /** Objects that stay in use from the last good reading. */
  readonly kept: number;
}

/** The same object stands in several places; the last one, in the order of file names, is used. */
export interface DuplicateReport {
  readonly type: "duplicate";
  /** The resource of the object. */
  readonly resource: ResourceName;
  /** `namespace/name` */
  readonly key: string;
  /** The file whose object is used. */
  readonly used: string;
  /** The file whose object is ignored. */
  readonly ignored: string;
}

/** Objects in a manifest file that no resource takes: one report for each file and kind. */
export interface SkippedKindReport {
  readonly type: "skippedKind";
  /** Path of the file. */
  readonly file: string;
  /** apiVersion and kind as written. */
  readonly kind: string;
  /** How many of them the file has. */
  readonly count: number;
}

/** The manifest path is not there: reported at once and then once a minute. */
export interface WaitingReport {
  readonly type: "waiting";
  /** The path that is waited for. */
  readonly path: string;
  /** Why it cannot be read. */
  readonly error: string;
  /** Objects that stay in use from before the path vanished. */
  readonly kept: number;
}

/** Gets each report when it happens; it must not throw. */
export type OnReport = (report: SourceReport) => void;
