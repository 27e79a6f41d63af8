import { fieldsOf, itemsOf } from "@fairlead/base";
import type { ServiceCIDR } from "../objects.ts";
import { ProblemList } from "../problem.ts";
import type { Decoded } from "./decoded.ts";
import { checkName, metadataOf } from "./metadata.ts";
import { readCIDRs } from "./node.ts";

/** Reads a networking.k8s.io/v1 ServiceCIDR. Never throws: a bad CIDR is in `problems` and left out. */
export function decodeServiceCIDR(raw: unknown): Decoded<ServiceCIDR> {
  const { name } = metadataOf(raw);
  const problems = new ProblemList("ServiceCIDR", "", name);
  const nameIsGood = checkName("metadata.name", name, problems);
  const listed = itemsOf(fieldsOf(fieldsOf(raw)["spec"])["cidrs"]);
  const cidrs = readCIDRs("spec.cidrs", listed, problems);
  const decoded = { namespace: "", name, problems: problems.all };
  return nameIsGood ? { ...decoded, object: { name, cidrs } } : decoded;
}
