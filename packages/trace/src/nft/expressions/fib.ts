import { ADDRESS_TYPES } from "@fairlead/netfilter/nft";
import type { Host } from "../../host.ts";
import type { PacketEnd } from "../../walk.ts";
import type { Evaluate } from "./kind.ts";

/** As far as the kernel's answer follows from addresses and not from routes. */
export const fib: Evaluate<"fib"> = ({ of, to }, { walk, host, registers }) => {
  registers.loadNumber(to, ADDRESS_TYPES[typeOf(of === "saddr" ? walk.source : walk.destination, host)] ?? 0);
  return undefined;
};

function typeOf({ words }: PacketEnd, host: Host): string {
  if (host.isBroadcast(words)) return "broadcast";
  if (host.isMulticast(words)) return "multicast";
  return host.isLocal(words) ? "local" : "unicast";
}
