import { fieldsOf, itemsOf, type RawObject, stringOf, textAt } from "@fairlead/base";
import { UsageError } from "../frame/errors.ts";
import type { ClusterAccess } from "./access.ts";

/** Headers of a request; one with several values is a line for each. */
export type Headers = Readonly<Record<string, string | string[]>>;

/**
 * The headers by which an API server takes requests for those of another user
 * (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
 *
 * @param user of the kubeconfig: `as`, `as-groups`, `as-uid` and `as-user-extra`; options go before them
 * @throws UsageError for groups of no user
 */
export function impersonation({ as, "as-group": asked = [] }: ClusterAccess, user: RawObject): Headers {
  const name = as ?? textAt(user, "as");
  const groups = asked.length > 0 ? [...asked] : textsOf(user["as-groups"]);
  const uid = textAt(user, "as-uid");
  const extra = Object.entries(fieldsOf(user["as-user-extra"])).map(([key, values]): [string, string[]] => {
    return [`impersonate-extra-${encodeURIComponent(key)}`, textsOf(values)];
  });
  if (name === undefined || name === "") {
    if (asked.length > 0) throw new UsageError("--as-group: name the user with --as, too");
    return {};
  }
  return {
    "impersonate-user": name,
    ...(groups.length > 0 && { "impersonate-group": groups }),
    ...(uid !== undefined && { "impersonate-uid": uid }),
    ...Object.fromEntries(extra.filter(([, values]) => values.length > 0)),
  };
}

function textsOf(list: unknown): string[] {
  return itemsOf(list).flatMap((one) => stringOf(one) ?? []);
}
