import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createRunner, detectVariant, openIptables } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";

const HINT = "*mangle\n:PREROUTING ACCEPT [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";

kernelSuite("on the kernel", () => {
  test("a chain that is not there, a number beyond the last, one rule alone", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    for (const variant of ["nft", "legacy"] as const) {
      const client = await openIptables(runner, { family: "IPv4", variant });
      await client.restore("*nat\n:A - [0:0]\n-A A -j ACCEPT\n-A A -j RETURN\nCOMMIT\n");
      expect(await client.list("nat", "NOPE")).toBeUndefined();
      expect(await client.list("nat", "A", 9)).toEqual([]);
      expect(await client.list("nat", "A", 2)).toEqual([{ matches: [], target: { kind: "return" } }]);
      expect(await client.list("nat", "A")).toHaveLength(2);
      expect(await client.texts("nat", ["A", "OUTPUT"])).toEqual(
        new Map<string, unknown>([
          ["A", ["-j ACCEPT", "-j RETURN"]],
          ["OUTPUT", []],
        ]),
      );
      expect(await client.list("nat", "OUTPUT")).toEqual([]);
      expect([...(await client.chains("nat"))].sort()).toEqual(["A", "INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"]);
      expect(await client.chains("raw")).toEqual(new Set(["PREROUTING", "OUTPUT"]));
    }
  });

  test("a lock that somebody holds is told, and waited for", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const client = await openIptables(runner, { family: "IPv4", variant: "legacy", lockSeconds: 1 });
    const { XTABLES_LOCKFILE = "" } = namespace.env;
    const holder = ["flock", "--no-fork", XTABLES_LOCKFILE, "sh", "-c", "echo held; exec sleep infinity"] as const;
    for await (const _ of runner.stream(holder, { timeoutMs: 0 })) {
      await expect(client.restore("*nat\nCOMMIT\n")).rejects.toMatchObject({ kind: "locked" });
      break;
    }
    await expect.poll(() => client.restore("*nat\nCOMMIT\n").then(() => "taken")).toBe("taken");
  });

  test("a payload that throws half way commits nothing of its table", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    function* broken() {
      yield "*nat\n:A - [0:0]\nCOMMIT\n";
      yield "*nat\n:B - [0:0]\n";
      throw new Error("cannot render");
    }
    for (const variant of ["nft", "legacy"] as const) {
      const client = await openIptables(runner, { family: "IPv4", variant });
      await expect(client.restore(broken())).rejects.toThrow("cannot render");
      expect(await client.chains("nat")).not.toContain("B");
    }
  });
});

kernelSuite("which variant the host uses", () => {
  test("kubelet's hint decides", async ({ skip }) => {
    await using namespace = await createNamespace();
    if (namespace.as === "user") skip("in a user namespace iptables-legacy-save may not read which tables there are");
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    expect(await detectVariant(runner)).toBe("nft");
    await runner.run(["iptables-legacy-restore", "-w", "5"], { input: "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n" });
    expect(await detectVariant(runner)).toBe("legacy");
    await runner.run(["ip6tables-nft-restore", "-w", "5"], { input: HINT });
    expect(await detectVariant(runner)).toBe("nft");
    expect((await openIptables(runner, { family: "IPv4" })).variant).toBe("nft");
  });
});

kernelSuite("the variants that are in use", () => {
  test.for<["nft" | "legacy", "iptables" | "ip6tables"]>([
    ["nft", "iptables"],
    ["legacy", "iptables"],
    ["nft", "ip6tables"],
    ["legacy", "ip6tables"],
  ])("%s: %s' first table is seen", async ([variant, program], { skip }) => {
    await using namespace = await createNamespace();
    if (namespace.as === "user") skip("in a user namespace it cannot be read which legacy tables there are");
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const seen = async () => {
      const script = fileURLToPath(new URL("tables-there-main.ts", import.meta.url));
      const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", script] as const;
      return JSON.parse((await runner.run(argv, { timeoutMs: 0 })).stdout);
    };
    const nothing = { IPv4: { nft: false, legacy: false }, IPv6: { nft: false, legacy: false } };
    expect(await seen()).toEqual(nothing);
    await runner.run([`${program}-${variant}-restore`, "-w", "5"], { input: "*mangle\n:OWN - [0:0]\nCOMMIT\n" });
    const family = program === "iptables" ? "IPv4" : "IPv6";
    expect(await seen()).toEqual({ ...nothing, [family]: { ...nothing[family], [variant]: true } });
  });
});
