/** Reads a Node and a ServiceCIDR of the API. */

import { fieldsOf, isAbsent, itemsOf, parseCIDRLeniently, type RawObject, stringOf } from "@fairlead/base";
import type { NodeState, ServiceCIDR } from "../objects.ts";
import { ProblemList } from "../problem.ts";
import { checkName, type Decoded, metadataOf, readAddress } from "./fields.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";

/** Reads a core/v1 Node. Never throws: a bad address or CIDR is in `problems` and left out. */
export function decodeNode(raw: unknown): Decoded<NodeState> {
  const metadata = metadataOf(raw);
  const { name } = metadata;
  const problems = new ProblemList("Node", "", name);
  if (!checkName("metadata.name", name, problems)) return { namespace: "", name, problems: problems.all };
  const node = fieldsOf(raw);
  const spec = fieldsOf(node["spec"]);
  const zone = stringOf(metadata.labels[ZONE_LABEL]);
  const object: NodeState = {
    name,
    ...(zone ? { zone } : undefined),
    addresses: readNodeAddresses(fieldsOf(node["status"]), problems),
    podCIDRs: readPodCIDRs(spec, problems),
    goingAway: !isAbsent(metadata.deletionTimestamp) || isToBeDeleted(spec),
  };
  return { namespace: "", name, object, problems: problems.all };
}

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

const TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler";

/** Internal addresses before external ones, as upstream's GetNodeHostIPs. */
function readNodeAddresses(status: RawObject, problems: ProblemList): readonly string[] {
  const items = itemsOf(status["addresses"]).map(fieldsOf);
  const ofType = (type: string) =>
    items.flatMap((item, i) => {
      if (item["type"] !== type) return [];
      const address = readAddress(`status.addresses[${i}].address`, item["address"], [], problems);
      return address === undefined ? [] : [address.text];
    });
  return [...new Set([...ofType("InternalIP"), ...ofType("ExternalIP")])];
}

function readPodCIDRs(spec: RawObject, problems: ProblemList): readonly string[] {
  const listed = itemsOf(spec["podCIDRs"]);
  if (listed.length > 0) return readCIDRs("spec.podCIDRs", listed, problems);
  const only = spec["podCIDR"];
  return isAbsent(only) || only === "" ? [] : readCIDR("spec.podCIDR", only, problems);
}

function isToBeDeleted(spec: RawObject): boolean {
  return itemsOf(spec["taints"]).some((taint) => fieldsOf(taint)["key"] === TO_BE_DELETED_TAINT);
}

/** Canonical CIDRs of a list field; bad ones are reported and left out. */
function readCIDRs(field: string, values: readonly unknown[], problems: ProblemList): readonly string[] {
  return values.flatMap((value, i) => readCIDR(`${field}[${i}]`, value, problems));
}

function readCIDR(field: string, value: unknown, problems: ProblemList): readonly string[] {
  const cidr = typeof value === "string" ? parseCIDRLeniently(value) : undefined;
  if (cidr !== undefined) return [cidr.text];
  problems.add(field, value, "must be a CIDR");
  return [];
}
