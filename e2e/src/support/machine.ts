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
    for (const family of ["IPv4", "IPv6"] as const) {
      const client = await openIptables(runner, { family });
      await client.save("nat");
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
