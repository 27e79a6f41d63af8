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
    };

const FORM =
  "must be [NAMESPACE/]SERVICE[:PORT] or ADDRESS:PORT[/PROTOCOL], such as default/web, web:http or 10.96.0.10:53/udp";

/**
 * Reads `web`, `kube-system/kube-dns:dns`, `10.96.0.10:53/udp`, `[fd00::10]:80`.
 *
 * @throws RangeError that quotes the text and says what would be right
 */
export function parseTarget(text: string): Target {
  return parseSocket(text) ?? parseService(text);
}

function parseSocket(text: string): Target | undefined {
  const found = /^(?:\[(?<six>[^\]]+)\]|(?<four>[\d.]+)):(?<port>\d{1,5})(?:\/(?<protocol>\w+))?$/.exec(text);
  if (found?.groups === undefined) return undefined;
  const { six, four, port = "", protocol = "tcp" } = found.groups;
  const address = parseAddress(six ?? four ?? "");
  const number = Number(port);
  const known = (["TCP", "UDP", "SCTP"] as const).find((one) => one === protocol.toUpperCase());
  if (address === undefined || number < 1 || number > 65_535 || known === undefined) throw refusal(text);
  return { kind: "address", address: address.text, port: number, protocol: known };
}

function parseService(text: string): Target {
  const found = /^(?:(?<namespace>[a-z0-9-]+)\/)?(?<name>[a-z0-9][a-z0-9.-]*)(?::(?<port>[a-z0-9-]+))?$/.exec(text);
  if (found?.groups === undefined || parseAddress(text) !== undefined) throw refusal(text);
  const { namespace = "default", name = "", port } = found.groups;
  const service = serviceKey(namespace, name);
  return port === undefined ? { kind: "service", service } : { kind: "service", service, port };
}

function refusal(text: string): RangeError {
  return new RangeError(`${JSON.stringify(text)} ${FORM}`);
}
