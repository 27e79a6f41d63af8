import type { IPFamily, Service, ServicePortSpec } from "../objects.ts";
import type { FrontendKind } from "../plan.ts";
import { CLAIM_RANKS, type ClaimRank, type GroupClaims } from "./claims.ts";
import { claimKey, FRONTEND_KINDS, type FrontendSpec, frontendSpecs, type Leaves } from "./frontend-spec.ts";

/** A group before it is known which of its frontends it holds. */
export interface GroupDraft {
  readonly id: string;
  readonly name: string;
  readonly port: ServicePortSpec;
  readonly frontends: readonly FrontendSpec[];
}

/** The groups that a service asks for in a family, for us or for another network. */
export function draftGroups(
  service: Service,
  family: IPFamily,
  leaves: Leaves,
  externalIPs?: boolean,
  nodePortsAt?: readonly string[],
): readonly GroupDraft[] {
  return service.ports.map((port): GroupDraft => {
    const frontends = frontendSpecs(service, port, family, leaves, externalIPs, nodePortsAt);
    // Joined strings are flat: templates would leave each of these kept strings with its parts.
    const owner = [service.namespace, service.name].join("/");
    const name = port.name === "" ? owner : [owner, port.name].join(":");
    const id = [name, port.protocol.toLowerCase()].join("/");
    return { id, name, port, frontends };
  });
}

/**
 * @param left those of the frontends that another network serves, or those that we do
 * @param created of the service, milliseconds since the epoch; undefined: unknown
 */
export function claimsOf(draft: GroupDraft, left: boolean, created: number | undefined): readonly GroupClaims[] {
  const frontends = draft.frontends.filter((frontend) => frontend.left === left);
  return groupClaims(
    { group: draft.id, created, left },
    frontends.map(({ kind, address, port }) => ({ kind, key: claimKey(draft.port.protocol, address, port) })),
  );
}

/** The claims of a group, by what they are worth; no frontend is claimed twice. */
export function groupClaims(
  { group, created, left }: Pick<GroupClaims, "group" | "created"> & { readonly left: boolean },
  frontends: readonly { readonly kind: FrontendKind; readonly key: string }[],
): readonly GroupClaims[] {
  const best = new Map<string, ClaimRank>();
  for (const { kind, key } of frontends) {
    const rank = left && kind !== "cluster-ip" ? "left" : FRONTEND_KINDS[kind].rank;
    const known = best.get(key);
    if (known === undefined || CLAIM_RANKS.indexOf(rank) < CLAIM_RANKS.indexOf(known)) best.set(key, rank);
  }
  return CLAIM_RANKS.flatMap((rank) => {
    const keys = [...best].filter(([, one]) => one === rank).map(([key]) => key);
    return keys.length === 0 ? [] : [{ group, rank, created, keys }];
  });
}

export function draftClaimKey(draft: GroupDraft, frontend: FrontendSpec): string {
  return claimKey(draft.port.protocol, frontend.address, frontend.port);
}
