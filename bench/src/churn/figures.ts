import { quantile } from "../measure/figures.ts";
import type { Machine } from "../measure/machine.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";
import type { RequestKind, Traffic } from "./recording.ts";

/** Milliseconds of many things of one kind. */
export interface Spread {
  readonly count: number;
  readonly median: number;
  readonly p99: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const at = (share: number) => quantile(values, share);
  return { count: values.length, median: at(0.5), p99: at(0.99), most: at(1) };
}

/** Where the time of changes went. */
export interface Delays {
  /** From the request until the API server's event passed the relay. */
  readonly api: Spread;
  /** From then until the kernel had it. */
  readonly own: Spread;
  readonly total: Spread;
}

/** One rolling update. */
export interface RollingFigures {
  /** From the first request until the API server's last event passed the relay. */
  readonly apiMs: number;
  /** From then until the kernel had everything. */
  readonly ownMs: number;
  /** Each endpoint: from its event until the kernel had it. */
  readonly each: Spread;
}

/** A proxy's own `network_programming_duration_seconds` of the churn. */
export interface ProgrammingMetric {
  readonly count: number;
  readonly meanMs: number;
  /** Upper bound of the bucket that the 99th percentile is in, seconds. */
  readonly p99Bucket: number;
}

/** What one proxy asked of the API server, as the relay saw it. */
export interface ApiFigures {
  readonly connections: number;
  readonly start: Readonly<Record<RequestKind, Traffic>>;
  /** Seconds without a change, and what came in them. */
  readonly rest?: { readonly seconds: number } & Traffic;
  /** Bytes of watches for each endpoint change of the churn. */
  readonly bytesPerChange: number;
  /** The API server was away, and has forgotten what was before. Absent: not measured. */
  readonly outage?: OutageFigures;
}

export interface OutageFigures {
  readonly secondsAway: number;
  /** From the API server's return until every watch was there again. */
  readonly secondsUntilWatched: number;
  readonly lists: Traffic;
  readonly watches: Traffic;
}

/** One run of one proxy. */
export interface ChurnRun {
  readonly rolling: readonly RollingFigures[];
  readonly churn: Delays & {
    readonly seconds: number;
    /** CPU seconds for each change. */
    readonly cpu: number;
    readonly metric: ProgrammingMetric;
  };
  readonly api: ApiFigures;
}

/** As it is kept in `results/churn-SERVICES.json`. */
export interface ChurnResult {
  readonly machine: Machine;
  readonly options: {
    readonly services: number;
    readonly endpoints: number;
    readonly runs: number;
    readonly perSecond: number;
    readonly seconds: number;
    readonly minSyncPeriod: string;
    readonly kubernetes: string;
    readonly kubeProxyVersion: string;
  };
  readonly proxies: Readonly<Partial<Record<ProxyName, readonly ChurnRun[]>>>;
}
