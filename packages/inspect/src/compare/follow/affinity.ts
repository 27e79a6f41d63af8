import { socketText } from "@fairlead/base";
import type { ServicePortGroup } from "@fairlead/core";
import type { Environment, Outcome } from "@fairlead/trace";
import { packetText } from "../packets/packet-text.ts";
import type { Probe } from "../packets/probes.ts";
import type { View } from "../packets/view.ts";
import type { Difference } from "./difference.ts";

/** Each endpoint that a client got costs a packet more. */
const MOST_FOLLOWED = 32;

/**
 * Whether clients come to the endpoint that they got before, where the plan wants that and only there; for how long, as
 * far as sets, lists and virtual servers say.
 */
export function affinityDifference(
  { affinitySeconds }: ServicePortGroup,
  probes: readonly Probe[],
  view: View,
): readonly Difference[] {
  for (const probe of probes) {
    const outcomes = proxied(probe, view);
    if (outcomes.length > 0) return differenceOf(affinitySeconds, outcomes, probe, view);
  }
  return [];
}

function differenceOf(
  affinitySeconds: ServicePortGroup["affinitySeconds"],
  outcomes: readonly Outcome[],
  probe: Probe,
  view: View,
): readonly Difference[] {
  const wanted = affinitySeconds === undefined ? "each connection drawn anew" : `clients kept for ${affinitySeconds} s`;
  const found =
    affinitySeconds === undefined
      ? whyRemembered(outcomes)
      : whyForgotten(outcomes.slice(0, MOST_FOLLOWED), probe, view, affinitySeconds);
  if (found === undefined) return [];
  return [{ kind: "affinity", packet: packetText(probe), wanted, found }];
}

function proxied({ packet }: Probe, { tracer, environment }: View): readonly Outcome[] {
  return tracer
    .explore(packet, environment, { merged: true })
    .outcomes.filter(({ verdict, translated }) => verdict === "accept" && translated);
}

function whyRemembered(outcomes: readonly Outcome[]): string | undefined {
  const some = outcomes.find(
    ({ recentlySeen, remembered, template }) =>
      recentlySeen.length > 0 || remembered.length > 0 || template !== undefined,
  );
  return some && `clients kept at ${endText(some)}`;
}

function whyForgotten(
  outcomes: readonly Outcome[],
  probe: Probe,
  view: View,
  affinitySeconds: number,
): string | undefined {
  for (const first of outcomes) {
    const kept = secondsOf(first, view);
    if (kept !== undefined && kept !== affinitySeconds) return `clients kept for ${kept} s`;
    const inTime = endsAfter(first, probe, view, affinitySeconds - 1);
    if (inTime.some((end) => end !== endText(first))) return `clients of ${endText(first)} come to others as well`;
    const tooLate = first.recentlySeen.length > 0 ? endsAfter(first, probe, view, affinitySeconds + 1) : [];
    if (outcomes.length > 1 && tooLate.length === 1) return `clients kept for more than ${affinitySeconds} s`;
  }
  return undefined;
}

/** For how long the client of a first packet is kept, where the object that remembers it says so. */
function secondsOf({ remembered, virtualServer }: Outcome, { environment }: View): number | undefined {
  for (const { timeout } of remembered) if (timeout !== undefined) return timeout / 1000;
  if (virtualServer === undefined) return undefined;
  const { protocol, address, port } = virtualServer;
  for (const server of environment.ipvs?.servers ?? []) {
    if (server.protocol === protocol && server.address === address && server.port === port)
      return server.persistenceSeconds ?? 0;
  }
  return undefined;
}

/** Where a client may come `seconds` after its first packet. */
function endsAfter(first: Outcome, { packet }: Probe, { tracer, environment }: View, seconds: number) {
  const { outcomes } = tracer.explore(packet, afterwards(environment, first, seconds), { merged: true });
  return [...new Set(outcomes.map(endText))];
}

function afterwards(environment: Environment, first: Outcome, seconds: number): Environment {
  const { recentlySeen, template, remembered } = first;
  const { ipvs } = environment;
  return {
    ...environment,
    recent: new Map(recentlySeen.map(({ list, address }) => [list, new Map([[address, [seconds]]])])),
    remembered,
    ...(ipvs !== undefined && template !== undefined && { ipvs: { ...ipvs, templates: [template] } }),
  };
}

function endText({ verdict, destination: { address, port } }: Outcome): string {
  return verdict === "accept" ? socketText(address, port ?? 0) : verdict;
}
