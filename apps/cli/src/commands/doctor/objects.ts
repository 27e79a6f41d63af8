import { fieldsOf, stringOf } from "@fairlead/base";
import type { ApiFacts, CalicoBPF } from "@fairlead/inspect";
import type { ObjectSource, OtherResource, OtherState, OtherSubscription } from "@fairlead/watch";

type Answers = Pick<Extract<ApiFacts, { kind: "answers" }>, "calico" | "cilium" | "subnets">;

/** Calico serves its settings under either group, as it is installed. */
const FELIX: readonly OtherResource[] = ["crd.projectcalico.org/v1", "projectcalico.org/v3"].map((text) => {
  const [group = "", version = ""] = text.split("/");
  return { group, version, plural: "felixconfigurations", kind: "FelixConfiguration", namespaced: false };
});

const CILIUM_CONFIG: OtherResource = {
  group: "",
  version: "v1",
  plural: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
  only: { namespace: "kube-system", name: "cilium-config" },
};

const SUBNETS: OtherResource = {
  group: "kubeovn.io",
  version: "v1",
  plural: "subnets",
  kind: "Subnet",
  namespaced: false,
};

/**
 * What the objects of other networks say of serving services.
 *
 * @param signal gives it up: what is not known then is taken for forbidden
 */
export async function otherNetworks(source: ObjectSource, signal: AbortSignal): Promise<Answers> {
  const resources = [...FELIX, CILIUM_CONFIG, SUBNETS];
  const known = await readOnce(source, resources, signal);
  const felix = FELIX.map((resource) => known.get(resource));
  const objects = felix.flatMap((one) => one?.objects ?? []);
  const calico = objects.find((raw) => stringOf(fieldsOf(fieldsOf(raw)["metadata"])["name"]) === "default");
  const config = known.get(CILIUM_CONFIG);
  const replacement = stringOf(fieldsOf(fieldsOf(config?.objects[0])["data"])["kube-proxy-replacement"]);
  const subnets = known.get(SUBNETS)?.objects.flatMap(vpcSubnet) ?? [];
  return {
    ...(subnets.length > 0 && { subnets }),
    calico: calico === undefined ? unsaid(felix) : { kind: "found", value: calicoBPF(calico) },
    // A Cilium that says nothing does not replace it.
    cilium: config?.objects.length === 1 ? { kind: "found", value: replacement ?? "false" } : unsaid([config]),
  };
}

/** kube-ovn: pkg/apis/kubeovn/v1/subnet.go. */
function vpcSubnet(raw: unknown): NonNullable<Answers["subnets"]> {
  const spec = fieldsOf(fieldsOf(raw)["spec"]);
  const [name, vpc, cidr] = [fieldsOf(fieldsOf(raw)["metadata"])["name"], spec["vpc"], spec["cidrBlock"]].map(stringOf);
  return name && vpc && cidr ? [{ name, vpc, cidr }] : [];
}

interface Read {
  readonly state: OtherState | undefined;
  readonly objects: readonly unknown[];
}

function unsaid(read: readonly (Read | undefined)[]): { readonly kind: "absent" } | { readonly kind: "forbidden" } {
  const whole = read.every((one) => one?.state === "listed" || one?.state === "absent");
  return { kind: whole ? "absent" : "forbidden" };
}

/** Unless it says otherwise the clean-up is on (FelixConfiguration's own default). */
function calicoBPF(raw: unknown): CalicoBPF {
  const spec = fieldsOf(fieldsOf(raw)["spec"]);
  return {
    enabled: spec["bpfEnabled"] === true,
    cleansUp: spec["bpfKubeProxyIptablesCleanupEnabled"] !== false,
  };
}

/** Reads resources that there may be or not, until each of them is known, and no longer. */
async function readOnce(
  source: ObjectSource,
  resources: readonly OtherResource[],
  signal: AbortSignal,
): Promise<ReadonlyMap<OtherResource, Read>> {
  const known = new Map<OtherResource, { state: OtherState | undefined; objects: unknown[] }>();
  const done = new AbortController();
  const others = resources.map((resource): OtherSubscription => {
    const read: { state: OtherState | undefined; objects: unknown[] } = { state: undefined, objects: [] };
    known.set(resource, read);
    return {
      resource,
      decode: (raw) => raw,
      onChange(change) {
        if (change.type === "upsert") read.objects.push(change.object);
      },
      onState(state) {
        read.state = state;
        if ([...known.values()].every((one) => one.state !== undefined)) done.abort();
      },
    };
  });
  await source.run({ others }, AbortSignal.any([signal, done.signal]));
  return known;
}
