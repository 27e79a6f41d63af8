import { type DecidedBy, type Ownership, quoted, type Service } from "@fairlead/core";
import { type FilterOptions, type OptionsBesideCIDRs, OWNERSHIP_ANNOTATION, type RuledOwner } from "./options.ts";
import type { Survey } from "./survey.ts";
import { fromCIDRs, fromMemory, fromNodes } from "./why.ts";

/** Whose a service is, before it is asked what that means for its frontends and endpoints. */
export interface Owner {
  readonly ownership: Ownership;
  readonly decided: boolean;
  readonly decidedBy: DecidedBy;
  readonly why: string;
  /** What of it is left to its network, where it is foreign. Default: as the options have it. */
  readonly excludedFrontends?: FilterOptions["excludedFrontends"];
}

/** The annotation decides before the rules, these before the CIDRs, and these before the memory. */
export function findOwner(
  options: OptionsBesideCIDRs,
  annotation: Ownership | undefined,
  ruled: RuledOwner | undefined,
  found: Survey,
  remembered: Ownership | undefined,
): Owner {
  if (annotation !== undefined) {
    const why = `annotation ${OWNERSHIP_ANNOTATION}: ${annotation}`;
    return { ownership: annotation, decided: true, decidedBy: "annotation", why };
  }
  if (ruled !== undefined) {
    const { ownership, why, excludedFrontends = "all" } = ruled;
    return { ownership, decided: true, decidedBy: "rule", why, excludedFrontends };
  }
  const endpoints = { decided: true, decidedBy: "endpoints" } as const;
  if (found.own + found.excluded === 0) {
    if (found.neutral > 0) return { ownership: "ours", ...endpoints, why: fromNodes(found.neutral) };
    const ownership = underPolicy(remembered ?? "ours", options.mixedServices);
    return { ownership, decided: false, decidedBy: "memory", why: fromMemory(remembered, options.mixedServices) };
  }
  const ownership = underPolicy(bySides(found), options.mixedServices);
  return { ownership, ...endpoints, why: fromCIDRs(found, options.mixedServices) };
}

function bySides({ own, excluded }: Survey): Ownership {
  if (excluded === 0) return "ours";
  return own === 0 ? "foreign" : "mixed";
}

/** Under `skip` and `all` a mixed service is no third kind. */
function underPolicy(ownership: Ownership, policy: FilterOptions["mixedServices"]): Ownership {
  if (ownership !== "mixed" || policy === "own-endpoints") return ownership;
  return policy === "skip" ? "foreign" : "ours";
}

export interface Annotation {
  readonly ownership?: "ours" | "foreign";
  readonly problem?: string;
}

/** Reads `fairlead.dev/ownership`. Anybody may have written it: what is said of a bad value is quoted and cut. */
export function readAnnotation({ annotations }: Service): Annotation {
  const value = annotations[OWNERSHIP_ANNOTATION];
  if (value === undefined) return {};
  if (value === "ours" || value === "foreign") return { ownership: value };
  const shown = quoted(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  return { problem: `annotation ${OWNERSHIP_ANNOTATION} is ${shown}, ignored; it must be ours or foreign` };
}
