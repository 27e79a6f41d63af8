import { join } from "node:path";
import { expect, test } from "vitest";
import { createNfacct, createRunner, type Nfacct, type Runner } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelSuite } from "./kernel-test.ts";
import { check } from "./nfacct-check.ts";

const DRIVER = join(import.meta.dirname, "nfacct-main.ts");

function byNetlink(runner: Runner): Nfacct {
  const call = async (method: keyof Nfacct, name: string) => {
    const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", DRIVER, method, name] as const;
    return JSON.parse((await runner.run(argv, { timeoutMs: 0 })).stdout) ?? undefined;
  };
  return { ensure: (name) => call("ensure", name), read: (name) => call("read", name) };
}

const ways: Readonly<Record<string, (runner: Runner) => Nfacct>> = {
  "by the tool": (runner) => createNfacct(runner),
  "by netlink": byNetlink,
};

kernelSuite("on the kernel, counters count", () => {
  test.each(Object.entries(ways))("%s", async (_, way) => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const nfacct = way(runner);
    await check(nfacct);
    const rule = "-A OUTPUT -d 127.0.0.9/32 -m nfacct --nfacct-name dropped -j DROP";
    await runner.run(["iptables-nft-restore", "--noflush"], { input: `*filter\n${rule}\nCOMMIT\n` });
    const send = 'const s = require("dgram").createSocket("udp4"); s.send("12", 9, "127.0.0.9", () => s.close())';
    await runner.run([process.execPath, "-e", send]);
    // 20 bytes of IPv4 header, 8 of UDP, 2 of text. Who makes it again leaves the count.
    expect(await nfacct.ensure("dropped")).toEqual({ ok: true });
    expect(await nfacct.read("dropped")).toEqual({ packets: 1, bytes: 30 });
  });
});
