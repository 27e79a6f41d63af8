import { decodeService } from "@fairlead/core";
import type { ObjectSource } from "@fairlead/watch";

/** One Service by its name, whatever proxy it is for. */
export interface NamedService {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Why a proxy has nothing to do with a Service that there is: it is headless, or left to the proxy of another name.
 * Undefined: there is no such Service, or nothing keeps the proxy from it.
 *
 * @param serviceProxyName the name of the proxy that is asked about; empty: the nodes' first proxies
 * @param signal gives it up
 */
export async function whyIgnored(
  source: ObjectSource,
  { namespace, name }: NamedService,
  serviceProxyName: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const done = new AbortController();
  let why: string | undefined;
  const subscription = {
    resource: {
      ...{ group: "", version: "v1", plural: "services", kind: "Service", namespaced: true },
      only: { namespace, name },
    },
    decode: (raw: unknown) => {
      const decoded = decodeService(raw, undefined, { serviceProxyName });
      why = decoded.ignored;
      return decoded;
    },
    onChange: ({ type }: { readonly type: string }) => {
      if (type === "synced") done.abort();
    },
    onState: (state: string) => {
      if (state === "forbidden") done.abort();
    },
  };
  await source.run({ others: [subscription] }, AbortSignal.any([signal, done.signal]));
  return why;
}
