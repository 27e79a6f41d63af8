import { familyOf, fieldsOf, IP_FAMILIES, type IPFamily, itemsOf, objectAt, stringOf, valueAt } from "@fairlead/base";
import { ApiError } from "../../cluster/api-error.ts";
import { inNamespace, NAMESPACES, nameOf, PODS, SERVICES } from "../../cluster/resources.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { type Acting, ensured, readyPod, startPod } from "./act.ts";
import { namespaceObject, OWN_LABEL, SERVED, SERVICE_PORT, serverRole, serviceObject } from "./objects.ts";
import type { Ground, ServiceName, TestNode, TestService } from "./plan.ts";

export interface SetupRequest {
  readonly nodes: readonly [here: TestNode, there: TestNode];
  /**
   * For external IPs and load balancers; none: addresses that no network has, which nodes and pods ask
   * all the same.
   */
  readonly external: readonly string[];
}

/** Of documentation (RFC 5737, RFC 3849): no network leads to them. */
const NOWHERE: Readonly<Record<IPFamily, (at: number) => string>> = {
  IPv4: (at) => `192.0.2.${240 + at}`,
  IPv6: (at) => `2001:db8::f${at}`,
};

/** What is there when packets are sent: everything but the clients. */
export type Prepared = Omit<Ground, "places" | "dns"> & {
  /** Why there are no external IPs; absent: there are. */
  readonly noExternalIPs?: string;
};

/** Makes the namespace, the services and the servers, or takes those that a run has kept. */
export async function prepared(acting: Acting, { nodes, external }: SetupRequest): Promise<Prepared> {
  const { namespace } = acting.settings;
  await ownNamespace(acting);
  const families = await familiesOf(acting, nodes);
  const { services, refused } = await madeServices(acting, families, external);
  const [here, there] = nodes;
  const both = [
    { name: "web-a", node: here.name, serves: ["both", "here"] },
    { name: "web-b", node: there.name, serves: ["both"] },
  ] as const;
  for (const { name, ...where } of both) await startPod(acting, { name, ...where, roles: [serverRole(name)] });
  const servers = { "web-a": await readyPod(acting, "web-a"), "web-b": await readyPod(acting, "web-b") };
  const routed = external.length > 0;
  return {
    namespace,
    families,
    here,
    there,
    servers,
    services,
    routed,
    ...(refused !== undefined && { noExternalIPs: refused }),
  };
}

async function ownNamespace(acting: Acting): Promise<void> {
  const { namespace } = acting.settings;
  const found = await ensured(acting, namespaceObject(namespace));
  if (!isOwn(found)) throw notOwn(namespace);
  if (valueAt(found, "metadata", "deletionTimestamp") !== undefined) {
    throw new CommandFailure(`--namespace=${namespace}: the last run's is still being deleted; run it again soon`);
  }
}

function isOwn(namespace: unknown): boolean {
  const { labels } = objectAt(namespace, "metadata");
  return Object.entries(OWN_LABEL).every(([name, value]) => fieldsOf(labels)[name] === value);
}

export function notOwn(namespace: string): CommandFailure {
  return new CommandFailure(
    `--namespace=${namespace}: the namespace exists and was not created by this test; choose another name`,
  );
}

/** Those in which the server gives ClusterIPs, and both nodes have addresses. */
async function familiesOf(acting: Acting, nodes: SetupRequest["nodes"]): Promise<readonly IPFamily[]> {
  const kubernetes = await acting.cluster.get(inNamespace(SERVICES, "default"), "kubernetes");
  const [primary] = itemsOf(valueAt(kubernetes, "spec", "ipFamilies"));
  const shared = IP_FAMILIES.filter((family) => nodes.every(({ addresses }) => addresses[family] !== undefined));
  const ordered = [...shared.filter((family) => family === primary), ...shared.filter((family) => family !== primary)];
  if (ordered.length < 2) return ordered;
  const probe = SERVED.find(({ name }) => name === "web-none");
  if (probe === undefined) return ordered;
  try {
    await ensured(acting, serviceObject(probe, acting.settings.namespace, ordered, [], acting.instance));
    return ordered;
  } catch (error) {
    // The cluster has one family of ClusterIPs.
    if (error instanceof ApiError && (error.status === 422 || error.status === 400)) return ordered.slice(0, 1);
    throw error;
  }
}

async function madeServices(acting: Acting, families: readonly IPFamily[], external: readonly string[]) {
  const { cluster, settings } = acting;
  const queues = new Map(families.map((family) => [family, external.filter((one) => familyOf(one) === family)]));
  let count = 0;
  const addresses = (): readonly string[] => {
    count += 1;
    return families.flatMap((family) => {
      if (external.length === 0) return [NOWHERE[family](count)];
      return queues.get(family)?.splice(0, 1) ?? [];
    });
  };
  const services: TestService[] = [];
  let refused: string | undefined;
  for (const served of SERVED) {
    const ips = served.external === true && refused === undefined ? addresses() : [];
    const make = (own: readonly string[]) =>
      ensured(acting, serviceObject(served, settings.namespace, families, own, acting.instance));
    let made = await make(ips).catch(async (error: unknown) => {
      // DenyServiceExternalIPs, or a policy.
      if (!(error instanceof ApiError) || ips.length === 0) throw error;
      refused = error.message;
      return make([]);
    });
    if (served.external === true) {
      const ingress = addresses().map((ip) => ({ ip }));
      const before = itemsOf(valueAt(made, "status", "loadBalancer", "ingress"));
      const at = inNamespace(SERVICES, settings.namespace);
      if (before.length === 0)
        await cluster.patch(at, served.name, { status: { loadBalancer: { ingress } } }, "status");
      made = await cluster.get(at, served.name);
    }
    if (served.name !== "web-rolled") services.push(serviceIn(made, served.name));
  }
  return { services, refused };
}

function serviceIn(raw: unknown, name: ServiceName): TestService {
  const spec = objectAt(raw, "spec");
  const ingress = itemsOf(valueAt(raw, "status", "loadBalancer", "ingress"));
  const nodePort = fieldsOf(itemsOf(spec["ports"])[0])["nodePort"];
  return {
    name,
    clusterIPs: byFamily(itemsOf(spec["clusterIPs"])),
    port: SERVICE_PORT,
    ...(typeof nodePort === "number" && { nodePort }),
    externalIPs: byFamily(itemsOf(spec["externalIPs"])),
    loadBalancerIPs: byFamily(ingress.map((one) => fieldsOf(one)["ip"])),
  };
}

function byFamily(addresses: readonly unknown[]): Readonly<Partial<Record<IPFamily, string>>> {
  const texts = addresses.flatMap((one) => stringOf(one) ?? []).filter((one) => one !== "None");
  return Object.fromEntries(texts.map((one) => [familyOf(one), one]));
}

/** Whether names are resolved: the Service that every installation of DNS has. */
export async function hasDNS({ cluster }: Acting): Promise<boolean> {
  return (await cluster.get(inNamespace(SERVICES, "kube-system"), "kube-dns")) !== undefined;
}

/**
 * Takes everything away, the namespace last; what is not there is no failure.
 *
 * @returns false: the namespace is not of this test, and nothing was done
 */
export async function removeAll({
  cluster,
  settings: { namespace },
}: Pick<Acting, "cluster" | "settings">): Promise<boolean> {
  const found = await cluster.get(NAMESPACES, namespace);
  if (found === undefined) return true;
  if (!isOwn(found)) return false;
  const selection = {
    labels: Object.entries(OWN_LABEL)
      .map(([name, value]) => `${name}=${value}`)
      .join(","),
  };
  for (const plural of [SERVICES, PODS]) {
    const resource = inNamespace(plural, namespace);
    const left = await cluster.list(resource, selection);
    await Promise.all(left.map((one) => cluster.remove(resource, nameOf(one))));
  }
  await cluster.delete(NAMESPACES, namespace);
  return true;
}
