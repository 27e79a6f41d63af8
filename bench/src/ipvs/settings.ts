import type { Size } from "../cluster/objects.ts";
import type { ProxyName } from "../proxy/measured-proxy.ts";

/** What the guest gets, as a file of JSON. */
export interface GuestSettings extends Size {
  /** What is measured, one after the other; a name may come again. */
  readonly order: readonly ProxyName[];
  /** How many changes of one endpoint each of them gets. */
  readonly changes: number;
  readonly kubeProxy: string;
  readonly apiServer: { readonly host: string; readonly port: number; readonly ca: string; readonly token: string };
  readonly proxyKubeconfig: string;
}
