/** What is checked: every case by clients, a rolling update, a service of another network. */

import { errorText, familyOf, fieldsOf, itemsOf, stringOf, valueAt } from "@fairlead/base";
import { addressIn } from "@fairlead/inspect";
import type { Cluster } from "../../cluster/cluster.ts";
import { inNamespace, type Manifest, PODS, resourceOf, SERVICES } from "../../cluster/resources.ts";
import { okText, portsOf, proxyIn } from "../../node/agent-endpoint.ts";
import { type Agents, agentPods } from "../../node/agent-pods.ts";
import { type Acting, ensured, linesOf, linesUntil, readyPod, removePod, startPod, waitFor } from "./act.ts";
import { OWN_LABEL, SERVICE_PORT, serverRole, serviceLabels } from "./objects.ts";
import { type Case, type Check, casesOf, type Ground, type Judged, type Place, type TestNode } from "./plan.ts";
import { askAll, type Line, type Observed, ownAddresses, type Probe } from "./pod.ts";
import type { Prepared } from "./setup.ts";

/** Asks every case, from all places at once. @param patienceMs until what is programmed has to be right */
export async function judgedCases(acting: Acting, ground: Ground, patienceMs: number): Promise<readonly Judged[]> {
  const cases = casesOf(ground);
  const byClient = Map.groupBy(cases, clientOf);
  const judged = await Promise.all(
    Array.from(byClient, async ([client, own]) => {
      const probes = own.map(({ probe }) => probe);
      const ask = () => {
        if (client === "outside") return askHere(probes, patienceMs);
        if (client === "hairpin") return askOfItself(acting, ground, probes, patienceMs);
        return askIn(acting, ground, client, probes, patienceMs);
      };
      const answers = new Map((await ask()).map((one) => [one.id, one]));
      const found = own.map((one) => [one, judge(one, answers.get(one.probe.id))] as const);
      const right = found.filter(([, { complaint }]) => complaint === undefined);
      acting.warn(`asked from ${client}: ${right.length} of ${found.length} right`);
      return found;
    }),
  );
  const byCase = new Map(judged.flat());
  return cases.flatMap((one) => byCase.get(one) ?? []);
}

type Client = Place | "hairpin";

function clientOf({ service, place }: Case): Client {
  return service === "web-hairpin" ? "hairpin" : place;
}

function judge({ probe, ...of }: Case, observed: Observed | undefined): Judged {
  const { address, port, name } = probe;
  const to = name?.text ?? (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
  const { complaint } = observed ?? { complaint: "its client did not ask" };
  return { ...of, to, ...(complaint !== undefined && { complaint }) };
}

async function askHere(probes: readonly Probe[], patienceMs: number): Promise<readonly Observed[]> {
  const observed: Observed[] = [];
  await askAll(probes, { patienceMs, own: ownAddresses() }, (one) => void observed.push(one));
  return observed;
}

/** Clients of a kept run are replaced: they have asked. */
async function askIn(
  acting: Acting,
  ground: Ground,
  client: Exclude<Client, "outside" | "hairpin">,
  probes: readonly Probe[],
  patienceMs: number,
): Promise<readonly Observed[]> {
  const name = `client-${client}`;
  await removePod(acting, name);
  await startPod(acting, {
    name,
    node: client.endsWith("there") ? ground.there.name : ground.here.name,
    roles: [{ kind: "ask", probes, patienceMs }],
    ...(client.startsWith("node") && { hostNetwork: true as const }),
  });
  await readyPod(acting, name);
  const lines = await linesUntil(acting, name, "ask", "done");
  return lines.filter((line) => line.kind === "observed");
}

/** It is its service's endpoint, so it stays and asks in rounds; the last one that began after this call counts. */
async function askOfItself(
  acting: Acting,
  ground: Ground,
  probes: readonly Probe[],
  patienceMs: number,
): Promise<readonly Observed[]> {
  const name = "web-hairpin";
  const ask = { kind: "ask", probes, patienceMs: 0, forever: true } as const;
  await startPod(acting, { name, node: ground.here.name, roles: [serverRole(name), ask], serves: ["hairpin"] });
  await readyPod(acting, name);
  const rounds = async () => roundsIn(await linesOf(acting, name, "ask"));
  const before = (await rounds()).length;
  const end = performance.now() + patienceMs;
  const last = await waitFor(`${name} to ask`, acting, async () => {
    const all = await rounds();
    const round = all.at(-1);
    if (round === undefined || all.length < before + 2) return "no answer yet";
    return performance.now() > end || round.every(({ complaint }) => complaint === undefined)
      ? { round }
      : "not right yet";
  });
  // A kept client has the numbers of its own run.
  return probes.flatMap(({ id }, at) => {
    const one = last.round[at];
    return one === undefined ? [] : [{ ...one, id }];
  });
}

function roundsIn(lines: readonly Line[]): readonly (readonly Observed[])[] {
  const rounds: Observed[][] = [];
  let round: Observed[] = [];
  for (const line of lines) {
    if (line.kind === "observed") round.push(line);
    if (line.kind !== "done") continue;
    rounds.push(round.sort((a, b) => a.id - b.id));
    round = [];
  }
  return rounds;
}

const ROLLING_CHECK = "rolling update under requests";
const ROLLED_SERVICE = "web-rolled";

/** Replaces all endpoints of a service while a client asks it; no request may fail. */
export async function rolledUpdate(acting: Acting, { here, there }: Prepared): Promise<Check> {
  const generation = async (of: "old" | "new") => {
    const names = [`rolled-${of}-a`, `rolled-${of}-b`];
    for (const [at, name] of names.entries()) {
      const node = at === 0 ? here.name : there.name;
      await removePod(acting, name);
      await startPod(acting, { name, node, roles: [serverRole(name)], serves: ["rolled"] });
    }
    await Promise.all(names.map((name) => readyPod(acting, name)));
    return names;
  };
  const old = await generation("old");
  const address = await clusterIP(acting);
  const until = ["rolled-new-a", "rolled-new-b"];
  await removePod(acting, "client-load");
  const load = { kind: "load", address, port: SERVICE_PORT, until } as const;
  await startPod(acting, { name: "client-load", node: there.name, roles: [load] });
  await linesUntil(acting, "client-load", "load", "loading");
  await generation("new");
  await Promise.all(old.map((name) => removePod(acting, name)));
  const lines = await linesUntil(acting, "client-load", "load", "loaded");
  await Promise.all([...until, "client-load"].map((name) => removePod(acting, name)));
  const loaded = lines.find((line) => line.kind === "loaded");
  const failures = Object.entries(loaded?.failures ?? {});
  if (failures.length === 0)
    return { name: `${ROLLING_CHECK} (${loaded?.requests ?? 0} requests to ${ROLLED_SERVICE})` };
  const text = failures.map(([error, count]) => `${count} × ${error}`).join(", ");
  return { name: ROLLING_CHECK, complaint: `${ROLLED_SERVICE}: of ${loaded?.requests} requests failed ${text}` };
}

async function clusterIP({ cluster, settings }: Acting): Promise<string> {
  const service = await cluster.get(inNamespace(SERVICES, settings.namespace), ROLLED_SERVICE);
  return stringOf(itemsOf(valueAt(service, "spec", "clusterIPs"))[0]) ?? "";
}

const FOREIGN_CHECK = "another network's service is ignored";
const FOREIGN_SERVICE = "web-foreign";

/** A service whose endpoint is in an excluded CIDR: each node's agent has to say that it is foreign. */
export async function foreignService(
  acting: Acting,
  { here, there, families }: Prepared,
  excluded: readonly string[],
  patienceMs: number,
): Promise<Check> {
  const cidr = excluded.flatMap((one) => one.split(",")).find((one) => families.includes(familyOf(one)));
  if (cidr === undefined) return { name: FOREIGN_CHECK, skipped: "give its CIDR with --exclude-cluster-cidr" };
  const [service, slice] = objects(acting, cidr);
  await ensured(acting, service);
  // That of a run that was kept may be in another CIDR.
  await acting.cluster.remove(resourceOf(slice), FOREIGN_SERVICE);
  await acting.cluster.create(slice);
  const wrong: string[] = [];
  for (const { name } of [here, there]) {
    try {
      if ((await agentText(acting, name, "/ownership")) === undefined) {
        return { name: FOREIGN_CHECK, skipped: `no agent that knows owners runs on ${name}` };
      }
      await waitFor(`${FOREIGN_SERVICE} to be foreign`, acting, () => isForeign(acting, name), { patienceMs });
    } catch (error) {
      wrong.push(`${FOREIGN_SERVICE} on ${name}: ${errorText(error)}`);
    }
  }
  return wrong.length === 0 ? { name: FOREIGN_CHECK } : { name: FOREIGN_CHECK, complaint: wrong.join("; ") };
}

async function isForeign(acting: Acting, node: string): Promise<object | string> {
  const report: unknown = JSON.parse((await agentText(acting, node, "/ownership")) ?? "{}");
  const row = itemsOf(fieldsOf(report)["services"])
    .map(fieldsOf)
    .find(({ service }) => service === `${acting.settings.namespace}/${FOREIGN_SERVICE}`);
  if (row === undefined) return "the agent does not know it";
  return row["ownership"] === "foreign" ? row : `the agent takes it for ${row["ownership"]}`;
}

function objects(
  { settings: { namespace }, instance }: Acting,
  cidr: string,
): readonly [service: Manifest, slice: Manifest] {
  const family = familyOf(cidr);
  const port = { name: "tcp", protocol: "TCP", port: SERVICE_PORT };
  const labels = { ...OWN_LABEL, "kubernetes.io/service-name": FOREIGN_SERVICE };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: FOREIGN_SERVICE, namespace, labels: serviceLabels(instance) },
      spec: { ports: [port], ipFamilyPolicy: "SingleStack", ipFamilies: [family] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: FOREIGN_SERVICE, namespace, labels },
      addressType: family,
      ports: [port],
      endpoints: [{ addresses: [addressIn(cidr)], conditions: { ready: true } }],
    },
  ];
}

/** The image of a Fairlead agent that runs: nodes have it. Undefined: none does, or pods may not be listed. */
export async function agentImage(cluster: Cluster): Promise<string | undefined> {
  const pods = await cluster.list(PODS, { labels: "app.kubernetes.io/name=fairlead" }).catch(() => []);
  const [container] = pods.flatMap((pod) => itemsOf(valueAt(pod, "spec", "containers")));
  return stringOf(fieldsOf(container)["image"]);
}

/** The mode of each node's proxy, as far as it says it: any proxy may serve. */
export async function nodeModes(agents: Agents, nodes: readonly TestNode[]): Promise<ReadonlyMap<string, string>> {
  return new Map(await Promise.all(nodes.map(async ({ name }) => [name, await modeOf(agents, name)] as const)));
}

async function modeOf(agents: Agents, node: string): Promise<string> {
  return (await agentText(agents, node, "/proxyMode").catch(() => undefined))?.trim() ?? "proxy unknown";
}

/** A page of the node's proxy. */
async function agentText(agents: Agents, node: string, path: string): Promise<string | undefined> {
  const pod = (await agentPods(agents)).get(node);
  const { metrics } = portsOf({ "metrics-port": undefined, "service-proxy-name": agents.instance });
  return pod === undefined ? undefined : okText(proxyIn(pod, agents), metrics, path);
}
