import { describe, expect, test } from "vitest";
import { traceText } from "../src/index.ts";

const IPTABLES = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i eth0 -d 10.96.0.80/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.144.1.5:8080
-A OUTPUT -d 10.96.0.80/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.144.1.6:8080
COMMIT
`;
const NFT = `table ip kube-proxy {
	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		ip daddr 10.96.0.80 tcp dport 80 dnat to 10.144.1.7:8080
	}
}
`;

function ends(...of: Parameters<typeof traceText>): readonly string[] {
  return traceText(...of).outcomes.map(({ destination: { address, port } }) => `${address}:${port}`);
}

describe("a packet as text", () => {
  test.each([
    ["192.0.2.9→10.96.0.80:80", "10.144.1.5:8080"],
    ["192.0.2.9 -> 10.96.0.80:80/TCP", "10.144.1.5:8080"],
    ["192.0.2.9:1234→10.96.0.80:80", "10.144.1.5:8080"],
    ["192.0.2.9→10.96.0.80:80/udp", "10.96.0.80:80"],
    ["10.201.0.10→10.96.0.80:80", "10.144.1.6:8080"],
    ["127.0.0.1→10.96.0.80:80", "10.144.1.6:8080"],
    ["[fd00::9]→[fd00::10]:80", "fd00::10:80"],
  ])("%s ends at %s", (packet, expected) => {
    expect(ends(IPTABLES, packet, { localAddresses: ["10.201.0.10"] })).toEqual([expected]);
  });

  test("it comes in by the interface that leads back to its source", () => {
    const environment = { outInterface: (to: string) => (to === "192.0.2.9" ? "eth1" : "eth0") };
    expect(ends(IPTABLES, "192.0.2.9→10.96.0.80:80", environment)).toEqual(["10.96.0.80:80"]);
    expect(ends(IPTABLES, "192.0.2.8→10.96.0.80:80", environment)).toEqual(["10.144.1.5:8080"]);
  });

  test.each([
    ["", /must be SOURCE→ADDRESS:PORT/],
    ["192.0.2.9→10.96.0.80", /must be SOURCE→ADDRESS:PORT/],
    ["192.0.2.300→10.96.0.80:80", /must be SOURCE→ADDRESS:PORT/],
    ["192.0.2.9→[fd00::10]:80", /one family/],
    ["192.0.2.9→10.96.0.80:70000", /ports from 1 to 65535/],
    ["192.0.2.9→10.96.0.80:80/icmp", /must be SOURCE→ADDRESS:PORT/],
  ])("%j is none", (packet, message) => {
    expect(() => traceText(IPTABLES, packet)).toThrow(message);
  });
});

test("rules as nft lists them", () => {
  expect(ends(NFT, "192.0.2.9→10.96.0.80:80")).toEqual(["10.144.1.7:8080"]);
  expect(ends(`# as root\n${NFT}`, "192.0.2.9→10.96.0.80:80")).toEqual(["10.144.1.7:8080"]);
  expect(ends(NFT, "[fd00::9]→[fd00::10]:80")).toEqual(["fd00::10:80"]);
});

test("rules that are none", () => {
  expect(() => traceText("hello", "192.0.2.9→10.96.0.80:80")).toThrow();
});
