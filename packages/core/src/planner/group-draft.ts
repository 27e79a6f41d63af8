import type { IPFamily, Service, ServicePortSpec } from "../objects.ts";
import type { FrontendKind } from "../plan.ts";
import type { GroupClaims } from "./claims.ts";
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
): readonly GroupDraft[] {
  return service.ports.map((port): GroupDraft => {
    const frontends = frontendSpecs(service, port, family, leaves, externalIPs);
    // Joined strings are flat: templates would leave each of these kept strings with its parts.
    const owner = [service.namespace, service.name].join("/");
    const name = port.name === "" ? owner : [owner, port.name].join(":");
    const id = [name, port.protocol.toLowerCase()].join("/");
    return { id, name, port, frontends };
  });
}

/** @param left those of the frontends that another network serves, or those that we do */
export function claimsOf(draft: GroupDraft, left: boolean): readonly GroupClaims[] {
  const frontends = draft.frontends.filter((frontend) => frontend.left === left);
  return groupClaims(
    draft.id,
    frontends.map(({ kind, address, port }) => ({ kind, key: claimKey(draft.port.protocol, address, port) })),
  );
}

/** The claims of a group, those of its ClusterIPs apart; no frontend is claimed twice. */
export function groupClaims(
  group: string,
  frontends: readonly { readonly kind: FrontendKind; readonly key: string }[],
): readonly GroupClaims[] {
  const keysOf = (allocated: boolean) =>
    frontends.filter(({ kind }) => FRONTEND_KINDS[kind].allocated === allocated).map(({ key }) => key);
  const clusterIPs = keysOf(true);
  const written = new Set(keysOf(false));
  for (const key of clusterIPs) written.delete(key);
  const claims = [
    { group, allocated: true, keys: [...new Set(clusterIPs)] },
    { group, allocated: false, keys: [...written] },
  ];
  return claims.filter(({ keys }) => keys.length > 0);
}

export function draftClaimKey(draft: GroupDraft, frontend: FrontendSpec): string {
  return claimKey(draft.port.protocol, frontend.address, frontend.port);
}
