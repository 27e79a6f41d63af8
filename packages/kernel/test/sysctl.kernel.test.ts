import { expect, test } from "vitest";
import { createRunner } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelSuite } from "./kernel-test.ts";

const KEY = "net/ipv4/conf/all/route_localnet";

kernelSuite("on the kernel", () => {
  const script = `
    import { createSysctl } from ${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)};
    const key = ${JSON.stringify(KEY)};
    const sysctl = createSysctl();
    console.log(JSON.stringify([await sysctl.set(key, process.argv[1]), await sysctl.read(key)]));`;
  const node = [
    process.execPath,
    "--no-warnings",
    "--conditions=@fairlead/source",
    "--input-type=module",
    "-e",
    script,
  ];

  async function setInside(value: string, wrap: readonly string[] = []) {
    await using namespace = await createNamespace();
    // A new namespace has it from the machine's own, where a container runtime may have set it.
    await createRunner({ prefix: namespace.argvPrefix }).run(["sh", "-c", `echo 0 > /proc/sys/${KEY}`]);
    const runner = createRunner({ prefix: [...namespace.argvPrefix, ...wrap] });
    const [program = "node", ...args] = node;
    const { stdout } = await runner.run([program, ...args, value], { timeoutMs: 0 });
    return JSON.parse(stdout) as unknown;
  }

  test("a setting of the namespace", async () => {
    expect(await setInside("1")).toEqual([{ outcome: "changed", before: "0", value: "1" }, "1"]);
  });

  test("a value that the kernel refuses", async () => {
    expect(await setInside("many")).toEqual([{ outcome: "refused", reason: expect.stringContaining("EINVAL") }, "0"]);
  });

  test("/proc/sys read-only, as in a container", async () => {
    const mount = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"';
    const result = await setInside("1", ["unshare", "-m", "--", "sh", "-c", mount, "sh"]);
    expect(result).toEqual([{ outcome: "refused", reason: expect.stringContaining("/proc/sys is read-only") }, "0"]);
  });
});
