import { UsageError } from "../../frame/errors.ts";
import { NAMESPACE } from "../../migrate/cluster/names.ts";

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** Of `NAMESPACE/NAME`. */
export function objectName(text: string): ObjectName {
  const [namespace = "", name = ""] = text.split("/");
  return { namespace, name };
}

/**
 * What `--kube-proxy` was given, as `NAMESPACE/NAME`.
 *
 * @throws UsageError unless it is a name, or a namespace and a name
 */
export function givenDaemonSet(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const parts = text.split("/");
  if (parts.length > 2 || !parts.every((part) => /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(part))) {
    throw new UsageError(`--kube-proxy=${text}: give DAEMONSET or NAMESPACE/DAEMONSET`);
  }
  return parts.length === 1 ? `${NAMESPACE}/${text}` : text;
}
