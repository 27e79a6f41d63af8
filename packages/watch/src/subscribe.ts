import type { ResourceName, Subscriptions } from "./change.ts";
import { ConsumerError, type Publisher, publisher } from "./publisher.ts";
import type { OnReport } from "./report.ts";
import { otherName } from "./resources.ts";

/**
 * A publisher for each resource that is subscribed.
 *
 * @throws TypeError when a resource is subscribed twice: only one of them would hear of it
 */
export function publishersOf<S, E, N, C>(
  to: Subscriptions<S, E, N, C>,
  onReport: OnReport,
): ReadonlyMap<ResourceName, Publisher> {
  const publishers: Publisher[] = [];
  if (to.services) publishers.push(publisher("services", to.services, onReport));
  if (to.endpointSlices) publishers.push(publisher("endpointSlices", to.endpointSlices, onReport));
  if (to.node) publishers.push(publisher("node", to.node, onReport));
  if (to.serviceCIDRs) publishers.push(publisher("serviceCIDRs", to.serviceCIDRs, onReport));
  for (const other of to.others ?? []) publishers.push(publisher(otherName(other.resource), other, onReport));
  const byResource = new Map(publishers.map((one) => [one.resource, one]));
  const twice = publishers.find((one) => byResource.get(one.resource) !== one);
  if (twice !== undefined) throw new TypeError(`${twice.resource} is subscribed twice; use one subscription for both`);
  return byResource;
}

/**
 * Runs the parts of a source side by side; the first that fails ends the others.
 *
 * @throws what the consumer threw
 */
export async function runTogether(
  parts: readonly ((signal: AbortSignal) => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  if (signal.aborted) stop.abort();
  try {
    const ends = await Promise.allSettled(parts.map((part) => part(stop.signal).catch((error) => failed(stop, error))));
    const failure = ends.find((end) => end.status === "rejected");
    if (failure !== undefined) throw failure.reason;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function failed(stop: AbortController, error: unknown): never {
  stop.abort();
  throw error instanceof ConsumerError ? error.cause : error;
}
