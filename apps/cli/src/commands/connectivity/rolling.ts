import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { inNamespace, SERVICES } from "../../cluster/resources.ts";
import { type Acting, linesUntil, readyPod, removePod, startPod } from "./act.ts";
import { SERVICE_PORT, serverRole } from "./objects.ts";
import type { Prepared } from "./setup.ts";
import type { Check } from "./table.ts";

const NAME = "rolling update under requests";
const SERVICE = "web-rolled";

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
  if (failures.length === 0) return { name: `${NAME} (${loaded?.requests ?? 0} requests to ${SERVICE})` };
  const text = failures.map(([error, count]) => `${count} × ${error}`).join(", ");
  return { name: NAME, complaint: `${SERVICE}: of ${loaded?.requests} requests failed ${text}` };
}

async function clusterIP({ cluster, settings }: Acting): Promise<string> {
  const service = await cluster.get(inNamespace(SERVICES, settings.namespace), SERVICE);
  return stringOf(itemsOf(fieldsOf(fieldsOf(service)["spec"])["clusterIPs"])[0]) ?? "";
}
