import { IP_FAMILIES, socketText } from "@fairlead/base";
import type { Frontend, IPFamily, ServiceKey, SourceClass, Treatment } from "@fairlead/core";
import { type ModeFinding, sortedServices } from "./finding.ts";
import type { ModeChange, ModeSide } from "./sides.ts";

/** What becomes of one class of sources at one frontend, in both modes. */
interface Change {
  readonly service: ServiceKey;
  /** `load-balancer 203.0.113.10:80 (Local)` */
  readonly frontend: string;
  readonly from: SourceClass;
  readonly before: string;
  readonly after: string;
}

/** Clients that the two modes treat differently: policies and services without endpoints. One finding for each kind. */
export function treatmentFindings({ before, after }: ModeChange): readonly ModeFinding[] {
  const kinds = new Map<string, Change[]>();
  for (const change of IP_FAMILIES.flatMap((family) => changesIn(family, before, after))) {
    const kind = `${SENDERS[change.from]}: ${change.before} → ${change.after}`;
    const alike = kinds.get(kind);
    if (alike === undefined) kinds.set(kind, [change]);
    else alike.push(change);
  }
  if (kinds.size === 0) return [{ topic: "services", state: "fits", found: "every client reaches the same endpoints" }];
  return [...kinds].map(([kind, [first, ...others]]) => {
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return {
      topic: "services",
      state: "differs",
      found: `${kind}, at ${first?.frontend}${more}`,
      services: sortedServices([first, ...others].flatMap((one) => (one === undefined ? [] : [one.service]))),
    };
  });
}

const SENDERS = { pod: "pods of the node", node: "the node itself", outside: "clients outside" } as const;
const SOURCES = Object.keys(SENDERS) as readonly SourceClass[];

function changesIn(family: IPFamily, before: ModeSide, after: ModeSide): readonly Change[] {
  const now = after.planned.planner.plan(family).groups;
  return [...before.planned.planner.plan(family).groups.values()].flatMap((group) => {
    const other = now.get(group.id);
    if (other === undefined) return [];
    return group.frontends.flatMap((frontend) => {
      const same = other.frontends.find((one) => nameOf(one) === nameOf(frontend));
      return SOURCES.flatMap((from) => {
        const was = text(frontend.treatments[from], group);
        const is = same === undefined ? "not served" : text(same.treatments[from], other);
        return was === is ? [] : [{ service: group.service, frontend: nameOf(frontend), from, before: was, after: is }];
      });
    });
  });
}

function nameOf({ kind, address, port, policy }: Frontend): string {
  return `${kind} ${address === undefined ? port : socketText(address, port)} (${policy})`;
}

type Sets = Readonly<Record<"cluster" | "local", readonly unknown[]>>;

/** Endpoints by what they are, not how many: a set that is empty is none. */
function text(treatment: Treatment, sets: Sets): string {
  if (treatment.verdict !== "proxy") return VERDICTS[treatment.verdict];
  if (sets[treatment.set].length === 0) return "no answer";
  const endpoints = treatment.set === "cluster" ? "all endpoints" : "endpoints on the node";
  return treatment.masquerade ? `${endpoints}, masqueraded` : endpoints;
}

const VERDICTS = { reject: "refused", drop: "no answer", leave: "left to the other network" } as const;
