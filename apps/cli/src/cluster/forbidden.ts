/** A permission that is missing. */
export interface Forbidden {
  readonly user: string;
  readonly verb: string;
  /** `nodes`, `pods/exec` */
  readonly resource: string;
  /** Empty: the core group. */
  readonly group: string;
  /** Undefined: in all namespaces, or it has none. */
  readonly namespace: string | undefined;
}

/** As k8s.io/apiserver says it (`ForbiddenMessage`). */
const FORBIDDEN =
  /is forbidden: User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)" (?:in the namespace "([^"]+)"|at the cluster scope)/;

/** Undefined: the message of an API server says something else. */
export function forbiddenIn(message: string): Forbidden | undefined {
  const [, user, verb, resource, group, namespace] = FORBIDDEN.exec(message) ?? [];
  if (user === undefined || verb === undefined || resource === undefined || group === undefined) return undefined;
  return { user, verb, resource, group, namespace };
}

/** Who may not do what, and the rule that would allow it. What is listed is watched, too, by one request or by two. */
export function mayNot(forbidden: Forbidden): string {
  const { user, resource, group } = forbidden;
  const verbs = LISTS.includes(forbidden.verb) ? LISTS : [forbidden.verb];
  // Of a Namespace the server names its own, in which no Role is yet.
  const namespace = resource === "namespaces" ? undefined : forbidden.namespace;
  const where = namespace === undefined ? "in the whole cluster" : `in namespace ${namespace}`;
  const rule = `apiGroups: [${JSON.stringify(group)}], resources: [${resource}], verbs: [${verbs.join(", ")}]`;
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  return `user ${user} may not ${verbs[0]} ${resource} ${where}; a ${kind} with this rule allows it: {${rule}}`;
}

const LISTS: readonly string[] = ["list", "watch"];
