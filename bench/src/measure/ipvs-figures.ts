import type { ProxyName } from "../proxy/measured-proxy.ts";

/** Both, as tables have them. */
export const PROXIES = ["kube-proxy", "fairlead"] as const satisfies readonly ProxyName[];

/** One piece of work, from when it was asked for until the kernel held it. */
export interface WorkMeasurement {
  readonly seconds: number;
  /** Of the proxy and of the processes that it started. */
  readonly cpuSeconds: number;
  /** By the names of their programs, cut to 15 characters as the kernel has them. */
  readonly processes: Readonly<Record<string, number>>;
}

/** What came of one proxy on a kernel that held nothing before. */
export interface ProxyMeasurement {
  readonly proxy: ProxyName;
  /** From its start. */
  readonly fullSync: WorkMeasurement;
  /** From its second start, over what the first one left. */
  readonly restart: WorkMeasurement;
  readonly changes: readonly WorkMeasurement[];
  /** An endpoint comes that is the first one on this node. */
  readonly firstLocal: WorkMeasurement;
  readonly residentMiB: number;
  /** What the kernel held in the end, sorted: to be compared. */
  readonly kernel: readonly string[];
}

/** What ipvs mode came to, run by run. */
export interface IpvsFigures {
  readonly results: readonly Omit<ProxyMeasurement, "kernel">[];
  /** What the kernel held in the end after only one of the proxies. */
  readonly differences: readonly string[];
}
