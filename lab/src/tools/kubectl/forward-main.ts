import { createServer } from "node:net";
import { execa } from "execa";

/**
 * Forwards ports of this namespace's loopback to those of another one, in kubectl's words. Arguments: a process in that
 * namespace, then what kubectl port-forward was called with, `:PORT` among it.
 */
const [, , pid = "", ...args] = process.argv;
const PIPE = 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1; cat <&3 & cat >&3; wait';

for (const remote of args.filter((one) => one.startsWith(":"))) {
  const port = remote.slice(1);
  const server = createServer((socket) => {
    const [program, ...argv] = ["nsenter", "-t", pid, "-n", "--", "bash", "-c", PIPE, "bash", port] as const;
    const inside = execa(program, argv, { stdin: "pipe", buffer: false, reject: false });
    socket.pipe(inside.stdin);
    inside.stdout.pipe(socket);
    socket.on("error", () => inside.kill()).on("close", () => inside.kill());
    inside.stdin.on("error", () => socket.destroy());
    void inside.then(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1", () => {
    const bound = server.address();
    const local = typeof bound === "object" ? bound?.port : undefined;
    process.stdout.write(`Forwarding from 127.0.0.1:${local} -> ${port}\n`);
  });
}
