import {
  parseSetCommand,
  ServerReader,
  type SetMember,
  type SetState,
  type VirtualServerState,
} from "@fairlead/netfilter";

/**
 * The virtual servers that a payload of `ipvsadm --restore` makes where there are none.
 *
 * @throws Error for a line that is no such command
 */
export function serversOf(payload: string): readonly VirtualServerState[] {
  const reader = new ServerReader();
  const complete = linesOf(payload).flatMap((line) => reader.push(line) ?? []);
  const last = reader.end();
  return last === undefined ? complete : [...complete, last];
}

/**
 * The sets that a payload of `ipset restore` makes where there are none.
 *
 * @throws Error for a line that is no such command, or that deletes
 */
export function setsOf(payload: string): readonly SetState[] {
  const sets = new Map<string, SetState & { readonly members: Set<SetMember> }>();
  for (const line of linesOf(payload)) {
    const command = parseSetCommand(line);
    if (command.kind === "create") sets.set(command.set.name, { ...command.set, members: new Set() });
    else if (command.kind === "add") sets.get(command.set)?.members.add(command.member);
    else throw new RangeError(`this payload does more than fill new sets: ${line}`);
  }
  return [...sets.values()];
}

/** The addresses that a batch of `ip` puts on devices. */
export function addressesOf(batch: string): ReadonlySet<string> {
  return new Set([...batch.matchAll(/^addr add ([^/\s]+)/gm)].map(([, address = ""]) => address));
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}
