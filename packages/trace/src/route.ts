import type { Host } from "./host.ts";
import type { Outcome } from "./outcome.ts";
import type { Hook } from "./packet.ts";
import type { Walk } from "./walk.ts";

/** The hook that follows; undefined: the packet has arrived. The routing decision falls after the translation. */
export function nextHook(walk: Walk, host: Host): Hook | undefined {
  if (walk.sentOn) return "OUTPUT";
  switch (walk.hook) {
    case "PREROUTING":
      return isForHost(walk, host) ? "INPUT" : "FORWARD";
    case "FORWARD":
    case "OUTPUT":
      return "POSTROUTING";
    case "POSTROUTING":
      return walk.inInterface === "" && isForHost(walk, host) ? "PREROUTING" : undefined;
    case "INPUT":
      return undefined;
  }
}

export function enterHook(walk: Walk, hook: Hook): void {
  if (walk.hook === "POSTROUTING" && hook === "PREROUTING") {
    walk.looped = true;
    walk.inInterface = "lo";
    walk.arrived = true;
  }
  if (walk.sentOn) {
    walk.sentOn = false;
    walk.inInterface = "";
  }
  walk.hook = hook;
  walk.step = 0;
  walk.bound = false;
}

/** By the routes where they are known (a route of type local is enough), else by the host's addresses. */
function isForHost({ routed, destination }: Walk, host: Host): boolean {
  if (routed === undefined || routed.answer.kind === "unknown") return host.isLocal(destination.words);
  return routed.answer.kind === "local";
}

/**
 * The interface that the packet leaves by, "" where the kernel knows none yet; undefined: the environment doesn't tell.
 */
export function outInterface(walk: Walk, host: Host): string | undefined {
  if (walk.hook === "PREROUTING" || walk.hook === "INPUT") return "";
  if (walk.routed?.answer.kind === "unicast") return walk.routed.answer.outInterface;
  return isForHost(walk, host) ? "lo" : host.environment.outInterface?.(walk.destination.address);
}

export function pathOf(walk: Walk): NonNullable<Outcome["path"]> {
  if (walk.hook === "INPUT") return "input";
  return walk.arrived ? "forward" : "output";
}
