import { type Clock, errorChainText } from "@fairlead/base";
import type { Log } from "../log/log.ts";
import { Election, type ElectionTimes, type Leadership, type LeasePort } from "./election.ts";

export interface LeadParts {
  /** Absent: this process is the only one. */
  readonly election?: { readonly lease: LeasePort; readonly identity: string; readonly times: ElectionTimes };
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Called when this process begins to write, and when it ends. */
  readonly onLeader: (leads: boolean) => void;
}

/** Runs `lead` whenever this process may write, until the signal aborts; then the lease is released. */
export async function leading(
  parts: LeadParts,
  lead: (leadership: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { election, clock, random, log, onLeader } = parts;
  const counted = async (leadership: Leadership) => {
    onLeader(true);
    try {
      await lead(leadership);
    } finally {
      onLeader(false);
    }
  };
  if (election === undefined) return counted({ signal, holds: () => !signal.aborted });
  const { identity, times } = election;
  let failing = false;
  const lease: LeasePort = {
    async read() {
      const found = await election.lease.read();
      const holder = found?.record.holderIdentity ?? "";
      // It takes no write to wait for another.
      if (holder !== "" && holder !== identity) failing = false;
      return found;
    },
    async write(record, version) {
      await election.lease.write(record, version);
      failing = false;
    },
  };
  const onError = (error: unknown) => {
    const fields = { error: errorChainText(error) };
    if (failing) log.verbose(4, "Failed to acquire or renew the lease; retrying", fields);
    else log.warn("Failed to acquire or renew the lease; retrying", fields);
    failing = true;
  };
  await new Election({ identity, lease, clock, random, times, onError }).run(async (leadership) => {
    log.info("Leading; EndpointSlices are written by this process", { identity });
    await counted(leadership);
    if (!signal.aborted) log.warn("Lease lost; another process may write, waiting for it", { identity });
  }, signal);
}
