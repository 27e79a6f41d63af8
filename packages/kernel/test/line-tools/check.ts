import {
  parseServerCommand,
  parseSetCommand,
  renderServerCommand,
  type SetState,
  type VirtualServerState,
} from "@fairlead/netfilter";
import { expect } from "vitest";
import type { IpsetClient, IpvsadmClient } from "../../src/index.ts";
import type { LineCase } from "./cases.ts";

export async function checkIpvsadm(client: IpvsadmClient, row: LineCase): Promise<void> {
  await checkError(client.change(row.input.flatMap((line) => parseServerCommand(line) ?? [])), row);
  const left: string[] = [];
  for await (const server of client.save()) left.push(...serverLines(server));
  expect(left.sort()).toEqual([...row.left].sort());
}

export async function checkIpset(client: IpsetClient, row: LineCase): Promise<void> {
  await checkError(client.change(row.input.map(parseSetCommand)), row);
  const left: string[] = [];
  for await (const set of client.save()) left.push(...setLines(set));
  expect(left.sort()).toEqual([...row.left].sort());
}

async function checkError(work: Promise<void>, { error }: LineCase): Promise<void> {
  if (error === undefined) await expect(work).resolves.toBeUndefined();
  else await expect(work).rejects.toThrow(error);
}

function serverLines({ destinations, ...server }: VirtualServerState): string[] {
  return [
    renderServerCommand({ kind: "add-server", server }),
    ...destinations.map((destination) => renderServerCommand({ kind: "add-destination", server, destination })),
  ];
}

function setLines({ name, type, members }: SetState): string[] {
  return [`create ${name} ${type}`, ...Array.from(members, (member) => `add ${name} ${member}`)];
}
