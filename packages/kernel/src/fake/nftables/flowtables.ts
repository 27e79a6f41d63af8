import type { NftFlowtable } from "@fairlead/netfilter/nft";
import { isTooLong } from "./chains.ts";
import type { FakeTable } from "./state.ts";
import type { MessageContext, Refused } from "./work.ts";

/** Where the flowtable exists it gets the devices, and stays as it is otherwise (nft_flowtable_update). */
export function addFlowtable({ journal, devices }: MessageContext, table: FakeTable, added: NftFlowtable): Refused {
  if (isTooLong(added.name)) return "ERANGE";
  if (added.devices.some((device) => !devices.has(device))) return "ENOENT";
  const others = [...table.flowtables.values()].filter(({ name }) => name !== added.name);
  if (others.some((other) => added.devices.some((device) => other.devices.includes(device)))) return "EEXIST";
  const there = table.flowtables.get(added.name);
  const all = [...new Set([...(there?.devices ?? []), ...added.devices])];
  journal.set(table.flowtables, added.name, { ...(there ?? added), devices: all });
  return undefined;
}

export function deleteFlowtable({ journal }: MessageContext, table: FakeTable, name: string): Refused {
  if (!table.flowtables.has(name)) return "ENOENT";
  if (isUsed(table, name)) return "EBUSY";
  journal.deleteInOrder(table.flowtables, name);
  return undefined;
}

export function deleteDevices(
  { journal }: MessageContext,
  table: FakeTable,
  name: string,
  gone: readonly string[],
): Refused {
  const there = table.flowtables.get(name);
  if (there === undefined || gone.some((device) => !there.devices.includes(device))) return "ENOENT";
  const left = there.devices.filter((device) => !gone.includes(device));
  journal.set(table.flowtables, name, { ...there, devices: left });
  return undefined;
}

/** @param now its new name; empty: it is gone */
export function changeDevice(tables: Iterable<FakeTable>, device: string, now: readonly string[]): void {
  for (const { flowtables } of tables) {
    for (const [name, one] of flowtables) {
      const devices = one.devices.flatMap((other) => (other === device ? now : [other]));
      flowtables.set(name, { ...one, devices });
    }
  }
}

function isUsed({ chains }: FakeTable, flowtable: string): boolean {
  const rules = [...chains.values()].flatMap((chain) => chain.rules);
  return rules.some(({ expressions }) =>
    expressions.some((one) => one.kind === "flow-offload" && one.flowtable === flowtable),
  );
}
