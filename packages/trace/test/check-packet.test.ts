import { describe, expect, test } from "vitest";
import { type Environment, explore, type Packet, PacketError, trace } from "../src/index.ts";
import { packet, ruleSet } from "./rule-set.ts";

const rules = ruleSet({});

describe("a packet that cannot be is refused with the field, the value and what would be right", () => {
  test.each<[fields: Partial<Packet>, message: string]>([
    [{ dport: 99_999 }, "packet.dport: 99999 must be a whole number from 0 to 65535"],
    [{ dport: -1 }, "packet.dport: -1 must be a whole number from 0 to 65535"],
    [{ sport: 80.5 }, "packet.sport: 80.5 must be a whole number from 0 to 65535"],
    [{ sport: Number.NaN }, "packet.sport: NaN must be a whole number from 0 to 65535"],
    [{ source: "10.0.0.300" }, 'packet.source: "10.0.0.300" must be an IPv4 address'],
    [{ destination: "" }, 'packet.destination: "" must be an IPv4 address'],
    [{ destination: "fd00::1" }, 'packet.destination: "fd00::1" must be an IPv4 address'],
    [{ family: "IPv6", source: "fd00::1" }, 'packet.destination: "10.0.0.1" must be an IPv6 address'],
    [{ family: "ipv4" as never }, 'packet.family: "ipv4" must be IPv4 or IPv6'],
    [{ protocol: "" }, 'packet.protocol: "" must be a name, such as tcp'],
    [{ mark: 2 ** 32 }, "packet.mark: 4294967296 must be a whole number of 32 bits"],
    [
      { dnat: { address: "10.0.0.5", port: 70_000 }, state: "ESTABLISHED" },
      "packet.dnat.port: 70000 must be a whole number from 0 to 65535",
    ],
    [{ dnat: { address: "nowhere" }, state: "ESTABLISHED" }, 'packet.dnat.address: "nowhere" must be an IPv4 address'],
    [
      { dnat: { address: "10.0.0.5" } },
      'packet.dnat: {"address":"10.0.0.5"} only a connection known before has a translation: state must not be NEW',
    ],
  ])("%j", (fields, message) => {
    for (const send of [trace, explore]) {
      const sent = () => send(rules, packet(fields));
      expect(sent).toThrow(PacketError);
      expect(sent).toThrow(message);
    }
  });

  test("0 and 65535 are ports", () => {
    expect(trace(rules, packet({ sport: 0, dport: 65_535 }))).toHaveLength(1);
  });
});

test.each<[environment: Environment, message: string]>([
  [{ localAddresses: ["10.0.0.1/24"] }, 'environment.localAddresses: "10.0.0.1/24" must be an IP address'],
  [{ broadcastAddresses: ["all"] }, 'environment.broadcastAddresses: "all" must be an IP address'],
])("an environment with %j is refused", (environment, message) => {
  expect(() => trace(rules, packet(), environment)).toThrow(message);
});
