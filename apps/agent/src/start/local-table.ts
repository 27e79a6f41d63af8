import type { LocalBackend, LocalService } from "@fairlead/backend-userspace";
import type { IPFamily } from "@fairlead/core";
import type { SyncFollower } from "../sync/follower.ts";

/** Prints where each service is to be had: once all families have it, and again whenever it is another place. */
export function localTableFollower(
  backends: ReadonlyMap<IPFamily, LocalBackend>,
  print: (text: string) => void,
): SyncFollower {
  const waiting = new Set(backends.keys());
  let printed = "";
  return {
    ran({ family, outcome }) {
      if (outcome.kind === "synced") waiting.delete(family);
      if (waiting.size > 0) return;
      const text = localTable([...backends.values()].flatMap((backend) => backend.services()));
      if (text !== printed) print(text);
      printed = text;
    },
  };
}

/** `SERVICE PROTOCOL LOCAL ADDRESS`, one line each, by name. */
function localTable(services: readonly LocalService[]): string {
  const rows = services.map(({ name, protocol, address, reason }) => [
    name,
    protocol,
    address ?? `none: ${reason ?? ""}`,
  ]);
  rows.sort(([a = ""], [b = ""]) => (a === b ? 0 : a < b ? -1 : 1));
  const lines = [["SERVICE", "PROTOCOL", "LOCAL ADDRESS"], ...rows];
  const width = Math.max(...lines.map(([name = ""]) => name.length));
  return lines
    .map(([name = "", protocol = "", address = ""]) => `${name.padEnd(width)}  ${protocol.padEnd(8)}  ${address}\n`)
    .join("");
}
