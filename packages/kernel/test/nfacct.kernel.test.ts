import { expect } from "vitest";
import { createNfacct, type Nfacct, openNetfilterSocket, type Runner } from "../src/index.ts";
import { insideTest, kernelTest, noProcess } from "./kernel-test.ts";
import { check } from "./nfacct-check.ts";

async function counts(runner: Runner, nfacct: Nfacct): Promise<void> {
  await check(nfacct);
  const rule = "-A OUTPUT -d 127.0.0.9/32 -m nfacct --nfacct-name dropped -j DROP";
  await runner.run(["iptables-nft-restore", "--noflush"], { input: `*filter\n${rule}\nCOMMIT\n` });
  await runner.run(["bash", "-c", "printf 12 >/dev/udp/127.0.0.9/9 || true"]);
  // 20 bytes of IPv4 header, 8 of UDP, 2 of text. Who makes it again leaves the count.
  expect(await nfacct.ensure("dropped")).toEqual({ ok: true });
  expect(await nfacct.read("dropped")).toEqual({ packets: 1, bytes: 30 });
}

kernelTest("counters count, by the tool", ({ runner }) => counts(runner, createNfacct(runner)));
insideTest("and by netlink", ({ runner }) => counts(runner, createNfacct(noProcess, { open: openNetfilterSocket })));
