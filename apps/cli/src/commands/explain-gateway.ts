/** `explain gateway NAME`: which routes have a Gateway's listeners, where they lead, and what is wrong. */

import {
  GATEWAY_GROUP,
  itemsOf,
  numberOf,
  objectAt,
  objectsAt,
  type RawObject,
  stringOf,
  textAt,
  valueAt,
} from "@fairlead/base";
import { owningGateway } from "@fairlead/core";
import { openCluster } from "../cluster/cluster.ts";
import { inNamespace, nameOf, SERVICES } from "../cluster/resources.ts";
import type { explainOptions } from "../facts/plans.ts";
import type { CommandInput } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { print } from "../frame/output.ts";
import { tableText } from "../frame/text.ts";
import { namespaceOf } from "../inputs/cluster-access.ts";

const resource = (plural: string) => ({ apiVersion: `${GATEWAY_GROUP}/v1`, plural });

export async function explainGateway(
  { arguments: [kind = "", text = ""], options }: CommandInput<typeof explainOptions>,
  context: Context,
): Promise<0> {
  if (kind !== "gateway") throw new UsageError(`${kind} ${text}: must be one target, or gateway [NAMESPACE/]NAME`);
  if (options.file.length > 0 || options.sysdump !== undefined)
    throw new UsageError("gateway: asks a cluster; leave out -f and --sysdump");
  const [name = "", namespace = await namespaceOf(options, context)] = text.split("/").reverse();
  const cluster = openCluster(options, context);
  const gateway = await cluster.get(inNamespace(resource("gateways"), namespace), name);
  if (gateway === undefined) throw new CommandFailure(`there is no Gateway ${namespace}/${name}`);
  const routes = await Promise.all(
    ["TCP", "UDP"].map(async (protocol) =>
      (await cluster.list(resource(`${protocol.toLowerCase()}routes`))).map((raw) => routeOf(protocol, raw)),
    ),
  );
  // The value of the label need not be the name: it holds 63 characters.
  const services = await cluster.list(inNamespace(SERVICES, namespace), { labels: `${GATEWAY_GROUP}/gateway-name` });
  const service = services.find((raw) => owningGateway(raw) === name);
  const answer = answerOf(gateway, `${namespace}/${name}`, service, routes.flat());
  await print(options.output, answer, () => answerText(answer), context);
  return 0;
}

/** A route; `parents`: its status for each Gateway that it names. */
type Route = ReturnType<typeof routeOf>;

function routeOf(protocol: string, raw: unknown) {
  const namespace = stringOf(valueAt(raw, "metadata", "namespace")) ?? "";
  const keyIn = (ref: unknown) => `${textAt(ref, "namespace") ?? namespace}/${textAt(ref, "name")}`;
  const refs = objectsAt(itemsOf(valueAt(raw, "spec", "rules"))[0], "backendRefs");
  const weightOf = (ref: RawObject) => numberOf(ref["weight"]) ?? 1;
  const all = refs.reduce((sum, ref) => sum + weightOf(ref), 0);
  return {
    route: `${protocol}Route ${namespace}/${nameOf(raw)}`,
    protocol,
    age: `${stringOf(valueAt(raw, "metadata", "creationTimestamp"))} ${namespace}/${nameOf(raw)}`,
    parents: objectsAt(objectAt(raw, "status"), "parents").map((status) => {
      const ref = objectAt(status, "parentRef");
      return { status, gateway: keyIn(ref), section: ref["sectionName"], port: ref["port"] };
    }),
    backends: refs.map((ref) => ({
      backend: `${keyIn(ref)}:${numberOf(ref["port"])}`,
      percent: all === 0 ? 0 : Number(((100 * weightOf(ref)) / all).toPrecision(3)),
    })),
  };
}

function answerOf(raw: unknown, gateway: string, service: unknown, routes: readonly Route[]) {
  const [spec, status] = [objectAt(raw, "spec"), objectAt(raw, "status")];
  const own = routes
    .map((route) => ({ ...route, parents: route.parents.filter((one) => one.gateway === gateway) }))
    .sort((one, other) => (one.age < other.age ? -1 : 1));
  const listeners = objectsAt(spec, "listeners").map(({ name, port, protocol }) => ({
    listener: `${name} ${port}/${protocol}`,
    // The oldest has the listener, and the others wait.
    routes: own
      .filter((one) => one.protocol === protocol && one.parents.some((parent) => isAttached(parent, name, port)))
      .map(({ route, backends }, at) => ({ route, waits: at > 0, backends })),
  }));
  return {
    gateway,
    class: textAt(spec, "gatewayClassName"),
    addresses: objectsAt(status, "addresses").flatMap((one) => textAt(one, "value") ?? []),
    service: service === undefined ? undefined : `${gateway.split("/")[0]}/${nameOf(service)}`,
    listeners,
    problems: [
      ...complaints("Gateway", status),
      ...objectsAt(status, "listeners").flatMap((one) => complaints(`listener ${one["name"]}`, one)),
      ...own.flatMap(({ route, parents }) => parents.flatMap((parent) => complaints(route, parent.status))),
    ],
  };
}

function isAttached({ status, section, port: asked }: Route["parents"][number], name: unknown, port: unknown): boolean {
  const accepted = objectsAt(status, "conditions").some(
    (one) => one["type"] === "Accepted" && one["status"] === "True",
  );
  return accepted && (section ?? name) === name && (asked ?? port) === port;
}

/** What conditions say that is not as it should be; of Conflicted that is False. */
function complaints(what: string, holder: unknown): readonly string[] {
  return objectsAt(holder, "conditions").flatMap(({ type, status, reason, message }) =>
    (status === "True") === (type !== "Conflicted") ? [] : [`${what}: ${type} ${status}, ${reason}: ${message}`],
  );
}

function answerText(answer: ReturnType<typeof answerOf>): string {
  const { gateway, class: ofClass, addresses, service, listeners, problems } = answer;
  const by = service === undefined ? "without a Service" : `by Service ${service} (fairlead explain ${service})`;
  const rows = listeners.flatMap(({ listener, routes }) => {
    if (routes.length === 0) return [[listener, "none", "-"]];
    return routes.map(({ route, waits, backends }) => {
      const texts = backends.map(({ backend, percent }) => `${backend} ${percent} %`);
      return [listener, route, waits ? "waits: an older route has the listener" : texts.join(", ")];
    });
  });
  const table = tableText(["listener", "route", "leads to"], rows);
  const head = `Gateway ${gateway} of class ${ofClass}, at ${addresses.join(", ") || "no address"}, ${by}`;
  return `${head}\n\n${table}${problems.map((one) => `! ${one}\n`).join("")}`;
}
