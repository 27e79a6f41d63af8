import { type ApiClient, type ApiObject, collectionPath } from "@fairlead/lab/control-plane/api-client";
import type { Scene } from "../../scene.ts";
import { make } from "../learning.ts";
import type { NetworkAttack, Step } from "./attack.ts";

interface Right {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly verb: string;
}

export interface RestrictedUser {
  readonly api: ApiClient;
  revoke(): Promise<void>;
}

/**
 * A user who may do these steps and nothing else: in one namespace where all of them are there, else in the cluster.
 *
 * @returns the API with these rights, once the API server grants them
 */
export async function restrictedUser(
  scene: Scene,
  who: NetworkAttack["who"],
  steps: readonly Step[],
): Promise<RestrictedUser> {
  const namespaces = new Set(steps.map((step) => objectOf(step).metadata.namespace));
  const [namespace] = namespaces.size === 1 ? namespaces : [undefined];
  const rights = steps.flatMap(rightsOf);
  const removals: (() => Promise<void>)[] = [];
  for (const one of grants(`${scene.namespace}-attacker`, namespace, who.name, rights)) {
    removals.push(await make(scene, one));
  }
  const user = scene.cluster.api.as(who);
  for (const right of rights) {
    await scene.until(`${who.name} to be granted ${JSON.stringify(right)}`, async () =>
      (await isAllowed(user, right, namespace)) ? undefined : "forbidden",
    );
  }
  const secrets = { group: "", resource: "secrets", verb: "list" };
  if (await isAllowed(user, secrets, namespace)) throw new Error(`wanted ${who.name} to have only its own rights`);
  return { api: user, revoke: async () => void (await Promise.all(removals.map((remove) => remove()))) };
}

function objectOf(step: Step): ApiObject {
  return "create" in step ? step.create : step.patch;
}

function rightsOf(step: Step): readonly Right[] {
  const object = objectOf(step);
  const [group = ""] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : [""];
  const resource = collectionPath(object).split("/").at(-1) ?? "";
  if ("create" in step) return ["create", "delete"].map((verb) => ({ group, resource, verb }));
  return [{ group, resource, verb: "patch", ...(step.part && { subresource: step.part }) }];
}

function grants(name: string, namespace: string | undefined, user: string, rights: readonly Right[]) {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const apiGroup = "rbac.authorization.k8s.io";
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  const rules = rights.map(({ group, resource, subresource, verb }) => ({
    apiGroups: [group],
    resources: [subresource === undefined ? resource : `${resource}/${subresource}`],
    verbs: [verb],
  }));
  return [
    { apiVersion, kind, metadata, rules },
    {
      ...{ apiVersion, kind: `${kind}Binding`, metadata },
      roleRef: { apiGroup, kind, name },
      subjects: [{ apiGroup, kind: "User", name: user }],
    },
  ];
}

async function isAllowed(user: ApiClient, right: Right, namespace: string | undefined): Promise<boolean> {
  const review = await user.create({
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    metadata: { name: "" },
    spec: { resourceAttributes: { ...right, ...(namespace !== undefined && { namespace }) } },
  });
  const { status }: { readonly status?: { readonly allowed?: boolean } } = JSON.parse(JSON.stringify(review));
  return status?.allowed === true;
}
