/** Reads a Node and a ServiceCIDR of the API. */

import {
  familyOf,
  fieldsOf,
  isAbsent,
  isLoopback,
  itemsOf,
  parseCIDRLeniently,
  type RawObject,
  stringOf,
} from "@fairlead/base";
import type { NodeState, ServiceCIDR } from "../objects.ts";
import { ProblemList } from "../problem.ts";
import { checkName, type Decoded, metadataOf, readAddress } from "./fields.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";

/** Reads a core/v1 Node. Never throws: a bad address or CIDR is in `problems` and left out. */
export function decodeNode(raw: unknown): Decoded<NodeState> {
  const metadata = metadataOf(raw);
  const { name } = metadata;
  const problems = new ProblemList("Node", "", name);
  if (!checkName("metadata.name", name, problems)) return { namespace: "", name, ...problems.lists };
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
  noteNode(object, metadata.labels, spec, problems);
  return { namespace: "", name, object, ...problems.lists };
}

/** Reads a networking.k8s.io/v1 ServiceCIDR. Never throws: a bad CIDR is in `problems` and left out. */
export function decodeServiceCIDR(raw: unknown): Decoded<ServiceCIDR> {
  const { name } = metadataOf(raw);
  const problems = new ProblemList("ServiceCIDR", "", name);
  const nameIsGood = checkName("metadata.name", name, problems);
  const listed = itemsOf(fieldsOf(fieldsOf(raw)["spec"])["cidrs"]);
  const cidrs = readCIDRs("spec.cidrs", listed, problems);
  const decoded = { namespace: "", name, ...problems.lists };
  return nameIsGood ? { ...decoded, object: { name, cidrs } } : decoded;
}

const TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler";

const OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone";

/** What is valid and has another effect than its author may expect. */
function noteNode({ zone, addresses }: NodeState, labels: RawObject, spec: RawObject, problems: ProblemList): void {
  const note = (field: string, value: unknown, reason: string) => problems.add(field, value, reason, "note");
  const field = "status.addresses";
  if (addresses.length === 0) note(field, undefined, "has no InternalIP or ExternalIP: this node's address is unknown");
  for (const address of addresses) {
    const first = addresses.find((one) => familyOf(one) === familyOf(address));
    if (isLoopback(address)) note(field, address, "is a loopback address, which no other node reaches");
    else if (first !== address)
      note(field, address, `is not this node's first ${familyOf(address)} address: ${first} is used`);
  }
  const [podCIDR, first] = [spec["podCIDR"], itemsOf(spec["podCIDRs"])[0]];
  if (stringOf(podCIDR) && first !== undefined && podCIDR !== first)
    note("spec.podCIDR", podCIDR, "is not the first of spec.podCIDRs, which are used");
  if (zone === undefined && OLD_ZONE_LABEL in labels)
    note(
      `metadata.labels["${OLD_ZONE_LABEL}"]`,
      labels[OLD_ZONE_LABEL],
      `is not read: zone hints need the label ${ZONE_LABEL}`,
    );
}

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
