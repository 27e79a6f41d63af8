import { addressWords, inAnyOf } from "@fairlead/base";
import type { Flow, FlowSocket } from "@fairlead/inspect";
import type { OptionValues } from "../../frame/options.ts";
import { isIn } from "../../inputs/namespaces.ts";
import type { CONDITIONS, filterOptions } from "./filter-options.ts";

/** What is given of `filterOptions` and `-n`. */
export interface FlowFilter extends OptionValues<typeof filterOptions> {
  readonly namespace: string | undefined;
}

/** Whether a connection is one of those that are asked for. */
export function flowFilter({ namespace, from, to, port, state }: FlowFilter): (flow: Flow) => boolean {
  const [isFrom, isTo] = [inAnyOf(from), inAnyOf(to)];
  return (flow) => {
    const { client, frontend, endpoint, service } = flow;
    const ends = endpoint === undefined ? [frontend] : [frontend, endpoint];
    return (
      isIn(namespace, service) &&
      (from.length === 0 || isFrom(client.address)) &&
      (to.length === 0 || ends.some((end) => isTo(end.address))) &&
      (port.length === 0 || ends.some((end) => port.includes(end.port))) &&
      (state.length === 0 || state.some((one) => isState(one, flow)))
    );
  };
}

/** States of connections that have ended, and are only remembered. */
const OVER: ReadonlySet<string> = new Set(["TIME_WAIT", "CLOSE", "CLOSED"]);

const IS: Readonly<Record<(typeof CONDITIONS)[number] | "established", (flow: Flow) => boolean>> = {
  open: ({ state = "" }) => !OVER.has(state),
  unreplied: ({ replied }) => !replied,
  offloaded: ({ offloaded = false }) => offloaded,
  // The kernel does not give the state of a connection in a flowtable, which takes established ones only.
  established: ({ state, offloaded, protocol }) =>
    state === "ESTABLISHED" || (offloaded === true && protocol !== "UDP"),
  gone: ({ endpoint }) => endpoint?.condition === "gone",
};

function isState(name: string, flow: Flow): boolean {
  return name in IS ? IS[name as keyof typeof IS](flow) : flow.state?.toLowerCase() === name;
}

/** By service and port, then by client. */
export function inOrder(flows: readonly Flow[]): readonly Flow[] {
  return flows.toSorted(
    (one, other) =>
      compareTexts(one.service, other.service) ||
      compareTexts(one.port, other.port) ||
      compareTexts(one.protocol, other.protocol) ||
      compareSockets(one.client, other.client) ||
      compareSockets(one.frontend, other.frontend),
  );
}

function compareTexts(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** Addresses by their value, so that 10.0.0.9 is before 10.0.0.10; IPv4 first. */
function compareSockets(one: FlowSocket, other: FlowSocket): number {
  const [a, b] = [addressWords(one.address), addressWords(other.address)];
  if (a.length !== b.length) return a.length - b.length;
  const at = a.findIndex((word, index) => word !== b[index]);
  if (at >= 0) return ((a[at] ?? 0) >>> 0) - ((b[at] ?? 0) >>> 0);
  return one.port - other.port;
}
