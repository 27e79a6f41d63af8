import { fieldsOf, type RawObject, stringOf } from "@fairlead/base";
import type { ProblemList } from "../problem.ts";
import { isSubdomain, SUBDOMAIN_FORM } from "./names.ts";

/** The parts of ObjectMeta that decoders read. Unchecked: see `checkNames`. */
export interface Metadata {
  readonly namespace: string;
  readonly name: string;
  readonly labels: RawObject;
  readonly annotations: RawObject;
  readonly creationTimestamp: unknown;
  readonly deletionTimestamp: unknown;
}

export function metadataOf(raw: unknown): Metadata {
  const metadata = fieldsOf(fieldsOf(raw)["metadata"]);
  return {
    namespace: stringOf(metadata["namespace"]) ?? "",
    name: stringOf(metadata["name"]) ?? "",
    labels: fieldsOf(metadata["labels"]),
    annotations: fieldsOf(metadata["annotations"]),
    creationTimestamp: metadata["creationTimestamp"],
    deletionTimestamp: metadata["deletionTimestamp"],
  };
}

/** False, with a problem for each bad one, if an object with these names must not be taken in. */
export function checkNames(metadata: Metadata, problems: ProblemList): boolean {
  const namespace = checkName("metadata.namespace", metadata.namespace, problems);
  const name = checkName("metadata.name", metadata.name, problems);
  return namespace && name;
}

export function checkName(field: string, name: string, problems: ProblemList): boolean {
  if (isSubdomain(name)) return true;
  problems.add(field, name, SUBDOMAIN_FORM);
  return false;
}
