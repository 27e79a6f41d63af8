import type { Ability, ClusterShape } from "@fairlead/lab/provider/cluster";

/** For `Spec.unfit`: why a cluster without the ability cannot carry a spec. @param hint what would bring it */
export function needs(ability: Ability, hint = "this provider has none"): (shape: ClusterShape) => string | undefined {
  return ({ abilities = [] }) => (abilities.includes(ability) ? undefined : `needs ability ${ability}: ${hint}`);
}

/** For `Spec.unfit`: the spec is for clusters in these modes. @param why it cannot be carried in another one */
export function onlyIn(modes: readonly string[], why: string): (shape: ClusterShape) => string | undefined {
  return ({ mode }) => (modes.includes(mode) ? undefined : why);
}

/** For `Spec.unfit`: the spec is not for clusters in these modes. */
export function notIn(modes: readonly string[], why: string): (shape: ClusterShape) => string | undefined {
  return ({ mode }) => (modes.includes(mode) ? why : undefined);
}

/** For `Spec.unfit`: the spec is for clusters whose first family is IPv4. @param why it cannot be carried in IPv6 */
export function onlyIPv4(why: string): (shape: ClusterShape) => string | undefined {
  return ({ families }) => (families[0] === "IPv4" ? undefined : why);
}

/** An ability that the shape has. @throws Error when the provider has promised what it cannot do */
export function able<T>(method: T | undefined): T {
  if (method === undefined) throw new Error("the cluster's shape names an ability that it does not have");
  return method;
}
