import type { Size } from "../cluster/objects.ts";
import type { SubjectName } from "../proxy/subject.ts";

/** Both, as tables have them. */
export const PROXIES = ["kube-proxy", "fairlead"] as const satisfies readonly SubjectName[];

/** What the guest gets, as a file of JSON. */
export interface GuestSettings extends Size {
  /** What is measured, one after the other; a name may come again. */
  readonly order: readonly SubjectName[];
  /** How many changes of one endpoint each of them gets. */
  readonly changes: number;
  readonly kubeProxy: string;
  readonly apiServer: { readonly host: string; readonly port: number; readonly ca: string; readonly token: string };
  readonly proxyKubeconfig: string;
}

/** One piece of work, from when it was asked for until the kernel held it. */
export interface Step {
  readonly seconds: number;
  /** Of the proxy and of the processes that it started. */
  readonly cpuSeconds: number;
  /** By the names of their programs, cut to 15 characters as the kernel has them. */
  readonly processes: Readonly<Record<string, number>>;
}

/** What came of one proxy on a kernel that held nothing before. */
export interface Measured {
  readonly proxy: SubjectName;
  /** From its start. */
  readonly fullSync: Step;
  /** From its second start, over what the first one left. */
  readonly restart: Step;
  readonly changes: readonly Step[];
  /** An endpoint comes that is the first one on this node. */
  readonly firstLocal: Step;
  readonly residentMiB: number;
  /** What the kernel held in the end, sorted: to be compared. */
  readonly kernel: readonly string[];
}
