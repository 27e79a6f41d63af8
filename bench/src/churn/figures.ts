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

/** What one proxy asked of the API server, as the relay saw it. */
export interface ApiFigures {
  readonly start: Readonly<Record<RequestKind, Traffic>>;
  /** Bytes of watches for each endpoint change of the churn. */
  readonly bytesPerChange: number;
}

/** One run of one proxy. */
export interface ChurnRun {
  readonly rolling: readonly RollingFigures[];
  readonly churn: Delays & {
    readonly seconds: number;
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
