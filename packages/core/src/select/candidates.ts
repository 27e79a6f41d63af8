import { sortInSteps, TURN } from "../data.ts";
import type { OwnershipDecision } from "../filter.ts";
import type { EndpointSlice, IPFamily, Protocol, SliceEndpoint } from "../objects.ts";

/** An endpoint of one service port before any selection. */
export interface Candidate {
  /** `address:port`, `[address]:port` for IPv6: the order of endpoints everywhere is the byte order of these. */
  readonly key: string;
  readonly endpoint: SliceEndpoint;
  readonly port: number;
  /** Its slice weighs 0: it gets no new connections. */
  readonly weightless?: true;
}

/** Which endpoints of a service are wanted. */
export interface CandidateQuery {
  readonly family: IPFamily;
  /** Name and protocol of the service's port; slices name theirs alike. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly excludes?: OwnershipDecision["excludes"] | undefined;
}

/**
 * The distinct endpoints of a service port in order. Where one address stands in several slices (an endpoint that
 * moves, or an address that a new pod got while the old one still terminates), one whose slice weighs something is
 * taken, then the one that doesn't terminate, then the ready one, then the serving one, then that of the slice with the
 * smaller name: never the one that came last, since the result must not hang on the order of events.
 *
 * Yields where there are many.
 *
 * @param slices in the byte order of their names
 */
export function* candidates(
  slices: readonly EndpointSlice[],
  query: CandidateQuery,
): Generator<void, readonly Candidate[]> {
  const found: Candidate[] = [];
  let next = TURN;
  for (const slice of slices) {
    if (slice.family !== query.family) continue;
    for (const port of slice.ports) {
      if (port.name === query.name && port.protocol === query.protocol) collect(slice, port.port, query, found);
    }
    if (found.length < next) continue;
    next = found.length + TURN;
    yield;
  }
  const sorted = yield* sortInSteps(found, byKeyThenPreference);
  return sorted.filter((candidate, i) => candidate.key !== sorted[i - 1]?.key);
}

function collect(slice: EndpointSlice, port: number, query: CandidateQuery, found: Candidate[]): void {
  for (const endpoint of slice.endpoints) {
    if (query.excludes?.(endpoint)) continue;
    const host = slice.family === "IPv6" ? `[${endpoint.address}]` : endpoint.address;
    const candidate = { key: `${host}:${port}`, endpoint, port };
    found.push(slice.weight === 0 ? { ...candidate, weightless: true } : candidate);
  }
}

function byKeyThenPreference(a: Candidate, b: Candidate): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  if (a.weightless !== b.weightless) return a.weightless ? 1 : -1;
  return preference(b.endpoint) - preference(a.endpoint);
}

/** The greater one is taken where two endpoints have one address. */
export function preference(endpoint: SliceEndpoint): number {
  return (endpoint.terminating ? 0 : 4) + (endpoint.ready ? 2 : 0) + (endpoint.serving ? 1 : 0);
}
