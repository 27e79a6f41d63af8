import { socketText } from "@fairlead/base";
import { checkInteger, checkValue } from "../rule/check.ts";
import type { Destination, DestinationKey, ServerCommand, VirtualServer, VirtualServerKey } from "./ipvs.ts";

const OPTIONS = { TCP: "-t", UDP: "-u", SCTP: "--sctp-service" } as const;

const LETTERS = {
  "add-server": "-A",
  "edit-server": "-E",
  "delete-server": "-D",
  "add-destination": "-a",
  "edit-destination": "-e",
  "delete-destination": "-d",
} as const satisfies Record<ServerCommand["kind"], string>;

const FORWARDING = { masquerade: "-m", route: "-g", tunnel: "-i" } as const;

/**
 * One line for `ipvsadm --restore`, without its end, in the form of `ipvsadm --save -n`.
 *
 * @throws RuleTextError for what can't be written as one word or number
 */
export function renderServerCommand(command: ServerCommand): string {
  const head = `${LETTERS[command.kind]} ${renderServerKey(command.server)}`;
  switch (command.kind) {
    case "add-server":
    case "edit-server":
      return head + serverOptions(command.server);
    case "delete-server":
      return head;
    case "add-destination":
    case "edit-destination":
      return `${head} -r ${addressAndPort(command.destination)}${destinationOptions(command.destination)}`;
    case "delete-destination":
      return `${head} -r ${addressAndPort(command.destination)}`;
  }
}

/** `-t 10.96.0.1:443`: how ipvsadm names a virtual server, and a key that no other one has. */
export function renderServerKey(server: VirtualServerKey): string {
  return `${OPTIONS[server.protocol]} ${addressAndPort(server)}`;
}

function addressAndPort({ address, port }: DestinationKey): string {
  return socketText(checkValue("address", address), checkInteger("port", port, 0xffff));
}

function serverOptions({ scheduler, flags, persistenceSeconds, others = [] }: VirtualServer): string {
  const persistence =
    persistenceSeconds === undefined ? "" : ` -p ${checkInteger("persistence", persistenceSeconds, 31 * 86_400)}`;
  const chosen = flags.length === 0 ? "" : ` -b ${checkValue("scheduler flags", flags.join(","))}`;
  return ` -s ${checkValue("scheduler", scheduler)}${persistence}${others.map((word) => ` ${word}`).join("")}${chosen}`;
}

function destinationOptions({ forwarding, weight }: Destination): string {
  return ` ${FORWARDING[forwarding]} -w ${checkInteger("weight", weight, 65_535)}`;
}
