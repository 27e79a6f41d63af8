import type { Clock } from "@fairlead/base";
import { errorText } from "@fairlead/base";
import type { ResourceName } from "../change.ts";
import type { OnReport } from "../report.ts";

/** What the resources' loops tell of their requests, brought together into one report a minute. */
export interface Reachability {
  succeeded(resource: ResourceName): void;
  failed(resource: ResourceName, error: unknown): void;
  stop(): void;
}

const REPORT_EVERY = 60_000;

/** @param server base URL of the API server */
export function reachability(clock: Clock, server: string, onReport: OnReport): Reachability {
  const address = new URL(server).hostname.replace(/^\[|\]$/g, "");
  const failing = new Map<ResourceName, string>();
  let since = 0;
  let cancel = () => {};

  const report = () => {
    const error = [...new Set(failing.values())].join("; ");
    const milliseconds = clock.monotonic() - since;
    onReport({ type: "unreachable", server, address, milliseconds, error, resources: [...failing.keys()] });
    cancel = clock.after(REPORT_EVERY, report);
  };
  return {
    failed: (resource, error) => {
      const began = failing.size === 0;
      failing.set(resource, errorText(error));
      if (!began) return;
      since = clock.monotonic();
      report();
    },
    succeeded: (resource) => {
      if (!failing.delete(resource) || failing.size > 0) return;
      cancel();
      onReport({ type: "reachable", server, milliseconds: clock.monotonic() - since });
    },
    stop: () => cancel(),
  };
}
