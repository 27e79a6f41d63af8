import { type Fields, fieldsOf } from "@fairlead/core";

/** What a DaemonSet, straight from JSON, makes its pods of. */
export function podSpecOf(daemonSet: unknown): Fields {
  return fieldsOf(fieldsOf(fieldsOf(fieldsOf(daemonSet)["spec"])["template"])["spec"]);
}
