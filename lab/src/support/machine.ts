import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { errorText, IP_FAMILIES } from "@fairlead/base";
import { createRunner, openIptables } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";

/**
 * Why the test ground cannot run here, undefined where it can: it takes network namespaces, ip and iptables of both
 * families. Makes a namespace to find out.
 */
export async function missingHere(): Promise<string | undefined> {
  try {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    await runner.run(["ip", "link", "add", "probe", "type", "veth", "peer", "name", "eborp"]);
    for (const family of IP_FAMILIES) {
      const client = await openIptables(runner, { family });
      await client.save("nat");
    }
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

/** Whether this kernel has IPVS, or a module of it that can be loaded. Loads nothing. */
export async function hasIpvs(): Promise<boolean> {
  const loaded = access("/proc/net/ip_vs");
  return loaded.then(
    () => true,
    () =>
      createRunner()
        .run(["modprobe", "--dry-run", "--quiet", "ip_vs"])
        .then(
          () => true,
          () => false,
        ),
  );
}

const FOLDERS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Whether this machine has a program of that name. */
export async function isProgram(program: string): Promise<boolean> {
  const found = await Promise.allSettled(FOLDERS.map((folder) => access(join(folder, program), constants.X_OK)));
  return found.some(({ status }) => status === "fulfilled");
}
