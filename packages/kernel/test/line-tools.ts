import {
  parseServerCommand,
  parseSetCommand,
  renderServerCommand,
  type SetState,
  type VirtualServerState,
} from "@fairlead/netfilter";
import { expect } from "vitest";
import type { IpsetClient, IpvsadmClient } from "../src/index.ts";

const WEB = "-A -t 10.96.0.1:443 -s rr";
const POD = "-a -t 10.96.0.1:443 -r 10.144.1.5:8080 -m -w 1";
const OTHER = "-A -t 10.96.0.2:443 -s rr";

/** What becomes of commands without a transaction: the same on the fake and on the real kernel. */
interface LineCase {
  readonly name: string;
  readonly input: readonly string[];
  /** What the error says; absent: none. */
  readonly error?: RegExp;
  /** What is there afterwards, sorted, as the tool's own save prints it. */
  readonly left: readonly string[];
}

export const IPVSADM_CASES: readonly LineCase[] = [
  { name: "servers and destinations", input: [WEB, POD], left: [WEB, POD] },
  {
    name: "options in the order of the save",
    input: [
      "-A -t 10.96.0.3:80 -s mh -p 600 -b mh-port",
      "-A --sctp-service 10.96.0.4:80 -s sh",
      "-A -u [fd00::1]:53 -s rr",
    ],
    left: [
      "-A --sctp-service 10.96.0.4:80 -s sh",
      "-A -t 10.96.0.3:80 -s mh -p 600 -b mh-port",
      "-A -u [fd00::1]:53 -s rr",
    ],
  },
  {
    name: "a server twice: reported, skipped",
    input: [WEB, WEB, OTHER],
    error: /Service already exists/,
    left: [WEB, OTHER],
  },
  {
    name: "a server that is not there",
    input: ["-E -t 10.96.0.9:1 -s rr", "-D -t 10.96.0.9:1", "-a -t 10.96.0.9:1 -r 10.144.1.5:1 -m -w 1", OTHER],
    error: /No such service\nNo such service\nService not defined/,
    left: [OTHER],
  },
  {
    name: "a destination that is not there, or there twice",
    input: [
      WEB,
      "-e -t 10.96.0.1:443 -r 10.144.1.5:8080 -m -w 1",
      "-d -t 10.96.0.1:443 -r 10.144.1.5:8080",
      POD,
      POD,
      "-e -t 10.96.0.1:443 -r 10.144.1.5:8080 -m -w 0",
    ],
    error: /No such destination\nNo such destination\nDestination already exists/,
    left: [WEB, "-a -t 10.96.0.1:443 -r 10.144.1.5:8080 -m -w 0"],
  },
  {
    name: "an unknown scheduler",
    input: ["-A -t 10.96.0.9:1 -s nope", WEB, "-E -t 10.96.0.1:443 -s nope"],
    error: /Scheduler or persistence engine not found/,
    left: [WEB],
  },
  {
    name: "an edit takes persistence away",
    input: ["-A -t 10.96.0.1:443 -s sh -p 100", "-E -t 10.96.0.1:443 -s rr"],
    left: [WEB],
  },
  { name: "a server goes with its destinations", input: [WEB, POD, "-D -t 10.96.0.1:443", WEB], left: [WEB] },
  {
    name: "two families in one server: it ends there",
    input: [WEB, "-a -t 10.96.0.1:443 -r [fd00::1]:1 -m -w 1", OTHER],
    error: /Different address family/,
    left: [WEB],
  },
  { name: "port 0: it ends there", input: [WEB, "-A -t 10.96.0.8:0 -s rr", OTHER], error: /Zero port/, left: [WEB] },
];

const SET = "create A hash:ip,port family inet hashsize 1024 maxelem 65536";
const CREATED = "create A hash:ip,port";

export const IPSET_CASES: readonly LineCase[] = [
  {
    name: "every type",
    input: [
      "create B bitmap:port range 0-65535",
      "add B 80",
      "create I hash:ip family inet6 hashsize 1024 maxelem 65536",
      "add I fd00::1",
      "create L hash:ip,port,ip family inet hashsize 1024 maxelem 65536",
      "add L 10.144.1.5,tcp:80,10.144.1.5",
      "create N hash:ip,port,net family inet hashsize 1024 maxelem 65536",
      "add N 10.96.0.1,sctp:80,198.51.100.0/24",
    ],
    left: [
      "create B bitmap:port",
      "add B 80",
      "create I hash:ip",
      "add I fd00::1",
      "create L hash:ip,port,ip",
      "add L 10.144.1.5,tcp:80,10.144.1.5",
      "create N hash:ip,port,net",
      "add N 10.96.0.1,sctp:80,198.51.100.0/24",
    ],
  },
  {
    name: "what is there, or gone, is no error",
    input: [SET, "add A 1.2.3.4,tcp:80", "add A 1.2.3.4,tcp:80", "del A 9.9.9.9,udp:1", SET, "destroy B"],
    left: [CREATED, "add A 1.2.3.4,tcp:80"],
  },
  {
    name: "another type of the same name",
    input: [
      SET,
      "add A 1.2.3.4,tcp:80",
      "create A hash:ip family inet hashsize 1024 maxelem 65536",
      "add A 1.2.3.5,tcp:80",
    ],
    error: /line 3.*same name already exists/,
    left: [CREATED, "add A 1.2.3.4,tcp:80"],
  },
  {
    name: "a member of no set: it ends there",
    input: [SET, "add B 1.2.3.4", "add A 1.2.3.5,tcp:80"],
    error: /line 2.*does not exist/,
    left: [CREATED],
  },
  {
    name: "a member of another form",
    input: [SET, "add A 1.2.3.4"],
    error: /line 2.*Syntax error/,
    left: [CREATED],
  },
  { name: "no set to flush", input: [SET, "flush B"], error: /line 2.*does not exist/, left: [CREATED] },
];

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
