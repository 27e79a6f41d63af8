import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createRunner } from "../../src/index.ts";
import { kernelSuite } from "../kernel-test.ts";

kernelSuite("in a user namespace", () => {
  test("a transaction has the room that is told, and no more", async ({ skip }) => {
    const runner = createRunner({ prefix: ["unshare", "-Urn", "--"] });
    await runner.run(["true"]).catch(() => skip("no user namespaces here"));
    const main = fileURLToPath(new URL("room-main.ts", import.meta.url));
    const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
      timeoutMs: 0,
    });
    const { room, isBounded, length, written, refused } = JSON.parse(stdout);
    expect(room).toBeGreaterThan(200_000);
    expect(length).toBeGreaterThan(Math.min(room, 8 << 20) - 50_000);
    expect(written).toBe(2);
    if (isBounded) expect(refused).toMatch(`this user namespace allows at most ${room} (net.core.wmem_max)`);
    else expect(refused).toBe("accepted");
  });
});
