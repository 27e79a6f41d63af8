import {
  IP_FAMILIES,
  isPort,
  itemsOf,
  objectAt,
  objectsAt,
  protocolOf,
  type RawObject,
  stringOf,
  textAt,
  valueAt,
} from "@fairlead/base";
import { labelsIn, textsIn } from "./decode-pod.ts";
import type { NetworkService, ServicePort, SliceProblem } from "./service.ts";

/** The network of a Service's endpoints: `name` or `namespace/name` of a NetworkAttachmentDefinition. */
export const SERVICE_NETWORK = "k8s.v1.cni.cncf.io/service-network";

/** What is read of a Service with the annotation. */
export type DecodedNetworkService =
  | { readonly service: NetworkService }
  /** It gets no slices. */
  | { readonly problem: SliceProblem };

/**
 * Reads a core/v1 Service. Never throws.
 *
 * @returns undefined where it does not ask for a network
 */
export function decodeNetworkService(raw: unknown): DecodedNetworkService | undefined {
  const [metadata, spec] = [objectAt(raw, "metadata"), objectAt(raw, "spec")];
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const asked = stringOf(valueAt(metadata, "annotations", SERVICE_NETWORK));
  if (namespace === undefined || name === undefined || asked === undefined) return undefined;
  const network = networkName(asked, namespace);
  if (network === undefined) return { problem: invalidName(asked) };
  if (spec["type"] === "ExternalName") return { problem: EXTERNAL_NAME };
  if (spec["clusterIP"] === "None") return { problem: HEADLESS };
  const selector = textsIn(spec["selector"]);
  if (Object.keys(selector).length === 0) return { problem: NO_SELECTOR };
  const distribution = DISTRIBUTIONS[stringOf(spec["trafficDistribution"]) ?? ""];
  const service: NetworkService = {
    namespace,
    name,
    uid: textAt(metadata, "uid") ?? "",
    network,
    labels: labelsIn(metadata),
    selector,
    families: familiesOf(spec),
    ports: objectsAt(spec, "ports").flatMap(portIn),
    publishNotReadyAddresses: spec["publishNotReadyAddresses"] === true,
    terminating: textAt(metadata, "deletionTimestamp") !== undefined,
    ...(distribution && { distribution }),
  };
  return { service };
}

const HEADLESS: SliceProblem = {
  reason: "HeadlessService",
  message: `a headless Service has no endpoints by annotation ${SERVICE_NETWORK}: DNS would answer with those of the default network as well; remove clusterIP: None or the annotation`,
};

const EXTERNAL_NAME: SliceProblem = {
  reason: "ExternalName",
  message: `a Service of type ExternalName has no endpoints; remove annotation ${SERVICE_NETWORK}`,
};

const NO_SELECTOR: SliceProblem = {
  reason: "NoSelector",
  message: `annotation ${SERVICE_NETWORK} needs spec.selector; without one, EndpointSlices are written by hand`,
};

const DISTRIBUTIONS: Readonly<Record<string, NetworkService["distribution"]>> = {
  PreferClose: "PreferSameZone",
  PreferSameZone: "PreferSameZone",
  PreferSameNode: "PreferSameNode",
};

const DNS_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?";
const NAME = new RegExp(`^(?:(${DNS_LABEL})/)?(${DNS_LABEL}(?:\\.${DNS_LABEL})*)$`);

/** As annotation `networks` of pods: without a namespace, the object's own. An interface (`@net1`) is not taken. */
function networkName(text: string, namespace: string): string | undefined {
  const found = NAME.exec(text.trim());
  return found === null ? undefined : `${found[1] ?? namespace}/${found[2]}`;
}

function invalidName(text: string): SliceProblem {
  const shown = JSON.stringify(text.slice(0, 80));
  return {
    reason: "InvalidNetworkName",
    message: `annotation ${SERVICE_NETWORK}: ${shown} must be one NetworkAttachmentDefinition, as name or namespace/name`,
  };
}

/** The API server fills ipFamilies in; a manifest may lack it. */
function familiesOf(spec: RawObject): NetworkService["families"] {
  const listed = IP_FAMILIES.filter((family) => itemsOf(spec["ipFamilies"]).includes(family));
  return listed.length > 0 ? listed : ["IPv4"];
}

function portIn(item: RawObject): readonly ServicePort[] {
  const [protocol, target] = [protocolOf(item["protocol"]), item["targetPort"]];
  // Absent and 0: the Service's own port.
  const resolved = typeof target === "string" && target !== "" ? target : isPort(target) ? target : item["port"];
  if (protocol === undefined || !(typeof resolved === "string" || isPort(resolved))) return [];
  return [{ name: textAt(item, "name") ?? "", protocol, target: resolved }];
}
