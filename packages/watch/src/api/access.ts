import type { ApiConnection } from "./connection.ts";
import { post } from "./post.ts";

/** A permission in all namespaces. */
export interface Access {
  /** The verb of the request, as RBAC has it. */
  readonly verb: "get" | "list" | "watch" | "create";
  /** "" for the core group. */
  readonly group: string;
  /** The plural name: `services`. */
  readonly resource: string;
}

/**
 * Whether the connection's user has that permission (SelfSubjectAccessReview, open to every user).
 *
 * @throws Error when there is no connection, no answer in time, or none that says it
 */
export async function isAllowed(connection: ApiConnection, access: Access, userAgent: string): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: access },
  };
  const { status, body } = await post(connection, PATH, review, userAgent);
  const allowed = status === 201 ? allowedIn(JSON.parse(body)) : undefined;
  if (allowed === undefined) throw new Error(`${connection.server}${PATH} answered ${status}`);
  return allowed;
}

const PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

function allowedIn(review: { readonly status?: { readonly allowed?: unknown } } | null): boolean | undefined {
  const allowed = review?.status?.allowed;
  return typeof allowed === "boolean" ? allowed : undefined;
}
