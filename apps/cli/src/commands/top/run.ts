import { type ServiceTraffic, trafficByService } from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { Style } from "../../frame/style.ts";
import { bytesText } from "../../output/bytes.ts";
import { print } from "../../output/output.ts";
import { tableText } from "../../output/table.ts";
import { openAttribution } from "../flows/attribution.ts";
import { listed } from "../flows/listed.ts";
import { endpointText, serviceText } from "../flows/text.ts";
import type { topOptions } from "./options.ts";

export async function run({ options }: CommandInput<typeof topOptions>, context: Context): Promise<ExitCode> {
  const attribution = await openAttribution(options, context);
  const flows = await context.progress("reading connections", () => listed(attribution));
  const traffic = trafficByService(flows);
  await print(options.output, traffic, () => trafficText(traffic, context.style), context);
  return traffic.some(({ gone }) => gone > 0) ? 1 : 0;
}

function trafficText(traffic: readonly ServiceTraffic[], style: Style): string {
  if (traffic.length === 0) return "no connections of services\n";
  const rows = traffic.flatMap((service) => {
    const { endpoints, protocol, owner } = service;
    const name = `${serviceText(service)} ${protocol.toLowerCase()}`;
    return [
      [name, owner, ...counts(service)],
      ...endpoints.map((one) => [`  ${endpointText(one, style)}`, "", ...counts(one)]),
    ];
  });
  return tableText(["service", "owner", "connections", "unreplied", "sent", "received"], rows);
}

type Counts = Pick<ServiceTraffic, "connections" | "unreplied" | "sent" | "received">;

function counts({ connections, unreplied, sent, received }: Counts): readonly string[] {
  const volumes = [sent, received].map((one) => (one === undefined ? "-" : bytesText(one.bytes)));
  return [String(connections), String(unreplied), ...volumes];
}
