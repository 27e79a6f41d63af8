/** What the API server allows, and what objects say. */

import {
  errorText,
  GATEWAY_CONTROLLER,
  GATEWAY_GROUP,
  objectAt,
  objectsAt,
  type RawObject,
  stringOf,
  valueAt,
} from "@fairlead/base";
import { type ApiFacts, type CalicoBPF, type ReadObjects, readObjects } from "@fairlead/inspect";
import { type Access, isAllowed, type ObjectSource, type OtherResource } from "@fairlead/watch";
import { type ClusterAccess, hasCluster } from "../../cluster/access.ts";
import { nameOf, otherResource } from "../../cluster/resources.ts";
import type { Context } from "../../frame/context.ts";
import { apiConnection, apiSource } from "../../inputs/cluster-access.ts";
import { version } from "../../version.ts";

/** What system:node-proxier allows and the agent needs. */
const NEEDED: readonly Access[] = [
  { verb: "list", group: "", resource: "services" },
  { verb: "watch", group: "", resource: "services" },
  { verb: "list", group: "discovery.k8s.io", resource: "endpointslices" },
  { verb: "watch", group: "discovery.k8s.io", resource: "endpointslices" },
  { verb: "list", group: "", resource: "nodes" },
  { verb: "watch", group: "", resource: "nodes" },
  { verb: "create", group: "events.k8s.io", resource: "events" },
];

/** Milliseconds that other networks' objects are waited for, as long as one request. */
const OBJECTS_WAIT = 60_000;

/** Asks the cluster's API server what it allows; without a known cluster it asks none. */
export async function apiFacts(
  options: ClusterAccess & { readonly on: string | undefined },
  context: Pick<Context, "env" | "warn">,
): Promise<ApiFacts> {
  if (!hasCluster(options, context)) return { kind: "unasked" };
  try {
    const connection = await apiConnection(options, context);
    const answers = await Promise.all(
      NEEDED.map(async (access) =>
        (await isAllowed(connection, access, `fairlead/${version}`)) ? [] : [accessText(access)],
      ),
    );
    const objects = apiSource(connection, { nodeName: "" }, () => {});
    const others = await otherNetworks(objects, AbortSignal.timeout(OBJECTS_WAIT));
    // On a node the kubeconfig is the agent's; with --on it is the user's, unless --as names the agent.
    const ofOther = options.on !== undefined && options.as === undefined;
    return { kind: "answers", server: connection.server, denied: answers.flat(), ofOther, ...others };
  } catch (error) {
    return { kind: "unreachable", reason: errorText(error) };
  }
}

function accessText({ verb, group, resource }: Access): string {
  return `${verb} ${resource}${group === "" ? "" : `.${group}`}`;
}

type Answers = Pick<Extract<ApiFacts, { kind: "answers" }>, "calico" | "cilium" | "gateways" | "subnets">;

/** Calico serves its settings under either group, as it is installed. */
const FELIX = ["crd.projectcalico.org/v1", "projectcalico.org/v3"].map((apiVersion) =>
  otherResource(apiVersion, "felixconfigurations", "FelixConfiguration"),
);
const CILIUM_CONFIG: OtherResource = {
  ...otherResource("v1", "configmaps", "ConfigMap", true),
  only: { namespace: "kube-system", name: "cilium-config" },
};
const SUBNETS = otherResource("kubeovn.io/v1", "subnets", "Subnet");
const GATEWAY_CLASSES = otherResource(`${GATEWAY_GROUP}/v1`, "gatewayclasses", "GatewayClass");
const GATEWAYS = otherResource(`${GATEWAY_GROUP}/v1`, "gateways", "Gateway", true);

/**
 * What the objects of other networks say of serving services.
 *
 * @param signal gives it up: what is not known then is taken for forbidden
 */
async function otherNetworks(source: ObjectSource, signal: AbortSignal): Promise<Answers> {
  const resources = [...FELIX, CILIUM_CONFIG, SUBNETS, GATEWAY_CLASSES, GATEWAYS];
  const known = await readObjects(source, resources, signal);
  const felix = FELIX.map((resource) => known.get(resource));
  const objects = felix.flatMap((one) => one?.objects ?? []);
  const calico = objects.find((raw) => nameOf(raw) === "default");
  const config = known.get(CILIUM_CONFIG);
  const replacement = stringOf(valueAt(config?.objects[0], "data", "kube-proxy-replacement"));
  const subnets = known.get(SUBNETS)?.objects.flatMap(vpcSubnet) ?? [];
  const gateways = ownGateways(known.get(GATEWAY_CLASSES)?.objects ?? [], known.get(GATEWAYS)?.objects ?? []);
  return {
    ...(subnets.length > 0 && { subnets }),
    ...(gateways.length > 0 && { gateways }),
    calico: calico === undefined ? unsaid(felix) : { kind: "found", value: calicoBPF(calico) },
    // A Cilium that says nothing does not replace it.
    cilium: config?.objects.length === 1 ? { kind: "found", value: replacement ?? "false" } : unsaid([config]),
  };
}

/** kube-ovn: pkg/apis/kubeovn/v1/subnet.go. */
function vpcSubnet(raw: unknown): NonNullable<Answers["subnets"]> {
  const spec = objectAt(raw, "spec");
  const [name, vpc, cidr] = [nameOf(raw), stringOf(spec["vpc"]), stringOf(spec["cidrBlock"])];
  return name && vpc && cidr ? [{ name, vpc, cidr }] : [];
}

/** Gateways of our controller's classes, and the first condition that keeps one from being programmed. */
function ownGateways(classes: readonly unknown[], gateways: readonly unknown[]): NonNullable<Answers["gateways"]> {
  const ours = classes.filter((raw) => valueAt(raw, "spec", "controllerName") === GATEWAY_CONTROLLER).map(nameOf);
  return gateways.flatMap((raw) => {
    if (!ours.includes(stringOf(valueAt(raw, "spec", "gatewayClassName")) ?? "")) return [];
    const gateway = `${stringOf(valueAt(raw, "metadata", "namespace"))}/${nameOf(raw)}`;
    const conditions = objectsAt(objectAt(raw, "status"), "conditions");
    const lacking = ["Accepted", "Programmed"]
      .map(
        (type): RawObject =>
          conditions.find((one) => one["type"] === type) ?? { reason: "Pending", message: `not ${type} yet` },
      )
      .find((one) => one["status"] !== "True");
    return [lacking === undefined ? { gateway } : { gateway, waitsFor: `${lacking["reason"]}: ${lacking["message"]}` }];
  });
}

function unsaid(
  read: readonly (ReadObjects | undefined)[],
): { readonly kind: "absent" } | { readonly kind: "forbidden" } {
  const whole = read.every((one) => one?.state === "synced");
  return { kind: whole ? "absent" : "forbidden" };
}

/** Unless it says otherwise the clean-up is on (FelixConfiguration's own default). */
function calicoBPF(raw: unknown): CalicoBPF {
  const spec = objectAt(raw, "spec");
  return {
    enabled: spec["bpfEnabled"] === true,
    cleansUp: spec["bpfKubeProxyIptablesCleanupEnabled"] !== false,
  };
}
