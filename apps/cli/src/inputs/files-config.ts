import { fieldsOf } from "@fairlead/base";
import { createManifestsSnapshot, type OtherSubscription } from "@fairlead/watch";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { ProxyConfig } from "../node/proxy-config.ts";
import { orFailure } from "./cluster-access.ts";

const KIND = "KubeProxyConfiguration";
const CONFIG_MAPS = { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true } as const;

/**
 * The configuration in the ConfigMap that manifests have.
 *
 * @throws CommandFailure when they have none, or several
 */
export async function configInFiles(
  paths: readonly string[],
  { readStandardInput, signal }: Pick<Context, "readStandardInput" | "signal">,
): Promise<ProxyConfig> {
  const found: ProxyConfig[] = [];
  const configMaps: OtherSubscription = {
    resource: CONFIG_MAPS,
    decode: (raw) => {
      found.push(...configsIn(raw));
      return undefined;
    },
    onChange: () => {},
    onState: () => {},
  };
  const source = createManifestsSnapshot({
    paths,
    nodeName: "",
    readStandardInput,
    // Most files have none, and are not parsed twice.
    prepare: (contents) =>
      contents.map((one) =>
        Buffer.from(one.buffer, one.byteOffset, one.byteLength).includes(KIND) ? one : new Uint8Array(),
      ),
  });
  await orFailure("-f ", source.run({ others: [configMaps] }, signal));
  const [first, second] = found;
  if (first === undefined) throw new CommandFailure("the files have no ConfigMap with a KubeProxyConfiguration");
  if (second !== undefined) {
    throw new CommandFailure(`the files have several configurations: ${found.map(({ from }) => from).join(", ")}`);
  }
  return first;
}

function configsIn(raw: unknown): readonly ProxyConfig[] {
  const { metadata, data } = fieldsOf(raw);
  const { namespace = "default", name } = fieldsOf(metadata);
  return Object.values(fieldsOf(data)).flatMap((text) =>
    typeof text === "string" && text.includes(`kind: ${KIND}`)
      ? [{ from: `ConfigMap ${namespace}/${name}`, flags: [], text }]
      : [],
  );
}
