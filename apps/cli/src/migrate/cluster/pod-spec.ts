import { fieldsOf, type RawObject } from "@fairlead/base";

/** What a DaemonSet, straight from JSON, makes its pods of. */
export function podSpecOf(daemonSet: unknown): RawObject {
  return fieldsOf(fieldsOf(fieldsOf(fieldsOf(daemonSet)["spec"])["template"])["spec"]);
}
