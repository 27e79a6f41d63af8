/** What a churn came to: where the time of changes went, and what the API server sent. */

import type { Change } from "../cluster/load.ts";
import type { Machine } from "../measure/process-figures.ts";
import { quantile } from "../measure/result.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";

/** Milliseconds of many things of one kind. */
interface Spread {
  readonly count: number;
  readonly median: number;
  readonly p99: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const at = (share: number) => quantile(values, share);
  return { count: values.length, median: at(0.5), p99: at(0.99), most: at(1) };
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

/** `list`: also a watch that begins with all objects. */
type RequestKind = "list" | "watch" | "other";

/** Requests and bytes, in all or of some. */
interface Traffic {
  readonly requests: number;
  readonly bytes: number;
}

/** What one proxy asked of the API server, as the relay saw it. */
export interface ApiFigures {
  readonly start: Readonly<Record<RequestKind, Traffic>>;
  /** Bytes of watches for each endpoint change of the churn. */
  readonly bytesPerChange: number;
}

/** Where the time of changes went. */
interface Delays {
  /** From the request until the API server's event passed the relay. */
  readonly api: Spread;
  /** From then until the kernel had it. */
  readonly own: Spread;
  readonly total: Spread;
}

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

/** Address → milliseconds since the epoch. */
type Times = ReadonlyMap<string, number>;

export function delaysOf(changes: readonly Change[], relayed: Times, programmed: Times): Delays {
  const each = changes.map(({ address, asked }) => {
    const [event, kernel] = [timeOf(relayed, address), timeOf(programmed, address)];
    return { api: event - asked, own: kernel - event, total: kernel - asked };
  });
  const of = (part: "api" | "own" | "total") => spreadOf(each.map((one) => one[part]));
  return { api: of("api"), own: of("own"), total: of("total") };
}

export function timeOf(times: Times, address: string): number {
  const time = times.get(address);
  if (time === undefined) throw new Error(`no event with ${address} was seen`);
  return time;
}

/** A request to the API server, as the relay saw it. Times in milliseconds since the epoch. */
export interface SeenRequest {
  readonly at: number;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** 0: no answer yet, or none. */
  status: number;
  /** Of the answer's body as it was sent, compressed or not. */
  bytes: number;
  readonly protocol: string;
  /** Content-Encoding of the answer; "": none. */
  encoding: string;
  /** Undefined: it is under way. */
  endedAt?: number;
}

/** What the relay has seen since its start. */
export interface Recording {
  readonly requests: readonly SeenRequest[];
  /** Address → when it first came by in a watch. */
  readonly addresses: Readonly<Record<string, number>>;
}

/** What came between two recordings of one relay, by kind of request. */
export function trafficBetween(before: Recording, after: Recording): Readonly<Record<RequestKind, Traffic>> {
  const traffic = {
    list: { requests: 0, bytes: 0 },
    watch: { requests: 0, bytes: 0 },
    other: { requests: 0, bytes: 0 },
  };
  for (const [index, request] of after.requests.entries()) {
    const earlier = before.requests[index];
    const of = traffic[kindOf(request)];
    of.requests += earlier === undefined ? 1 : 0;
    of.bytes += request.bytes - (earlier?.bytes ?? 0);
  }
  return traffic;
}

export function bytesBetween(before: Recording, after: Recording): number {
  return Object.values(trafficBetween(before, after)).reduce((sum, { bytes }) => sum + bytes, 0);
}

function kindOf({ method, path }: Pick<SeenRequest, "method" | "path">): RequestKind {
  const { pathname, searchParams } = new URL(path, "http://api");
  if (method !== "GET" || !/^\/apis?\//.test(pathname)) return "other";
  if (searchParams.has("sendInitialEvents")) return "list";
  return searchParams.get("watch") === "true" ? "watch" : "list";
}
