import { NftBatch, nftNumbers } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { FakeRunner } from "../src/fake/index.ts";
import type { Argv } from "../src/index.ts";
import {
  readingOnly,
  readingRunner,
  readsLinks,
  readsNftables,
  readsServers,
  readsSets,
  WritesRefused,
} from "../src/index.ts";
import { encodeMember, encodeSetDump } from "../src/ipset.ts";
import { encodeServerCommand, encodeServerDump } from "../src/ipvs-messages.ts";
import { encodeAddressDump, encodeDevice } from "../src/links.ts";
import { encodeGet } from "../src/nftables/exchange.ts";

function guarded(reads: Parameters<typeof readingOnly>[1]) {
  const sent: Uint8Array[] = [];
  const socket = {
    send: async (messages: Uint8Array) => void sent.push(messages),
    receive: async (into: Buffer) => into,
    close: async () => {},
  };
  return { sent, open: readingOnly(async () => socket, reads) };
}

const IPVS_FAMILY = 0x1f;
const server = { family: "IPv4", protocol: "TCP", address: "192.0.2.1", port: 80 } as const;

describe("netlink for a caller that only reads", () => {
  test.each([
    ["a table", readsNftables, encodeGet("getTable", "ip", "kube-proxy", false)],
    ["all rules", readsNftables, encodeGet("getRule", "ip6")],
    ["the generation", readsNftables, encodeGet("getGeneration", "ip", undefined, false)],
    ["addresses", readsLinks, encodeAddressDump()],
    ["a set", readsSets, encodeSetDump("KUBE-CLUSTER-IP")],
    ["virtual servers", readsServers, encodeServerDump(IPVS_FAMILY)],
  ])("%s may be asked for", async (_, reads, request) => {
    const { open, sent } = guarded(reads);
    await (await open()).send(request);
    expect(sent).toEqual([request]);
  });

  test.each([
    ["a transaction", readsNftables, new NftBatch("ip", "kube-proxy").deleteTable().finish()],
    [
      "a transaction that is only checked",
      readsNftables,
      new NftBatch("ip", "kube-proxy").deleteTable().finishAsCheck(),
    ],
    ["a new device", readsLinks, encodeDevice({ kind: "add-device", device: "kube-ipvs0" })],
    ["a new member", readsSets, encodeMember({ kind: "add", set: "KUBE-CLUSTER-IP", member: "192.0.2.1,tcp:80" })],
    ["a new virtual server", readsServers, encodeServerCommand(IPVS_FAMILY, { kind: "delete-server", server })],
    [
      "a deletion after a question",
      readsNftables,
      Buffer.concat([encodeGet("getTable", "ip"), new NftBatch("ip", "kube-proxy").deleteTable().finish()]),
    ],
  ])("%s does not get there", async (_, reads, request) => {
    const { open, sent } = guarded(reads);
    await expect((await open()).send(request)).rejects.toThrow(WritesRefused);
    expect(sent).toEqual([]);
  });
});

test("nf_tables may be asked for everything that a table is read by, and nothing else", () => {
  const { MESSAGES, SUBSYSTEM } = nftNumbers;
  const allowed = Object.entries(MESSAGES).filter(([, message]) =>
    readsNftables({ type: (SUBSYSTEM << 8) | message, command: 0 }),
  );
  const gets = Object.keys(MESSAGES).filter((name) => name.startsWith("get"));
  expect(allowed.map(([name]) => name)).toEqual(gets);
});

describe("programs for a caller that only reads", () => {
  test.each<{ argv: Argv }>([
    { argv: ["iptables-nft-restore"] },
    { argv: ["iptables-legacy-save", "--modprobe=/tmp/evil"] },
    { argv: ["iptables-nft-save", "-f", "/etc/passwd"] },
    { argv: ["ip", "address", "flush", "dev", "lo"] },
    { argv: ["ipset", "destroy"] },
    { argv: ["nft", "flush", "ruleset"] },
    { argv: ["sh", "-c", "iptables -F"] },
  ])("$argv is not started", async ({ argv }) => {
    const runner = new FakeRunner({});
    const reading = readingRunner(runner);
    await expect(reading.run(argv)).rejects.toThrow("may change the kernel");
    expect(() => reading.stream(argv)).toThrow("may change the kernel");
  });
});
