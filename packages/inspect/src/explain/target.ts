import { parseAddress } from "@fairlead/base";
import { type Protocol, type ServiceKey, serviceKey } from "@fairlead/core";

/** What is asked about. */
export type Target =
  | {
      readonly kind: "service";
      readonly service: ServiceKey;
      /** Name or number of a port; absent: all of them. */
      readonly port?: string;
    }
  | {
      readonly kind: "address";
      /** Canonical address. */
      readonly address: string;
      readonly port: number;
      readonly protocol: Protocol;
    }
  /** Every service that has the address, as a frontend's or an endpoint's. */
  | {
      readonly kind: "host";
      /** Canonical address. */
      readonly address: string;
    }
  | { readonly kind: "nodePort"; readonly port: number; readonly protocol: Protocol };

const FORM =
  "must be [NAMESPACE/]SERVICE[:PORT], svc/SERVICE, ADDRESS[:PORT[/PROTOCOL]] or :NODEPORT, such as shop/web, web:http, 10.96.0.10:53/udp or :30080";

/**
 * Reads `web`, `svc/web`, `kube-system/kube-dns:dns`, `10.96.0.10:53/udp`, `[fd00::10]:80`, `10.96.0.10`, `:30080`.
 *
 * @param namespace of a service that is named without one. Default `default`
 * @throws RangeError that quotes the text and says what would be right
 */
export function parseTarget(text: string, namespace = "default"): Target {
  const host = parseAddress(/^\[(.+)\]$/.exec(text)?.[1] ?? text);
  if (host !== undefined) return { kind: "host", address: host.text };
  return parseSocket(text) ?? parseService(text, namespace);
}

function parseSocket(text: string): Target | undefined {
  const found = /^(?:\[(?<six>[^\]]+)\]|(?<four>[\d.]+))?:(?<port>\d{1,5})(?:\/(?<protocol>\w+))?$/.exec(text);
  if (found?.groups === undefined) return undefined;
  const { six, four, port = "", protocol = "tcp" } = found.groups;
  const number = Number(port);
  const known = (["TCP", "UDP", "SCTP"] as const).find((one) => one === protocol.toUpperCase());
  if (number < 1 || number > 65_535 || known === undefined) throw refusal(text);
  const written = six ?? four;
  if (written === undefined) return { kind: "nodePort", port: number, protocol: known };
  const address = parseAddress(written);
  if (address === undefined) throw refusal(text);
  return { kind: "address", address: address.text, port: number, protocol: known };
}

/** What kubectl calls a service's type; `svc/web` is no service of a namespace svc, which -n names. */
const TYPES: ReadonlySet<string> = new Set(["svc", "service", "services"]);

function parseService(text: string, otherwise: string): Target {
  const found = /^(?:(?<namespace>[a-z0-9-]+)\/)?(?<name>[a-z0-9][a-z0-9.-]*)(?::(?<port>[a-z0-9-]+))?$/.exec(text);
  if (found?.groups === undefined) throw refusal(text);
  const { namespace, name = "", port } = found.groups;
  // 10.96.0.999 is no service's name either.
  if (/^[\d.]+$/.test(name) && name.includes(".")) throw refusal(text);
  const service = serviceKey(namespace === undefined || TYPES.has(namespace) ? otherwise : namespace, name);
  return port === undefined ? { kind: "service", service } : { kind: "service", service, port };
}

function refusal(text: string): RangeError {
  return new RangeError(`${JSON.stringify(text)} ${FORM}`);
}
