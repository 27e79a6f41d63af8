import { errorText, familyOf, fieldsOf, itemsOf } from "@fairlead/base";
import { addressIn } from "@fairlead/inspect";
import { type Manifest, resourceOf } from "../../cluster/resources.ts";
import { type Acting, ensured, waitFor } from "./act.ts";
import { agentText } from "./agents.ts";
import { OWN_LABEL, SERVICE_PORT, serviceLabels } from "./objects.ts";
import type { Prepared } from "./setup.ts";
import type { Check } from "./table.ts";

const NAME = "another network's service is left alone";
const SERVICE = "web-foreign";

/** A service whose endpoint is in an excluded CIDR: each node's agent has to say that it is foreign. */
export async function foreignService(
  acting: Acting,
  { here, there, families }: Prepared,
  excluded: readonly string[],
  patienceMs: number,
): Promise<Check> {
  const cidr = excluded.flatMap((one) => one.split(",")).find((one) => families.includes(familyOf(one)));
  if (cidr === undefined) return { name: NAME, skipped: "give its CIDR with --exclude-cluster-cidr" };
  const [service, slice] = objects(acting, cidr);
  await ensured(acting, service);
  // That of a run that was kept may be in another CIDR.
  await acting.cluster.remove(resourceOf(slice), SERVICE);
  await acting.cluster.create(slice);
  const wrong: string[] = [];
  for (const { name } of [here, there]) {
    try {
      if ((await agentText(acting, name, "/ownership")) === undefined) {
        return { name: NAME, skipped: `no agent that knows owners runs on ${name}` };
      }
      await waitFor(`${SERVICE} to be foreign`, acting, () => isForeign(acting, name), patienceMs);
    } catch (error) {
      wrong.push(`${SERVICE} on ${name}: ${errorText(error)}`);
    }
  }
  return wrong.length === 0 ? { name: NAME } : { name: NAME, complaint: wrong.join("; ") };
}

async function isForeign(acting: Acting, node: string): Promise<object | string> {
  const report: unknown = JSON.parse((await agentText(acting, node, "/ownership")) ?? "{}");
  const row = itemsOf(fieldsOf(report)["services"])
    .map(fieldsOf)
    .find(({ service }) => service === `${acting.settings.namespace}/${SERVICE}`);
  if (row === undefined) return "the agent does not know it";
  return row["ownership"] === "foreign" ? row : `the agent takes it for ${row["ownership"]}`;
}

function objects(
  { settings: { namespace }, instance }: Acting,
  cidr: string,
): readonly [service: Manifest, slice: Manifest] {
  const family = familyOf(cidr);
  const port = { name: "tcp", protocol: "TCP", port: SERVICE_PORT };
  const labels = { ...OWN_LABEL, "kubernetes.io/service-name": SERVICE };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: SERVICE, namespace, labels: serviceLabels(instance) },
      spec: { ports: [port], ipFamilyPolicy: "SingleStack", ipFamilies: [family] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: SERVICE, namespace, labels },
      addressType: family,
      ports: [port],
      endpoints: [{ addresses: [addressIn(cidr)], conditions: { ready: true } }],
    },
  ];
}
