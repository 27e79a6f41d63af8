import { endpointSlice, type RawObject } from "@fairlead/testkit";
import { slotChanges, slotObjects, webState } from "@fairlead/testkit/histories";
import fc from "fast-check";

const SLOTS = Array.from({ length: 12 }, (_, at) => at + 1);
const MOST_AT_ONCE = 6;

/** Of two services that claim one external address each proxy serves one: these have addresses of their own. */
const OWN_EXTERNAL_IP = 3;

/** What is written to the API server state by state: each is some services of a random kind, the others stay. */
export function randomStates(count: number, seed: number): readonly (readonly RawObject[])[] {
  const changes = fc.sample(slotChanges(SLOTS, MOST_AT_ONCE), { numRuns: count, seed });
  return changes.map((some) =>
    some.flatMap(([slot, state]) => {
      if (state !== undefined) {
        return slotObjects(slot, { ...state, externalIP: state.externalIP && slot <= OWN_EXTERNAL_IP });
      }
      const [service] = slotObjects(slot, webState());
      const none = { service: `slot-${slot}`, family: "IPv4" as const, ports: [], endpoints: [] };
      return [...(service === undefined ? [] : [service]), endpointSlice(`slot-${slot}`, none)];
    }),
  );
}
