import type { Bystanders } from "./bystanders.ts";

/** HTTP/1.0 by the shell, as a browser sends a form of another site. */
const POST =
  'exec 3<>/dev/tcp/127.0.0.1/10249 && printf "POST /ownership/accept HTTP/1.0\\r\\nHost: 127.0.0.1:10249\\r\\n' +
  "Origin: http://attacker.example\\r\\nContent-Type: text/plain\\r\\nContent-Length: %s\\r\\n\\r\\n%s" +
  '" "$1" "$2" >&3 && cat <&3';

/**
 * Asks each agent to accept a CIDR, as a page in a browser on its node could.
 *
 * @throws Error when one does not answer 410 Gone
 */
export async function consentFromPage({ scene }: Bystanders, cidr: string): Promise<void> {
  const body = JSON.stringify({ cidrs: [cidr] });
  for (const { name, run } of scene.cluster.nodes) {
    const { stdout } = await run(["bash", "-c", POST, "bash", String(body.length), body]);
    const [line = ""] = stdout.split("\r\n");
    if (!/^HTTP\/1\.\d 410 /.test(line)) throw new Error(`wanted 410 of ${name} for a consent by HTTP; came ${line}`);
  }
}
