/** The configuration in the form in which kube-proxy writes it (--write-config-to) and serves it (/configz). */
import type { RawObject } from "@fairlead/base";
import { dump } from "js-yaml";
import { valueAt, withValueAt } from "../paths.ts";
import type { ResolvedConfig } from "../types.ts";
import { API_VERSION, KIND, type KubeProxyInput, kubeProxySchema } from "./kube-proxy.ts";
import { fieldsOf } from "./row.ts";

/**
 * The configuration as a KubeProxyConfiguration v1alpha1 with its defaults.
 *
 * @param input what was given: stands where nothing is made of a field here
 */
export function toKubeProxyConfiguration(config: ResolvedConfig, input: KubeProxyInput): RawObject {
  return fieldsOf(kubeProxySchema).reduce<RawObject>(
    (document, { path, type, external }) => {
      const given = valueAt(input, path);
      const value =
        external === undefined ? (given ?? (type?.bare === undefined ? "" : false)) : external(config, given);
      return value === undefined ? document : withValueAt(document, path, value);
    },
    { apiVersion: API_VERSION, kind: KIND },
  );
}

/** With sorted keys, as kube-proxy has them. */
export function toYAML(configuration: RawObject): string {
  return dump(configuration, { sortKeys: true, seqNoIndent: true, quoteStyle: "double", lineWidth: -1 });
}
