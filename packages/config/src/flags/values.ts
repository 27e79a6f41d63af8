import type { GivenFlags } from "./command-line.ts";
import type { FlagDefinition } from "./definition.ts";
import { FLAGS } from "./table.ts";

/** Values of flags without a default of their own, by type, as pflag prints them. */
const ZERO: Readonly<Record<string, string>> = { "": "false", int32: "0", float32: "0", duration: "0s", Level: "0" };

/** Every flag that may be set, with its value on the command line or its default: what kube-proxy serves at /flagz. */
export function flagValues(given: GivenFlags): Record<string, string> {
  const shown = [...FLAGS.values()].filter(({ windows }) => windows !== true);
  return Object.fromEntries(shown.map((flag) => [flag.name, flagText(flag, given.get(flag.name))]));
}

function flagText({ type, defaultText }: FlagDefinition, texts: readonly string[] | undefined): string {
  const all = (texts ?? []).map(withoutPassword);
  if (type.placeholder === "strings") return `[${all.join(",")}]`;
  const text = type.placeholder === "mapStringBool" ? all.join(",") : (all.at(-1) ?? "");
  return text === "" ? (defaultText ?? ZERO[type.placeholder] ?? "") : text;
}

/** Of a URL, such as that of --master. */
function withoutPassword(text: string): string {
  return text.replace(/^(https?:\/\/)[^/@]*@/, "$1");
}
