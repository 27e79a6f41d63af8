import type { ObjectSource } from "../change.ts";
import type { Clock } from "../clock.ts";
import type { OnReport } from "../report.ts";
import type { ApiConnection } from "./connection.ts";
import type { Transport } from "./transport.ts";

export interface ApiSourceOptions {
  readonly connection: ApiConnection;
  /** The own Node's name (metadata.name). */
  readonly nodeName: string;
  /** For example `fairlead-proxy/1.2.3`. */
  readonly userAgent: string;
  /** clientConnection.qps: requests a second in the long run. Default 5. */
  readonly qps?: number;
  /** clientConnection.burst: requests at once. Default 10. */
  readonly burst?: number;
  readonly onReport?: OnReport;
  /** For tests: virtual time, 0 ≤ random() < 1, and requests that don't leave the process. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly transport?: Transport;
}

/** Follows the API server: list, then watch, for as long as it runs. Does nothing before `run`. */
export function createApiSource(_options: ApiSourceOptions): ObjectSource {
  return { run: () => Promise.reject(new Error("not there yet")) };
}
