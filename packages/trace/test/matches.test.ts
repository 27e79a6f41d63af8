import { describe, expect, test } from "vitest";
import { type Environment, type Packet, packetSet } from "../src/index.ts";
import { HOST, only, ownPacket, packet, ruleSet } from "./rule-set.ts";

function matches(words: string, fields: Partial<Packet> = {}, environment: Environment = HOST): boolean {
  const family = fields.family ?? "IPv4";
  const rules = ruleSet({ filter: `-A FORWARD ${words} -j DROP\n` }, family);
  return only(rules, packet(fields), environment).verdict === "drop";
}

const IPV6 = { family: "IPv6", source: "fd00:99::1", destination: "fd00:10::1" } as const;

describe("header", () => {
  test.each<[string, Partial<Packet>, boolean]>([
    ["-s 192.0.2.0/24", {}, true],
    ["-s 192.0.3.0/24", {}, false],
    ["! -s 192.0.2.0/24", {}, false],
    ["-s 192.0.2.8/31", {}, true],
    ["-d 10.0.0.1/32", {}, true],
    ["! -d 10.0.0.1/32", {}, false],
    ["-d 128.0.0.0/1", { destination: "200.0.0.1" }, true],
    ["-s fd00:99::/64", IPV6, true],
    ["-s fd00:99:0:1::/64", IPV6, false],
    ["-d fd00:10::1/128", IPV6, true],
    ["! -d ::1/128", IPV6, true],
    ["-i eth0", {}, true],
    ["-i eth", {}, false],
    ["-i eth+", {}, true],
    ["! -i eth+", {}, false],
    ["! -i cali+", {}, true],
    ["-o eth0", {}, true],
    ["-o cali+", {}, false],
    ["-o cali+", { destination: "10.144.1.1" }, true],
    ["-p tcp", {}, true],
    ["-p udp", {}, false],
    ["! -p udp", {}, true],
    ["-f", {}, false],
    ["! -f", {}, true],
  ])("%s %o", (words, fields, expected) => expect(matches(words, fields)).toBe(expected));

  test("the host's own packets have no incoming interface", () => {
    const rules = ruleSet({ filter: "-A OUTPUT -j A\n-A A -i eth+ -j DROP\n-A A ! -i eth+ -j REJECT\n" });
    expect(only(rules, ownPacket()).verdict).toBe("reject");
  });
});

describe("matches", () => {
  test.each<[string, Partial<Packet>, boolean]>([
    ['-m comment --comment "a b"', {}, true],
    ["-m nfacct --nfacct-name x", {}, true],
    ["-p tcp -m tcp", {}, true],
    ["-p tcp -m tcp --dport 80", {}, true],
    ["-p tcp -m tcp --dport 81", {}, false],
    ["-p tcp -m tcp ! --dport 80", {}, false],
    ["-p tcp -m tcp ! --dport 81", {}, true],
    ["-p tcp -m tcp --dport 79:80", {}, true],
    ["-p tcp -m tcp --sport 40000:50000 --dport 80", {}, true],
    ["-p udp -m udp --dport 80", {}, false],
    ["-p udp -m udp --dport 80", { protocol: "udp" }, true],
    ["-p sctp -m sctp --dport 80", { protocol: "sctp" }, true],
    ["-m mark --mark 0x0/0x4000", {}, true],
    ["-m mark --mark 0x4000/0x4000", { mark: 0xffffffff }, true],
    ["-m mark ! --mark 0x4000/0x4000", { mark: 0x8000 }, true],
    ["-m mark --mark 0x80000000/0x80000000", { mark: 0x80000000 }, true],
    ["-m mark --mark 0x5", { mark: 5 }, true],
    ["-m conntrack --ctstate NEW", {}, true],
    ["-m conntrack ! --ctstate NEW", {}, false],
    ["-m conntrack --ctstate RELATED,ESTABLISHED", { state: "RELATED" }, true],
    ["-m conntrack --ctstate INVALID", { state: "INVALID" }, true],
    ["-m conntrack --ctstate DNAT", {}, false],
    ["-m conntrack --ctstate DNAT", { state: "ESTABLISHED", dnat: { address: "10.0.0.9" } }, true],
    ["-m state --state ESTABLISHED", { state: "ESTABLISHED" }, true],
    ["-p tcp -m multiport --dports 79,80", {}, true],
    ["-p tcp -m multiport --dports 1:79,81:90", {}, false],
    ["-p tcp -m multiport ! --dports 1:79", {}, true],
    ["-p tcp -m multiport --sports 80", {}, false],
    ["-p tcp -m multiport --ports 40000", {}, true],
    ["-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN", {}, true],
    ["-p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN", {}, false],
    ["-p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE", {}, false],
    ["-p tcp -m tcp --tcp-flags FIN,ACK NONE", {}, true],
    ["-p tcp -m tcp --dport 80 ! --tcp-flags FIN,SYN,RST,ACK SYN", {}, false],
    ["-p tcp -m tcp --dport 81 ! --tcp-flags FIN,SYN,RST,ACK SYN", { state: "ESTABLISHED" }, false],
    ["-m physdev --physdev-is-in", {}, false],
    ["-m physdev ! --physdev-is-in", {}, true],
  ])("%s %o", (words, fields, expected) => expect(matches(words, fields)).toBe(expected));

  test("raw comes before connection tracking", () => {
    const rules = ruleSet({ raw: "-A PREROUTING -m conntrack --ctstate INVALID -j DROP\n" });
    expect(only(rules, packet()).verdict).toBe("drop");
  });

  test("conntrack sees the translation of this packet", () => {
    const rules = ruleSet({
      nat: "-A PREROUTING -p tcp -j DNAT --to-destination 10.144.1.5\n",
      filter: "-A FORWARD -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n-A FORWARD -j REJECT\n",
    });
    expect(only(rules, packet()).verdict).toBe("reject");
  });

  test("physdev matches what the environment says", () => {
    expect(matches("-m physdev --physdev-is-in", {}, { physdev: { in: true } })).toBe(true);
    expect(matches("-m physdev --physdev-is-bridged", {}, { physdev: { in: true } })).toBe(false);
    expect(matches("-m physdev --physdev-is-bridged", {}, { physdev: { in: true, out: true } })).toBe(true);
  });
});

describe("addrtype", () => {
  test.each<[string, Partial<Packet>, boolean]>([
    ["--src-type LOCAL", { source: "10.201.0.10" }, true],
    ["--src-type LOCAL", {}, false],
    ["! --src-type LOCAL", {}, true],
    ["--src-type UNICAST", {}, true],
    ["--src-type UNICAST", { source: "10.201.0.10" }, false],
    ["--src-type LOCAL,UNICAST", { source: "10.201.0.10" }, true],
    ["--dst-type MULTICAST", { destination: "224.0.0.1" }, true],
    ["--dst-type BROADCAST", { destination: "255.255.255.255" }, true],
    ["--dst-type BROADCAST", { destination: "10.201.0.255" }, true],
    ["--src-type LOCAL --dst-type LOCAL", { source: "10.201.0.10" }, false],
    ["--src-type LOCAL", { ...IPV6, source: "fd00:201::10" }, true],
    ["--src-type UNICAST", { ...IPV6, source: "fd00:201::10" }, true],
    ["--dst-type MULTICAST", { ...IPV6, destination: "ff02::1" }, true],
    ["--dst-type UNICAST", { ...IPV6, destination: "ff02::1" }, false],
    ["--dst-type BROADCAST", IPV6, false],
  ])("%s %o", (words, fields, expected) => {
    expect(matches(`-m addrtype ${words}`, fields, { ...HOST, broadcastAddresses: ["10.201.0.255"] })).toBe(expected);
  });

  test.each([
    ["IPv4", "127.9.9.9"],
    ["IPv6", "::1"],
  ] as const)("loopback of %s is local though the environment does not say so", (family, destination) => {
    const rules = ruleSet({ filter: "-A INPUT -m addrtype --dst-type LOCAL -j DROP\n" }, family);
    const source = family === "IPv4" ? "127.0.0.1" : "::1";
    expect(only(rules, ownPacket({ family, source, destination }), {}).verdict).toBe("drop");
  });
});

describe("recent", () => {
  const recent = new Map([["A", new Map([["192.0.2.9", [700, 100]]])]]);
  const mask = "--mask 255.255.255.255";

  test.each([
    [`--rcheck --seconds 600 --reap --name A ${mask} --rsource`, true],
    [`--rcheck --seconds 100 --reap --name A ${mask} --rsource`, true],
    [`--rcheck --seconds 99 --reap --name A ${mask} --rsource`, false],
    [`--rcheck --name A ${mask} --rsource`, true],
    [`--rcheck --name A ${mask} --rdest`, false],
    [`--rcheck --name B ${mask} --rsource`, false],
  ])("%s", (words, expected) => expect(matches(`-m recent ${words}`, {}, { ...HOST, recent })).toBe(expected));

  test("a mask takes a network for one address", () => {
    const lists = new Map([["A", new Map([["192.0.2.0", [1]]])]]);
    expect(matches("-m recent --rcheck --name A --mask 255.255.255.0 --rsource", {}, { ...HOST, recent: lists })).toBe(
      true,
    );
  });

  test("--set matches, is seen later on the way and reported in the end", () => {
    const rules = ruleSet({
      nat: `-A PREROUTING -m recent --set --name A ${mask} --rsource\n`,
      filter: `-A FORWARD -m recent --rcheck --seconds 5 --name A ${mask} --rsource -j DROP\n`,
    });
    expect(only(rules, packet())).toMatchObject({
      verdict: "drop",
      recentlySeen: [{ list: "A", address: "192.0.2.9" }],
    });
  });

  test("--set notes nothing when a match before it fails", () => {
    const rules = ruleSet({ nat: `-A PREROUTING -m mark --mark 0x1 -m recent --set --name A ${mask} --rsource\n` });
    expect(only(rules, packet()).recentlySeen).toEqual([]);
  });
});

describe("set", () => {
  const sets = new Map([
    ["services", packetSet("hash:ip,port", ["10.0.0.1,tcp:80"])],
    ["triple", packetSet("hash:ip,port,ip", ["10.0.0.1,tcp:80,192.0.2.9"])],
    ["ranges", packetSet("hash:ip,port,net", ["10.0.0.1,tcp:80,198.51.100.0/24", "10.0.0.1,tcp:80,192.0.2.0/24"])],
    ["ports", packetSet("bitmap:port", ["80", "81"])],
    ["nets", packetSet("hash:net", ["192.0.0.0/16"])],
    ["six", packetSet("hash:ip,port", ["fd00:10::1,tcp:80"])],
  ]);

  test.each<[string, Partial<Packet>, boolean]>([
    ["--match-set services dst,dst", {}, true],
    ["! --match-set services dst,dst", {}, false],
    ["--match-set services dst,src", {}, false],
    ["--match-set services dst,dst", { protocol: "udp" }, false],
    ["--match-set services dst,dst", { dport: 81 }, false],
    ["--match-set triple dst,dst,src", {}, true],
    ["--match-set triple dst,dst,dst", {}, false],
    ["--match-set ranges dst,dst,src", {}, true],
    ["--match-set ranges dst,dst,src", { source: "203.0.113.1" }, false],
    ["--match-set ports dst", {}, true],
    ["--match-set ports dst", { protocol: "sctp" }, false],
    ["--match-set nets src", {}, true],
    ["--match-set six dst,dst", IPV6, true],
    ["--match-set six dst,dst", { ...IPV6, destination: "fd00:10::2" }, false],
  ])("%s %o", (words, fields, expected) => {
    expect(matches(`-m set ${words}`, fields, { ...HOST, sets })).toBe(expected);
  });

  test.each(["list:set", "hash:mac", "hash:"])("type %s is refused", (type) => {
    expect(() => packetSet(type, [])).toThrow(RangeError);
  });

  test("a member with too few parts is refused", () => {
    expect(() => packetSet("hash:ip,port", ["10.0.0.1"])).toThrow('set member "10.0.0.1": must have 2 parts');
  });
});
