import type { IPFamily, Service, ServicePortSpec } from "../objects.ts";
import type { FrontendKind } from "../plan.ts";
import type { GroupClaims } from "./claims.ts";
import { claimKey, type FrontendSpec, frontendSpecs } from "./frontend-spec.ts";

/** A group before it is known which of its frontends it holds. */
export interface GroupDraft {
  readonly id: string;
  readonly name: string;
  readonly port: ServicePortSpec;
  readonly frontends: readonly FrontendSpec[];
}

/** The groups that a service asks for in a family. Those of which every frontend is left to another network are none. */
export function draftGroups(service: Service, family: IPFamily, leaveClusterIP: boolean): readonly GroupDraft[] {
  return service.ports.flatMap((port): GroupDraft[] => {
    const frontends = frontendSpecs(service, port, family, leaveClusterIP);
    if (frontends.every((frontend) => frontend.left)) return [];
    // Joined strings are flat: templates would leave each of these kept strings with its parts.
    const owner = [service.namespace, service.name].join("/");
    const name = port.name === "" ? owner : [owner, port.name].join(":");
    const id = [name, port.protocol.toLowerCase()].join("/");
    return [{ id, name, port, frontends }];
  });
}

export function claimsOf(draft: GroupDraft): readonly GroupClaims[] {
  const ours = draft.frontends.filter((frontend) => !frontend.left);
  return groupClaims(
    draft.id,
    ours.map(({ kind, address, port }) => ({ kind, key: claimKey(draft.port.protocol, address, port) })),
  );
}

/** The claims of a group, those of its ClusterIPs apart; no frontend is claimed twice. */
export function groupClaims(
  group: string,
  frontends: readonly { readonly kind: FrontendKind; readonly key: string }[],
): readonly GroupClaims[] {
  const keysOf = (allocated: boolean) =>
    frontends.filter(({ kind }) => (kind === "cluster-ip") === allocated).map(({ key }) => key);
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
