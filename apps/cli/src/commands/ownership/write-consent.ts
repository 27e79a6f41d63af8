import { fieldsOf, stringOf } from "@fairlead/base";
import { CONSENT_NAME } from "@fairlead/intake";
import { openCluster } from "../../cluster/cluster.ts";
import { CONFIG_MAPS, inNamespace } from "../../cluster/resources.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { type ConsentEntry, withEntry } from "./consent-text.ts";
import type { ownershipOptions } from "./options.ts";

type Options = CommandInput<typeof ownershipOptions>["options"];

/** How long nodes that were away find what is to be forgotten. */
const FORGET_MS = 30 * 24 * 3_600_000;

/**
 * Adds CIDRs to the ConfigMap, with the caller's rights; what is there stays.
 *
 * @throws CommandFailure when it cannot be read or written, or has no list to add to
 */
export async function writeConsent(
  options: Options,
  context: Context,
  namespace: string,
  cidrs: readonly string[],
): Promise<void> {
  const where = `ConfigMap ${namespace}/${CONSENT_NAME}`;
  const cluster = openCluster(options, context);
  const existing = await cluster.get(inNamespace(CONFIG_MAPS, namespace), CONSENT_NAME);
  const key = options.accept === undefined ? "forgotten" : "accepted";
  const raw = fieldsOf(existing);
  const data = fieldsOf(raw["data"]);
  let text = stringOf(data[key]);
  for (const cidr of cidrs) {
    text = withEntry(text, entryOf(options, context, cidr));
    if (text === undefined) {
      throw new CommandFailure(
        `${where}: data.${key} is not a list; fix it first (agents still use the last valid value)`,
      );
    }
  }
  const metadata = { ...fieldsOf(raw["metadata"]), name: CONSENT_NAME, namespace };
  const object = { ...raw, apiVersion: "v1", kind: "ConfigMap", metadata, data: { ...data, [key]: text } };
  await (existing === undefined ? cluster.create(object) : cluster.replace(object));
  context.out(`Written: ${cidrs.join(", ")} ${cidrs.length === 1 ? "is" : "are"} in ${key} of ${where}.\n`);
}

function entryOf({ accept, why }: Options, { env }: Context, cidr: string): ConsentEntry {
  const by = env["USER"] ?? env["LOGNAME"] ?? "unknown";
  if (accept !== undefined) return { cidr, by, why: why ?? "" };
  return { cidr, until: new Date(Date.now() + FORGET_MS).toISOString(), by };
}
