import { ClusterState, type Service } from "@fairlead/core";
import { claimsOf, claimsOn } from "../claims.ts";
import type { Target } from "../explain/target.ts";
import { relatedServices } from "../related.ts";
import { ObjectTexts, type Trait, traitKey } from "./object-texts.ts";
import { servicesIn } from "./services-in.ts";

/**
 * Leaves out of manifests what cannot have to do with a target, before it is read: of tens of thousands of objects a
 * few matter. The own Node stays, and so do the services that `relatedServices` names and their EndpointSlices.
 *
 * @param contents of files. Where one of them is no JSON array or list of objects, all of them are given back whole.
 */
export function leaveOutOthers(contents: readonly Uint8Array[], target: Target): readonly Uint8Array[] {
  // It may be a pod's, of which only EndpointSlices know the service.
  if (target.kind === "host") return contents;
  const texts = contents.flatMap((content) => ObjectTexts.of(content) ?? []);
  if (texts.length < contents.length) return contents;
  const state = new ClusterState();
  const traits = new Map(traitsOf(state, target));
  while (traits.size <= MOST_TRAITS) {
    const known = traits.size;
    const chosen = texts.map((text) => text.choose(text.having(traits.values())));
    const services = chosen.map(servicesIn);
    // What cannot be read is read whole, to say where in the file that is.
    if (services.includes(undefined)) return contents;
    for (const service of services.flatMap((some) => some ?? [])) state.upsertService(service);
    for (const [key, trait] of traitsOf(state, target)) traits.set(key, trait);
    if (traits.size === known) return chosen;
  }
  return contents;
}

/** Each costs a search of everything. */
const MOST_TRAITS = 24;

function traitsOf(state: ClusterState, target: Target): ReadonlyMap<string, Trait> {
  const asked: readonly Trait[] = target.kind === "service" ? [text(nameOf(target.service))] : claimsOn(target);
  const related = [...relatedServices(state, target)].flatMap((key) => state.service(key) ?? []);
  const all = [text("Node"), ...asked, ...related.flatMap(traitsOfService)];
  return new Map(all.map((trait) => [traitKey(trait), trait]));
}

/** By its name, which its slices have too, and by what others could have as well. */
function traitsOfService(service: Service): readonly Trait[] {
  return [text(service.name), ...claimsOf(service)];
}

function text(of: string): Trait {
  return { kind: "text", text: of };
}

function nameOf(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}
