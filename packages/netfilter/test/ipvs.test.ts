import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  ConnectionReader,
  type LinkCommand,
  parseServerCommand,
  parseSetCommand,
  renderLinkCommand,
  renderServerCommand,
  renderSetCommand,
  type ServerCommand,
  ServerReader,
  type SetCommand,
  SetReader,
} from "../src/index.ts";

const golden = fileURLToPath(new URL("../../testkit/fixtures/golden/", import.meta.url));
const recordings = readdirSync(golden).filter((name) => name.endsWith(".ipvs"));

function section(file: string, name: string): string[] {
  const lines = readFileSync(`${golden}${file}`, "utf8").split("\n");
  const begin = lines.indexOf(`# ${name}`) + 1;
  const length = lines.slice(begin).findIndex((line) => line.startsWith("# "));
  return lines.slice(begin, begin + length);
}

function all<T>(lines: readonly string[], reader: { push(line: string): T | undefined; end(): T | undefined }): T[] {
  return [...lines.map((line) => reader.push(line)), reader.end()].filter((item) => item !== undefined);
}

describe.each(recordings)("%s", (file) => {
  test("virtual servers read and written are the same", () => {
    const lines = section(file, "ipvsadm");
    const written = all(lines, new ServerReader()).flatMap(({ destinations, ...server }) => [
      renderServerCommand({ kind: "add-server", server }),
      ...destinations.map((destination) => renderServerCommand({ kind: "add-destination", server, destination })),
    ]);
    expect(written).toEqual(lines);
  });

  test("sets read have the members that were written", () => {
    const lines = section(file, "ipset");
    const members = all(lines, new SetReader()).flatMap(({ name, members: of }) =>
      [...of].map((one) => `add ${name} ${one}`),
    );
    expect(members).toEqual(lines.filter((line) => line.startsWith("add ")));
  });
});

const SERVER = { family: "IPv6", protocol: "UDP", address: "fd00::1", port: 53 } as const;
const DESTINATION = { address: "fd00::2", port: 53, weight: 0, forwarding: "masquerade" } as const;

test.each<[string, ServerCommand]>([
  [
    "-E -u [fd00::1]:53 -s mh -p 600 -b mh-fallback,mh-port",
    {
      kind: "edit-server",
      server: { ...SERVER, scheduler: "mh", flags: ["mh-fallback", "mh-port"], persistenceSeconds: 600 },
    },
  ],
  ["-D -u [fd00::1]:53", { kind: "delete-server", server: SERVER }],
  [
    "-e -u [fd00::1]:53 -r [fd00::2]:53 -m -w 0",
    { kind: "edit-destination", server: SERVER, destination: DESTINATION },
  ],
  [
    "-d -u [fd00::1]:53 -r [fd00::2]:53",
    { kind: "delete-destination", server: SERVER, destination: { address: "fd00::2", port: 53 } },
  ],
])("%s", (line, command) => {
  expect(renderServerCommand(command)).toBe(line);
  expect(parseServerCommand(line)).toEqual(command);
});

test("options without a field are kept word for word, servers by firewall mark passed over", () => {
  const lines = ["-A -f 5 -s rr", "-a -f 5 -r 1.2.3.4:0 -g -w 1", "-A -t 10.96.0.9:53 -s rr -p 10 -M 255.255.255.0"];
  const servers = all(lines, new ServerReader());
  expect(servers).toMatchObject([{ address: "10.96.0.9", persistenceSeconds: 10, others: ["-M", "255.255.255.0"] }]);
});

test("connections, as ipvsadm --list -n prints them", () => {
  const listing = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.0.1:443 rr persistent 600
  -> 10.144.1.5:8080              Masq    0      2          13
UDP  [fd00::1]:53 mh (mh-port)
FWM  5 rr
  -> 1.2.3.4:0                    Route   1      9          9         `;
  expect(all(listing.split("\n"), new ConnectionReader())).toEqual([
    {
      family: "IPv4",
      protocol: "TCP",
      address: "10.96.0.1",
      port: 443,
      destinations: [
        { address: "10.144.1.5", port: 8080, weight: 0, forwarding: "masquerade", active: 2, inactive: 13 },
      ],
    },
    { family: "IPv6", protocol: "UDP", address: "fd00::1", port: 53, destinations: [] },
  ]);
});

test.each<[string, SetCommand]>([
  ["create A bitmap:port range 0-65535", { kind: "create", set: { name: "A", type: "bitmap:port" } }],
  [
    "create B hash:ip family inet6 hashsize 1024 maxelem 65536",
    { kind: "create", set: { name: "B", type: "hash:ip", family: "IPv6" } },
  ],
  ["del N 10.96.0.1,tcp:80,198.51.100.0/24", { kind: "del", set: "N", member: "10.96.0.1,tcp:80,198.51.100.0/24" }],
  ["destroy A", { kind: "destroy", set: "A" }],
])("%s", (line, command) => {
  expect(renderSetCommand(command)).toBe(line);
  expect(parseSetCommand(line)).toEqual(command);
});

test.each(["10.96.0.1,tcp:80\nadd B 1.1.1.1", "10.96.0.1 -exist", "", "x,tcp:80"])("hostile member %j", (member) => {
  expect(() => renderSetCommand({ kind: "add", set: "A", member })).toThrow("set member");
});

test.each(["10.96.0.1 -s", "10.96.0.1\n-C", "$(id)"])("hostile address %j", (address) => {
  expect(() => renderServerCommand({ kind: "delete-server", server: { ...SERVER, address } })).toThrow("address");
});

test.each(["-A -t nowhere -s rr", "-A 10.96.0.1:1", "-Z -t 10.96.0.1:1", "nonsense"])(
  "no line of ipvsadm: %s",
  (line) => {
    expect(() => parseServerCommand(line)).toThrow();
  },
);

test.each<[LinkCommand, string]>([
  [{ kind: "add-device", device: "kube-ipvs0" }, "link add dev kube-ipvs0 type dummy"],
  [{ kind: "delete-device", device: "kube-ipvs0" }, "link del dev kube-ipvs0"],
  [{ kind: "add-address", device: "kube-ipvs0", address: "10.96.0.1" }, "addr add 10.96.0.1/32 dev kube-ipvs0"],
  [{ kind: "delete-address", device: "kube-ipvs0", address: "fd00::1" }, "addr del fd00::1/128 dev kube-ipvs0"],
])("%j is a line for ip -batch", (command, line) => {
  expect(renderLinkCommand(command)).toBe(line);
});

test.each<LinkCommand>([
  { kind: "add-device", device: "a b" },
  { kind: "add-address", device: "kube-ipvs0", address: "10.96.0.1 dev eth0" },
])("%j can't be written", (command) => {
  expect(() => renderLinkCommand(command)).toThrow();
});
